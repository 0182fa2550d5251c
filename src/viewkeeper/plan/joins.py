"""The FROM clause: its inputs, what their columns are called, and the conditions of ON, USING and WHERE.

All conditions are translated over *global* positions, the columns of all inputs side by side in FROM order;
``join_order.py`` then joins the inputs. A right or full join is put together at once with all that stands before it,
since no later condition can move below it to the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression, columns_of, is_portable
from viewkeeper.plan.binding import bind, bound_column, conjuncts, has_query
from viewkeeper.plan.context import Context
from viewkeeper.plan.disjunctions import implied, parts_of
from viewkeeper.plan.join_order import Assembly, Condition
from viewkeeper.plan.nodes import Node, Project
from viewkeeper.plan.scopes import CARRIED, NamedColumn, OuterNames, Scope, Source
from viewkeeper.plan.translate import Translator
from viewkeeper.zset.schema import Column, Schema


class FromClause:
    """Collects inputs and conditions, then joins them.

    Args:
        context: the statement.
        outer: in a subquery, the names of the query around it.

    ``later`` are the conditions of WHERE that joins cannot use: those with subqueries, and in a subquery those that
    are pulled up out of it.
    """

    def __init__(self, context: Context, outer: OuterNames | None = None) -> None:
        self.context = context
        self.outer = outer
        self.later: list[exp.Expr] = []
        self.inputs: list[Source] = []
        self.kinds: list[str] = []
        self.columns: list[NamedColumn] = []
        self.conditions: list[Condition] = []

    @property
    def has_domain(self) -> bool:
        """Whether outer columns come into this subquery by a domain, which is its first input."""
        return any(column.qualifier == CARRIED for column in self.columns)

    @property
    def schema(self) -> Schema:
        """The columns of all inputs side by side; those of a left join's right side may be NULL."""
        columns: list[Column] = []
        for source, kind in zip(self.inputs, self.kinds, strict=True):
            own = source.node.schema.columns
            columns += [replace(column, nullable=True) for column in own] if kind == "left" else own
        return Schema(tuple(columns))

    def add(self, source: Source) -> None:
        """Add an input whose columns all stay visible."""
        offset = len(self.schema)
        self.inputs.append(source)
        self.kinds.append("inner")
        self.columns += [replace(column, position=column.position + offset) for column in source.columns]

    def add_joined(self, source: Source, join: exp.Join, kind: str) -> None:
        """Add the right side of a join with its ON, USING or NATURAL.

        Args:
            source: the right side.
            join: the tree.
            kind: as of ``nodes.Join``.

        Raises:
            SqlError: names that are unknown, ambiguous or used twice.
        """
        before = list(self.columns)
        self.add(source)
        added = self.columns[len(before) :]
        pairs = self._using(join, before, added)
        number = len(self.inputs) - 1
        for pair in pairs:
            trees = [bound_column(self.scope().reference(column.position)) for column in pair]
            condition = exp.EQ(this=trees[0], expression=trees[1])
            condition.parent = join
            self._add_conditions(condition, number)
        on = join.args.get("on")
        for part in conjuncts(on) if on is not None else ():
            if not has_query(part):
                self._add_conditions(bind(part, self.scope(), aggregates="ON"), number, kind)
                continue
            if kind != "inner":
                raise self.context.refusal("SUBQUERY_NOT_YET", part, "a subquery in ON of an outer, semi or anti join")
            # Of an inner join it is the same below WHERE, where subqueries are joined.
            self.later.append(part)
        if kind in ("right", "full") and self.later:
            raise self.context.refusal("SUBQUERY_NOT_YET", join, "a subquery in ON before a RIGHT or FULL JOIN")
        self.kinds[number] = kind
        self._show(before, added, pairs, kind)
        if kind in ("right", "full"):
            self._put_together()
        if kind == "full":
            self._coalesce(pairs, join)

    def add_where(self, where: exp.Expr) -> None:
        """Add the conditions of WHERE, after all inputs."""
        select = where.find_ancestor(exp.Select)
        later = {item.alias.lower() for item in select.expressions if item.alias} if select is not None else set()
        scope = Scope(self.columns, self.schema, self.context, self.outer, later=later)
        self._add_conditions(bind(where, scope, aggregates="WHERE"), None)

    def scope(self, columns: Sequence[NamedColumn] | None = None) -> Scope:
        """Return the scope of ``columns`` (all by default) over global positions."""
        return Scope(self.columns if columns is None else columns, self.schema, self.context, self.outer)

    def joined(self) -> Source:
        """Join all inputs and filter by what remains of WHERE."""
        assembly = Assembly(
            [source.node for source in self.inputs], self.kinds, self.conditions, self.schema, self.context
        )
        node = assembly.joined()
        return Source(node, tuple(replace(c, position=assembly.position[c.position]) for c in self.columns))

    def _using(
        self, join: exp.Join, before: Sequence[NamedColumn], added: Sequence[NamedColumn]
    ) -> list[tuple[NamedColumn, NamedColumn]]:
        """Return the columns that USING or NATURAL compares, of both sides."""
        using = [identifier.name for identifier in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = {column.name.lower() for column in added if not column.merged}
            using = [column.name for column in before if not column.merged and column.name.lower() in names]
        pairs = []
        for name in using:
            pair = []
            for scope in (self.scope(before), self.scope(added)):
                node = exp.Column(this=exp.to_identifier(name))
                node.parent = join
                found = scope.find(node)
                if found is None:
                    raise scope.unresolved(node)
                pair.append(found[0])
            pairs.append((pair[0], pair[1]))
        return pairs

    def _show(
        self,
        before: Sequence[NamedColumn],
        added: Sequence[NamedColumn],
        pairs: Sequence[tuple[NamedColumn, NamedColumn]],
        kind: str,
    ) -> None:
        """Order the columns as Spark shows them: those of USING first, each once; of a semi join only the left ones."""
        merged = []
        for left, right in pairs:
            shows_left, shows_right = kind not in ("right", "full"), kind == "right"
            shown = [replace(left, merged=not shows_left), replace(right, merged=not shows_right)]
            merged += shown[::-1] if kind == "right" else shown
        paired = [column for pair in pairs for column in pair]
        self.columns = [*merged, *(column for column in (*before, *added) if column not in paired)]
        if kind in ("semi", "anti"):
            positions = {column.position for column in added}
            self.columns = [column for column in self.columns if column.position not in positions]

    def _put_together(self) -> None:
        """Join what is there; it becomes the only input."""
        source = self.joined()
        self.inputs, self.kinds, self.conditions = [source], ["inner"], []
        self.columns = list(source.columns)

    def _coalesce(self, pairs: Sequence[tuple[NamedColumn, NamedColumn]], join: exp.Join) -> None:
        """Add to a full join, for each column of USING, the value of the side that has it."""
        if not pairs:
            return
        node = self.inputs[0].node
        translator = Translator(node.schema, self.context)
        outputs = [ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns)]
        columns = list(node.schema.columns)
        shown = []
        # Put together, the columns of USING stand first, left and right in turn.
        sides = [self.columns[2 * i : 2 * i + 2] for i in range(len(pairs))]
        values = []
        for left, right in sides:
            trees = [bound_column(outputs[side.position]) for side in (left, right)]
            call = exp.Anonymous(this="coalesce", expressions=trees)
            call.parent = join
            value = translator.expression(call)
            shown.append(NamedColumn(None, left.name, len(columns)))
            columns.append(Column(left.name, value.type, value.nullable))
            values.append(value)
        projected: Node = Project(node, (*outputs, *values), Schema(tuple(columns)), node.key)
        self.columns = [*shown, *self.columns]
        self.inputs = [Source(projected, tuple(self.columns))]

    def _add_conditions(self, tree: exp.Expr, home: int | None, kind: str = "inner") -> None:
        translator = Translator(self.schema, self.context)
        where = "WHERE" if home is None else "ON"
        for whole in conjuncts(tree):
            translator.condition(whole, where)
            for part in parts_of(whole, translator.expression):
                expression = translator.condition(part, where)
                self.conditions.append(Condition(part, expression, home))
                self._add_implied(part, expression, home, kind)

    def _add_implied(self, tree: exp.Expr, expression: Expression, home: int | None, kind: str) -> None:
        """Restrict single inputs by what an OR over several of them asks of each."""
        owner = [number for number, source in enumerate(self.inputs) for _ in source.node.schema.columns]
        reads = sorted({owner[position] for position in columns_of(expression)})
        if len(reads) == 1 or not is_portable(expression):
            return
        translator = Translator(self.schema, self.context)
        # Of an outer, semi or anti join only the partners can be restricted.
        for number in reads if kind == "inner" else [number for number in reads if number == home]:
            columns = frozenset(position for position, input_ in enumerate(owner) if input_ == number)
            part = implied(tree, columns, translator.expression)
            if part is not None:
                self.conditions.append(Condition(part, translator.expression(part), home))
