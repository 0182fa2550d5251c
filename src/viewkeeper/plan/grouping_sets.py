"""GROUPING SETS, CUBE and ROLLUP: which groupings a GROUP BY clause asks for, and GROUPING() over them.

Every grouping is a set of positions among the clause's expressions. The rows are expanded, once per grouping, with NULL
for the expressions that it leaves out and the grouping's number behind them; then one Aggregate does them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Literal
from viewkeeper.plan.binding import bound_column, normalized
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import Expand, Node
from viewkeeper.zset.schema import INT, Column, Schema

_MOST_SETS = 1024
_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)

Grouping = tuple[int, ...]


@dataclass(frozen=True)
class GroupBy:
    """What a query block groups by.

    Args:
        trees: the bound expressions, each once.
        sets: the groupings as positions in ``trees``; None for a plain GROUP BY of all of them.
    """

    trees: tuple[exp.Expr, ...] = ()
    sets: tuple[Grouping, ...] | None = None


def group_by(group: exp.Group, item: Callable[[exp.Expr], exp.Expr], context: Context) -> GroupBy:
    """Return what a GROUP BY clause asks for.

    Args:
        group: the clause.
        item: binds one of its expressions.
        context: the statement.

    Raises:
        SqlError: ``GROUPING_SIZE_LIMIT_EXCEEDED`` for more than 1,024 groupings.
    """
    reader = _Reader(item)
    plain = [*group.expressions]
    behind = [found for kind in ("grouping_sets", "cube", "rollup") for found in group.args.get(kind) or ()]
    if behind:
        # GROUP BY a, b WITH ROLLUP, and GROUP BY a, b GROUPING SETS ((a), (b)).
        columns = [reader.positions(tree) for tree in plain]
        parts = [reader.sets(found, columns) for found in behind]
    else:
        parts = [reader.sets(tree, None) for tree in plain]
    if not behind and not any(isinstance(tree, _SETS) for tree in plain):
        return GroupBy(tuple(reader.trees))
    count = 1
    for part in parts:
        count *= len(part)
    if count > _MOST_SETS:
        message = f"The clause asks for {count:,} groupings, at most {_MOST_SETS:,} can be kept: list those you need."
        raise context.error("GROUPING_SIZE_LIMIT_EXCEEDED", message, group)
    sets = tuple(tuple(dict.fromkeys(p for part in chosen for p in part)) for chosen in product(*parts))
    return GroupBy(tuple(reader.trees), sets)


class _Reader:
    """Collects the expressions of a clause and numbers them."""

    def __init__(self, item: Callable[[exp.Expr], exp.Expr]) -> None:
        self._item = item
        self.trees: list[exp.Expr] = []
        self._known: list[exp.Expr] = []

    def positions(self, tree: exp.Expr) -> Grouping:
        """Return the positions of an expression, or of all in parentheses."""
        if isinstance(tree, exp.Tuple):
            return tuple(p for part in tree.expressions for p in self.positions(part))
        if isinstance(tree, exp.Paren):
            return self.positions(tree.this)
        bound = self._item(tree)
        plain = normalized(bound)
        if plain not in self._known:
            self._known.append(plain)
            self.trees.append(bound)
        return (self._known.index(plain),)

    def sets(self, tree: exp.Expr, columns: Sequence[Grouping] | None) -> list[Grouping]:
        """Return the groupings of one item; ``columns`` are those of WITH CUBE and WITH ROLLUP."""
        if isinstance(tree, exp.GroupingSets):
            return [found for part in tree.expressions for found in self.sets(part, None)]
        if not isinstance(tree, _SETS):
            return [self.positions(tree)]
        parts = [self.positions(part) for part in tree.expressions] or list(columns or ())
        lengths = range(len(parts), -1, -1)
        if isinstance(tree, exp.Rollup):
            chosen = [tuple(parts[:length]) for length in lengths]
        else:
            chosen = [found for length in lengths for found in combinations(parts, length)]
        return [tuple(p for part in found for p in part) for found in chosen]


def is_left_out(position: int, sets: Sequence[Grouping]) -> bool:
    """Return whether some grouping leaves the expression at ``position`` out."""
    return any(position not in grouping for grouping in sets)


def expanded(node: Node, width: int, sets: Sequence[Grouping]) -> Expand:
    """Return the rows of ``node`` once per grouping; its first ``width`` columns are the clause's expressions.

    The columns are those of ``node``, the grouped ones nullable where a grouping leaves them out, and the grouping's
    number behind those.
    """
    columns = node.schema.columns
    groups = [
        Column(column.name, column.type, column.nullable or is_left_out(i, sets))
        for i, column in enumerate(columns[:width])
    ]
    schema = Schema((*groups, Column("__grouping", INT, False), *columns[width:]))
    rest = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(columns) if i >= width)
    projections = []
    for number, positions in enumerate(sets):
        kept: list[ColumnRef | Literal] = [
            ColumnRef(i, column.type, column.nullable) if i in positions else Literal(None, column.type)
            for i, column in enumerate(columns[:width])
        ]
        projections.append((*kept, Literal(number, INT), *rest))
    return Expand(node, tuple(projections), schema, None)


def grouping_bits(sets: Sequence[Grouping], width: int, positions: Sequence[int], sql_type: str) -> exp.Expr:
    """Return a bound tree for GROUPING() or GROUPING_ID(): one bit per position, 1 where the grouping leaves it out."""
    number = bound_column(ColumnRef(width, INT, False))
    values = [
        sum(1 << shift for shift, position in enumerate(reversed(positions)) if position not in grouping)
        for grouping in sets
    ]
    branches = [
        exp.If(
            this=exp.EQ(this=number.copy(), expression=exp.Literal.number(i)),
            true=exp.cast(exp.Literal.number(value), sql_type, dialect="spark"),
        )
        for i, value in enumerate(values[:-1])
    ]
    last = exp.cast(exp.Literal.number(values[-1]), sql_type, dialect="spark")
    return exp.Case(ifs=branches, default=last) if branches else last
