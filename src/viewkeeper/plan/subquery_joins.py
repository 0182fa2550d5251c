"""Subqueries as joins: what is joined to the rows of the query around a subquery, and how its value then reads.

Conditions between the two are expressions over the columns of the subquery's node, then the *operands*: what the query
around compares and correlates with, plain columns of its node by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, shift_columns
from viewkeeper.plan.binding import bound_column
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlation import Block, sorted_out
from viewkeeper.plan.join_order import with_keys
from viewkeeper.plan.keys import all_of
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Join, Node, Project, UnionAll, reference
from viewkeeper.zset.schema import BIGINT, BOOLEAN, Column, Schema

_TRUE, _FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)
_ZERO = Literal(0, BIGINT)
COUNT_ROWS = AggregateCall("count_star", None, None, BIGINT, False)


@dataclass(frozen=True)
class Match:
    """What connects the rows of the query around with those of a subquery.

    Args:
        keys: equalities: the inner side, the outer side, whether NULL equals NULL.
        residual: further conditions.
    """

    keys: tuple[tuple[Expression, Expression, bool], ...] = ()
    residual: tuple[Expression, ...] = ()

    def with_conditions(self, conditions: Sequence[Expression], width: int) -> Match:
        """Return it with more conditions, over ``width`` inner columns, then the operands."""
        keys, residual = sorted_out(conditions, width)
        return Match(tuple(dict.fromkeys((*self.keys, *keys))), (*self.residual, *residual))

    @property
    def inner(self) -> list[Expression]:
        """The inner sides of the keys."""
        return [key[0] for key in self.keys]

    def grouped(self) -> Match:
        """Return it over an Aggregate by ``inner``."""
        keys = ((ColumnRef(i, e.type, e.nullable), outer, safe) for i, (e, outer, safe) in enumerate(self.keys))
        return Match(tuple(keys), self.residual)


@dataclass
class SubqueryJoins:
    """Joins one subquery to the rows around it.

    Args:
        node: the rows around; what is joined stands behind their columns.
        inner: the subquery's rows.
        operands: positions of the operands in ``node``.
        context: the statement.
    """

    node: Node
    inner: Node
    operands: tuple[int, ...]
    context: Context
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = len(self.inner.schema)

    def schema(self) -> Schema:
        """Return the columns that conditions are over."""
        outer = tuple(self.node.schema.columns[position] for position in self.operands)
        return Schema((*self.inner.schema.columns, *outer))

    def operand(self, number: int) -> ColumnRef:
        """Return the reference of an operand in conditions."""
        column = self.node.schema.columns[self.operands[number]]
        return ColumnRef(self.width + number, column.type, column.nullable)

    def call(self, function: str, *arguments: Expression) -> Expression:
        """Return a call of the registry's ``function``."""
        return resolve(function, list(arguments), self.context.session)

    def chosen(self, match: Match, kind: str) -> Node:
        """Return the rows around that have a match (``semi``) or none (``anti``)."""
        return self._joined(self.node, self.inner, match, kind)

    def marked(self, match: Match) -> tuple[Node, exp.Expr]:
        """Return the rows around and a BOOLEAN tree that says whether they have a match."""
        if match.residual:
            return self._marked_by_branches(match)
        if not match.keys:
            return self._any_at_all()
        found = self.grouped(match.inner, [], [])
        columns = (*found.schema.columns, Column("found", BOOLEAN, False))
        right = Project(found, (*references(found), _TRUE), Schema(columns), found.key)
        node, offset = self.looked_up(right, match.grouped())
        mark = bound_column(ColumnRef(offset + len(match.keys), BOOLEAN, True))
        return node, exp.Paren(this=exp.Not(this=exp.Is(this=mark, expression=exp.Null())))

    def grouped(
        self, keys: Sequence[Expression], arguments: Sequence[Expression], calls: Sequence[AggregateCall]
    ) -> Aggregate:
        """Return the subquery's rows by ``keys``; the arguments of ``calls`` count from 0 in ``arguments``."""
        inputs = (*keys, *arguments)
        columns = tuple(Column(f"in_{i}", e.type, e.nullable) for i, e in enumerate(inputs))
        below: Node = Project(self.inner, inputs, Schema(columns), None) if inputs else self.inner
        moved = tuple(call.shifted({i: len(keys) + i for i in range(len(arguments))}) for call in calls)
        outputs = tuple(Column(call.function, call.type, call.nullable) for call in calls)
        group = tuple(range(len(keys)))
        return Aggregate(below, group, moved, Schema((*columns[: len(keys)], *outputs)), group)

    def looked_up(self, right: Node, match: Match) -> tuple[Node, int]:
        """Return the rows around with the at most one row of ``right`` for their keys behind them, and its offset.

        Args:
            right: rows that the match's keys tell apart.
            match: its inner sides are over ``right``; a residual reads operands only.
        """
        kind = "left" if match.keys or match.residual else "inner"
        joined = self._joined(self.node, right, match, kind)
        return joined, len(joined.schema) - len(right.schema)

    def paired(self, match: Match, kind: str) -> tuple[Node, int]:
        """Return each of the rows around beside each of its matches (``inner``, ``left``), and where those begin."""
        joined = self._joined(self.node, self.inner, match, kind)
        offset, left, right = len(joined.left.schema), joined.left.key, joined.right.key
        if left is None or right is None:
            return replace(joined, key=None), offset
        # Of one row around all matches have the same values in the columns that are compared.
        more = (offset + position for position in right if position not in joined.right_keys)
        return replace(joined, key=(*left, *more)), offset

    def _any_at_all(self) -> tuple[Node, exp.Expr]:
        counted = self.grouped([], [], [COUNT_ROWS])
        flag = self.call("gt", ColumnRef(0, BIGINT, False), _ZERO)
        right = Project(counted, (flag,), Schema((Column("any", BOOLEAN, False),)), ())
        node, offset = self.looked_up(right, Match())
        return node, bound_column(ColumnRef(offset, BOOLEAN, False))

    def _marked_by_branches(self, match: Match) -> tuple[Node, exp.Expr]:
        """Mark rows whose match no key alone decides: those with a match, and those without."""
        branches = []
        for kind, mark in (("semi", _TRUE), ("anti", _FALSE)):
            rows = self._joined(self.node, self.inner, match, kind)
            columns = (*rows.schema.columns, Column("found", BOOLEAN, False))
            branches.append(Project(rows, (*references(rows), mark), Schema(columns), rows.key))
        node = UnionAll(tuple(branches), branches[0].schema, branches[0].key)
        return node, bound_column(ColumnRef(len(node.schema) - 1, BOOLEAN, False))

    def _joined(self, left: Node, right: Node, match: Match, kind: str) -> Join:
        operands = {self.width + number: position for number, position in enumerate(self.operands)}
        left, left_keys = with_keys(left, [shift_columns(outer, operands) for _, outer, _ in match.keys])
        right, right_keys = with_keys(right, [inner for inner, _, _ in match.keys])
        offset = len(left.schema)
        moved = operands | {i: offset + i for i in range(self.width)}
        residual = all_of([shift_columns(condition, moved) for condition in match.residual])
        columns = left.schema.columns
        if kind in ("left", "inner"):
            optional = (replace(column, nullable=column.nullable or kind == "left") for column in right.schema.columns)
            columns = (*columns, *optional)
        null_safe = frozenset(i for i, key in enumerate(match.keys) if key[2])
        return Join(
            left, right, tuple(left_keys), tuple(right_keys), residual, Schema(columns), left.key, kind, null_safe
        )


def references(node: Node) -> tuple[ColumnRef, ...]:
    """Return a reference to each column of ``node``."""
    return tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns))


def over_domain(block: Block, node: Node, outer: Sequence[int]) -> Node:
    """Return the rows of ``block``, its domain being the distinct values of the columns ``outer`` of ``node``."""
    if block.stand_in is None:
        return block.node
    return block.with_domain(distinct_values(node, outer, block.stand_in.schema))


def distinct_values(node: Node, positions: Sequence[int], schema: Schema) -> Aggregate:
    """Return the distinct values of the columns ``positions`` of ``node``, called as in ``schema``."""
    values = tuple(reference(node, position) for position in positions)
    group = tuple(range(len(values)))
    return Aggregate(Project(node, values, schema, None), group, (), schema, group)


def empty_value(call: AggregateCall) -> Literal:
    """Return what an aggregate that is never NULL gives for no rows."""
    return Literal(() if call.type.name == "ARRAY" else 0, call.type)


def only_row(value: Expression, rows: Expression) -> Call:
    """Return ``value``, which fails where it is one of several ``rows``; NULL where there is none."""
    return Call("only_row", (value, rows), value.type, True)


def with_column(node: Node, expression: Expression, name: str) -> tuple[Node, exp.Expr]:
    """Return ``node`` with a computed nullable column behind its own, and the tree of that column."""
    columns = (*node.schema.columns, Column(name, expression.type, True))
    result = Project(node, (*references(node), expression), Schema(columns), node.key)
    return result, bound_column(ColumnRef(len(columns) - 1, expression.type, True))


def three_valued(found: exp.Expr, unknown: exp.Expr) -> exp.Expr:
    """Return TRUE where ``found``, else NULL where ``unknown``, else FALSE."""
    branches = [
        exp.If(this=found, true=exp.Boolean(this=True)),
        exp.If(this=unknown, true=exp.Null()),
    ]
    return exp.Case(ifs=branches, default=exp.Boolean(this=False))


def is_true(tree: exp.Expr) -> exp.Expr:
    """Return ``tree``, FALSE where it is NULL."""
    return exp.Paren(this=exp.Is(this=tree, expression=exp.Boolean(this=True)))
