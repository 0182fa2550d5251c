"""A FROM clause in which some items are made of other items' rows: LATERAL VIEW, LATERAL, UNNEST, VALUES, range().

Relations are collected in a ``FromClause`` and joined; then each row makes those of the generators behind them, in
order. A relation that follows a generator begins a new clause, whose first input is all that came before it. So
conditions between relations stay join conditions, and those that read generated columns become filters above.

Constant rows in an outer, semi or anti join or under USING are a relation like others: what stands beside them may be
without a partner. Where nothing but constant rows stands before such a join, they are made of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.plan.binding import conjuncts, has_query
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlation import names_outer
from viewkeeper.plan.generators import (
    ROWS_BESIDE_MAX,
    Call,
    aliased,
    call_in,
    call_of,
    filtered,
    generated,
    refused_generator,
    rows_apart,
)
from viewkeeper.plan.joins import FromClause
from viewkeeper.plan.lateral import LateralJoins, LateralQuery, Made, lateral_query
from viewkeeper.plan.nodes import RecursiveScan, walk
from viewkeeper.plan.one_row import one_row
from viewkeeper.plan.scopes import CARRIED, NamedColumn, Scope, Source

Relation = Callable[[exp.Expr], Source]
AddJoin = Callable[[FromClause, exp.Join], None]

_LATERAL_JOINS = frozenset((("", ""), ("", "INNER"), ("", "CROSS"), ("LEFT", ""), ("LEFT", "OUTER")))


@dataclass(frozen=True)
class _Pending:
    """A generator or LATERAL subquery whose rows are not made yet.

    Args:
        made: makes them beside rows, and returns the columns that this adds.
        origin: the place in the SQL.
        leads: whether it stands before the first relation, as its columns do.
    """

    made: Callable[[Source], Made]
    origin: exp.Expr
    leads: bool


def makes_rows(item: exp.Expr) -> bool:
    """Return whether an item of FROM is a generator or a LATERAL subquery."""
    return lateral_query(item) is not None or _generator(item, False) is not None


def joins_lateral(join: exp.Join) -> bool:
    """Return whether LATERAL can stand behind these words: JOIN, LEFT JOIN, a comma."""
    side, kind = (str(join.args.get(part) or "").upper() for part in ("side", "kind"))
    return (side, kind) in _LATERAL_JOINS and not join.args.get("using") and not join.args.get("method")


class FromItems:
    """Plans the items of FROM in order.

    Args:
        context: the statement.
        relation: plans an item that is a relation.
        add_join: adds a joined relation to a clause.
        laterals: joins LATERAL subqueries.
    """

    def __init__(self, context: Context, relation: Relation, add_join: AddJoin, laterals: LateralJoins) -> None:
        self.context = context
        self.outer = laterals.outer
        self.later: list[exp.Expr] = []
        self._laterals = laterals
        self._relation = relation
        self._add_join = add_join
        self._clause = FromClause(context, self.outer)
        self._pending: list[_Pending] = []
        self._above: list[exp.Expr] = []
        self._where: list[exp.Expr] = []

    def begin(self, source: Source) -> None:
        """Put rows before all items: in a subquery, the values of outer columns."""
        self._clause.add(source)

    def add(self, item: exp.Expr) -> None:
        """Add the first item."""
        query = lateral_query(item)
        if query is not None and self._clause.inputs:
            self._add_lateral(LateralQuery(query, item.args.get("alias")))
        elif query is not None:
            # Nothing stands before it that it could name.
            self._clause.add(self._relation(exp.Subquery(this=query.this, alias=item.args.get("alias"))))
        elif _is_long(item):
            self._clause.add(self._relation(_apart(item)))
        elif not self._add_generator(item, False):
            self._clause.add(self._relation(item))

    def add_joined(self, join: exp.Join) -> None:
        """Add an item with its ON.

        Raises:
            SqlError: ``INVALID_LATERAL_JOIN_TYPE``.
        """
        if isinstance(join.this, exp.Lateral):
            self._check_lateral(join)
        if lateral_query(join.this) is not None:
            self._add_lateral_query(join)
            return
        if makes_rows(join.this) and not self._is_relation(join):
            self._add_generated(join)
            return
        if isinstance(join.this, exp.Lateral) and makes_rows(join.this):
            if not _is_constant(join.this):
                self._add_lateral_query(join)
                return
            join = _with_item(join, _apart(join.this))
        if self._pending and (self._clause.inputs or not _is_plain(join)):
            source = self._made()
            self._clause = FromClause(self.context, self.outer)
            self._clause.add(source)
        if self._clause.inputs:
            found = _generator(join.this, False)
            if found is not None:
                self._check_apart(found[0], self._clause.scope())
            self._add_join(self._clause, join)
            return
        # Only constant rows stand before it, which are made of its rows.
        self._clause.add(self._relation(join.this))
        self._above += self._conditions(join)

    def add_lateral(self, lateral: exp.Lateral) -> None:
        """Add a LATERAL VIEW."""
        if not self._add_generator(lateral, bool(lateral.args.get("outer"))):
            raise refused_generator(lateral, "LATERAL_VIEW_NOT_YET", self.context)

    def add_where(self, where: exp.Expr) -> None:
        """Add the conditions of WHERE, after all items; those with subqueries are for the joined rows."""
        for part in conjuncts(where):
            (self.later if has_query(part) else self._where).append(part)

    def joined(self) -> Source:
        """Return the rows of all items.

        Raises:
            UnsupportedSql: ``QUERY_WITHOUT_TABLE`` where no item is a relation.
        """
        return self._made()

    def _is_relation(self, join: exp.Join) -> bool:
        """Return whether generated rows are joined like those of a table, and not made of each row before them."""
        if _is_long(join.this):
            return True
        on = join.args.get("on")
        always = on is None or (isinstance(on, exp.Boolean) and on.this)
        return not _is_plain(join) and not (isinstance(join.this, exp.Lateral) and always)

    def _add_generated(self, join: exp.Join) -> None:
        self._add_generator(join.this, not _is_plain(join))
        self._above += self._conditions(join)

    def _check_lateral(self, join: exp.Join) -> None:
        """Refuse LATERAL behind words that it cannot follow, as Spark does."""
        message = ""
        if join.args.get("using") or join.args.get("method"):
            message = "USING and NATURAL cannot stand beside LATERAL: write JOIN LATERAL … ON with the condition."
        elif not joins_lateral(join):
            side, kind = (str(join.args.get(part) or "").upper() for part in ("side", "kind"))
            message = (
                f"{f'{side} {kind}'.strip()} JOIN cannot stand before LATERAL, whose rows are made of the row beside "
                "them: write JOIN LATERAL or LEFT JOIN LATERAL, or join a subquery in FROM without LATERAL."
            )
        if message:
            raise self.context.error("INVALID_LATERAL_JOIN_TYPE", message, join)

    def _add_lateral_query(self, join: exp.Join) -> None:
        query = lateral_query(join.this) or _selected(join.this)
        alias, on = join.this.args.get("alias"), self._conditions(join)
        on = [part for part in on if not (isinstance(part, exp.Boolean) and part.this)]
        optional = str(join.args.get("side") or "").upper() == "LEFT"
        self._add_lateral(LateralQuery(query, alias, optional, tuple(on)))

    def _add_lateral(self, lateral: LateralQuery) -> None:
        leads = not self._clause.inputs
        self._pending.append(_Pending(lambda source: self._laterals.joined(source, lateral), lateral.query, leads))

    def _add_generator(self, item: exp.Expr, outer: bool) -> bool:
        found = _generator(item, outer)
        if found is None:
            return False
        call, alias = found

        def made(source: Source) -> Made:
            if _is_constant(item) and any(isinstance(node, RecursiveScan) for node in walk(source.node)):
                # A recursive member joins its rows, and makes none of them.
                return self._beside(source, call, alias)
            seen = source
            if not isinstance(item, exp.Lateral):
                # Only what is LATERAL sees the items before it; the values of outer columns are those of the subquery.
                self._check_apart(call, Scope(source.columns, source.node.schema, self.context, self.outer))
                seen = replace(source, columns=tuple(c for c in source.columns if c.qualifier == CARRIED))
            added, columns = generated(seen, call, self.context, self.outer)
            return added, aliased(columns, alias, self.context, call.origin)

        self._pending.append(_Pending(made, call.origin, not self._clause.inputs))
        return True

    def _beside(self, source: Source, call: Call, alias: exp.Expr | None) -> Made:
        """Return all pairs of ``source`` and constant rows, which are kept."""
        rows = rows_apart(call, self.context, self.outer)
        clause = FromClause(self.context, self.outer)
        clause.add(source)
        clause.add(Source(rows.node, aliased(rows.columns, alias, self.context, call.origin)))
        joined = clause.joined()
        return joined, joined.columns[len(source.columns) :]

    def _check_apart(self, call: Call, scope: Scope) -> None:
        """Say what to do where a function in FROM names a column of an item before it."""
        if call.function == "values":
            # They name no columns, with LATERAL or without.
            return
        for column in (node for argument in call.arguments for node in argument.find_all(exp.Column)):
            is_outer = self.outer is not None and self.outer.located(column) is not None
            if not is_outer and scope.find(column) is not None:
                message = (
                    f"'{column.sql(dialect='spark')}' is a column of another item of FROM, which only LATERAL sees: "
                    "write LATERAL before the function."
                )
                raise self.context.error("UNRESOLVED_COLUMN", message, column)

    def _conditions(self, join: exp.Join) -> list[exp.Expr]:
        on = join.args.get("on")
        return [] if on is None else conjuncts(on)

    def _made(self) -> Source:
        """Join the relations and make the pending generators' rows."""
        if not self._clause.inputs:
            self._clause.add(one_row(self._pending[0].origin, self.context, "a query of constants"))
        above = [*self._above]
        if self._where:
            # Made once without conditions: so it is known what the columns are called that they may read.
            before = self._clause.joined()
            every = self._with_pending(before)[0]
            names = every.columns[len(before.columns) :]
            scope = Scope(every.columns, every.node.schema, self.context, self.outer)
            for condition in self._where:
                if names_outer(condition, scope):
                    self.later.append(condition)
                elif self._reads_generated(condition, names):
                    above.append(condition)
                else:
                    self._clause.add_where(condition)
        source, leading = self._with_pending(self._clause.joined())
        shown = [column for column in source.columns if column not in leading]
        result = filtered(replace(source, columns=(*leading, *shown)), above, "WHERE", self.context, self.outer)
        self._pending, self._above, self._where = [], [], []
        return result

    def _with_pending(self, source: Source) -> tuple[Source, tuple[NamedColumn, ...]]:
        """Return ``source`` with the rows of all that is pending, and the columns that stand before all others."""
        leading: tuple[NamedColumn, ...] = ()
        for pending in self._pending:
            made, columns = pending.made(source)
            leading += columns if pending.leads else ()
            source = Source(made.node, (*source.columns, *columns))
        return source, leading

    def _reads_generated(self, condition: exp.Expr, made: Sequence[NamedColumn]) -> bool:
        names, qualifiers = {c.name.lower() for c in made}, {(c.qualifier or "").lower() for c in made}
        scope = self._clause.scope()
        for column in condition.find_all(exp.Column):
            if column.find_ancestor(exp.Query) not in (None, condition.find_ancestor(exp.Query)):
                continue
            parts = [part.name.lower() for part in column.parts]
            if parts[0] in qualifiers or (len(parts) == 1 and parts[0] in names):
                return True
            try:
                found = scope.find(column)
            except SqlError:
                return True
            if found is None and (self.outer is None or self.outer.located(column) is None):
                return True
        return False


def _is_plain(join: exp.Join) -> bool:
    """Return whether a join keeps the pairs that its condition lets through, and no other rows."""
    kind = str(join.args.get("side") or join.args.get("kind") or "").upper()
    return kind in ("", "INNER", "CROSS") and not join.args.get("using") and not join.args.get("method")


def _generator(item: exp.Expr, outer: bool) -> tuple[Call, exp.Expr | None] | None:
    alias = item.args.get("alias")
    if item.args.get("pivots") or item.args.get("joins"):
        return None
    if isinstance(item, exp.Lateral):
        values = item.this.this if isinstance(item.this, exp.Subquery) else None
        call = call_of(values if isinstance(values, exp.Values) else item.this, outer)
    elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Values):
        call, alias = call_of(item.this, outer), alias or item.this.args.get("alias")
    else:
        call = call_in(item)
    return None if call is None else (call, alias)


def _is_long(item: exp.Expr) -> bool:
    """Return whether an item is VALUES of so many rows that they are kept, and not made for every row beside them."""
    found = _generator(item, False)
    return found is not None and found[0].function == "values" and len(found[0].arguments) > ROWS_BESIDE_MAX


def _is_constant(item: exp.Expr) -> bool:
    """Return whether a generator reads no column; VALUES may read none."""
    found = _generator(item, False)
    if found is None:
        return False
    return found[0].function == "values" or all(argument.find(exp.Column) is None for argument in found[0].arguments)


def _apart(item: exp.Expr) -> exp.Expr:
    """Return a generator without LATERAL, which means nothing where it reads no column."""
    if not isinstance(item, exp.Lateral):
        return item
    rows = item.this.copy()
    made = rows if isinstance(rows, exp.Subquery) else exp.Table(this=rows)
    made.set("alias", item.args.get("alias"))
    made.parent = item.parent
    return made


def _selected(item: exp.Lateral) -> exp.Subquery:
    """Return a generator behind LATERAL as a subquery."""
    made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=item.this.copy())))
    query = exp.Subquery(this=made)
    query.parent = item
    return query


def _with_item(join: exp.Join, item: exp.Expr) -> exp.Join:
    result = join.copy()
    result.parent = join.parent
    result.set("this", item)
    return result


def only_relations(items: Sequence[exp.Expr], laterals: Sequence[exp.Expr]) -> bool:
    """Return whether FROM has no generators: then a ``FromClause`` plans it alone."""
    return not laterals and not any(map(makes_rows, items))
