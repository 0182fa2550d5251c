"""A FROM clause in which some items are made of other items' rows: LATERAL VIEW, LATERAL, UNNEST, VALUES, range().

Relations are collected in a ``FromClause`` and joined; then each row makes those of the generators behind them, in
order. A relation that follows a generator begins a new clause, whose first input is all that came before it. So
conditions between relations stay join conditions, and those that read generated columns become filters above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.plan.binding import conjuncts, has_query
from viewkeeper.plan.context import Context
from viewkeeper.plan.generators import Call, aliased, call_of, filtered, generated
from viewkeeper.plan.joins import FromClause
from viewkeeper.plan.scopes import NamedColumn, OuterNames, Source

Relation = Callable[[exp.Expr], Source]
AddJoin = Callable[[FromClause, exp.Join], None]

_POSSIBLE_NAMES = frozenset(("col", "key", "value", "pos", "id"))


@dataclass(frozen=True)
class _Pending:
    """A generator whose rows are not made yet.

    Args:
        call: the call.
        alias: its table alias.
        leads: whether it stands before the first relation, as its columns do.
    """

    call: Call
    alias: exp.Expr | None
    leads: bool

    @property
    def qualifier(self) -> str:
        return (self.alias.name if self.alias is not None else "").lower()

    @property
    def names(self) -> frozenset[str]:
        """What its columns may be called."""
        listed = self.alias.args.get("columns") if self.alias is not None else None
        if listed:
            return frozenset(identifier.name.lower() for identifier in listed)
        return _POSSIBLE_NAMES | {f"col{i}" for i in range(100)}


def makes_rows(item: exp.Expr) -> bool:
    """Return whether an item of FROM is a generator."""
    return _generator(item, False) is not None


class FromItems:
    """Plans the items of FROM in order.

    Args:
        context: the statement.
        relation: plans an item that is a relation.
        add_join: adds a joined relation to a clause.
    """

    def __init__(self, context: Context, relation: Relation, add_join: AddJoin) -> None:
        self.context = context
        self.outer: OuterNames | None = None
        self.later: list[exp.Expr] = []
        self._relation = relation
        self._add_join = add_join
        self._clause = FromClause(context)
        self._pending: list[_Pending] = []
        self._above: list[exp.Expr] = []
        self._where: list[exp.Expr] = []

    def add(self, item: exp.Expr) -> None:
        """Add the first item."""
        if not self._add_generator(item, False):
            self._clause.add(self._relation(item))

    def add_joined(self, join: exp.Join) -> None:
        """Add an item with its ON.

        Raises:
            UnsupportedSql: outer joins with constant rows, NATURAL and USING over generated columns.
        """
        outer = str(join.args.get("side") or "").upper() == "LEFT"
        if makes_rows(join.this):
            self._add_generated(join, outer)
            return
        if self._clause.inputs and self._pending:
            source = self._made()
            self._clause = FromClause(self.context)
            self._clause.add(source)
        if self._clause.inputs:
            self._add_join(self._clause, join)
            return
        # Only constant rows stand before it.
        if self._kind(join) not in ("", "INNER", "CROSS") or join.args.get("using") or join.args.get("method"):
            raise self.context.refusal("VALUES_NOT_YET", join, "an outer join of VALUES, or one with USING,")
        self._clause.add(self._relation(join.this))
        self._above += self._conditions(join)

    def add_lateral(self, lateral: exp.Lateral) -> None:
        """Add a LATERAL VIEW."""
        if not self._add_generator(lateral, bool(lateral.args.get("outer"))):
            raise self.context.refusal("LATERAL_VIEW_NOT_YET", lateral)

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

    def _add_generated(self, join: exp.Join, outer: bool) -> None:
        kind = self._kind(join)
        on = join.args.get("on")
        always = on is None or (isinstance(on, exp.Boolean) and on.this)
        lateral = isinstance(join.this, exp.Lateral)
        plain = kind in ("", "INNER", "CROSS") and not join.args.get("using") and not join.args.get("method")
        if not plain and not (outer and kind == "LEFT" and always and lateral):
            what = "an outer join with generated rows under a condition, or one with USING,"
            raise self.context.refusal("LATERAL_VIEW_NOT_YET" if lateral else "VALUES_NOT_YET", join, what)
        self._add_generator(join.this, outer)
        self._above += self._conditions(join)

    def _add_generator(self, item: exp.Expr, outer: bool) -> bool:
        found = _generator(item, outer)
        if found is None:
            return False
        call, alias = found
        self._pending.append(_Pending(call, alias, not self._clause.inputs))
        return True

    def _kind(self, join: exp.Join) -> str:
        return str(join.args.get("side") or join.args.get("kind") or "").upper()

    def _conditions(self, join: exp.Join) -> list[exp.Expr]:
        on = join.args.get("on")
        return [] if on is None else conjuncts(on)

    def _made(self) -> Source:
        """Join the relations and make the pending generators' rows."""
        if not self._clause.inputs:
            raise self.context.refusal("QUERY_WITHOUT_TABLE", self._pending[0].call.origin, "a query of constants")
        above = [*self._above]
        for condition in self._where:
            if self._reads_generated(condition):
                above.append(condition)
            else:
                self._clause.add_where(condition)
        source = self._clause.joined()
        leading: tuple[NamedColumn, ...] = ()
        for pending in self._pending:
            made, columns = generated(source, pending.call, self.context)
            columns = aliased(columns, pending.alias, self.context, pending.call.origin)
            leading += columns if pending.leads else ()
            source = Source(made.node, (*source.columns, *columns))
        shown = [column for column in source.columns if column not in leading]
        result = filtered(replace(source, columns=(*leading, *shown)), above, "WHERE", self.context)
        self._pending, self._above, self._where = [], [], []
        return result

    def _reads_generated(self, condition: exp.Expr) -> bool:
        scope = self._clause.scope()
        for column in condition.find_all(exp.Column):
            if column.find_ancestor(exp.Query) not in (None, condition.find_ancestor(exp.Query)):
                continue
            parts = [part.name.lower() for part in column.parts]
            if any(parts[0] == p.qualifier or (len(parts) == 1 and parts[0] in p.names) for p in self._pending):
                return True
            try:
                found = scope.find(column)
            except SqlError:
                return True
            if found is None:
                return True
        return False


def _generator(item: exp.Expr, outer: bool) -> tuple[Call, exp.Expr | None] | None:
    alias = item.args.get("alias")
    if isinstance(item, exp.Lateral):
        call = call_of(item.this, outer)
        return None if call is None else (call, alias)
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Values):
        return _generator_of(item.this, alias or item.this.args.get("alias"), outer)
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Func):
        return _generator_of(item.this, alias, outer)
    return _generator_of(item, alias, outer) if isinstance(item, (exp.Values, exp.Unnest)) else None


def _generator_of(tree: exp.Expr, alias: exp.Expr | None, outer: bool) -> tuple[Call, exp.Expr | None] | None:
    call = call_of(tree, outer)
    return None if call is None else (call, alias)


def only_relations(items: Sequence[exp.Expr], laterals: Sequence[exp.Expr]) -> bool:
    """Return whether FROM has no generators: then a ``FromClause`` plans it alone."""
    return not laterals and not any(map(makes_rows, items))
