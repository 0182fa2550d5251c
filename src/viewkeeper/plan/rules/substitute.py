"""What stands above a node, rewritten for what is below: through a projection, or where columns have moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, SparkExpression, columns_of, shift_columns
from viewkeeper.plan.nodes import Join, Node, Project


def substituted(expression: Expression, inputs: Sequence[Expression]) -> Expression:
    """Return ``expression`` with each column replaced by the expression at its position.

    Example:
        >>> from viewkeeper.zset.schema import INT
        >>> substituted(ColumnRef(1, INT), [ColumnRef(5, INT), ColumnRef(7, INT)]).index
        7
    """
    if isinstance(expression, ColumnRef):
        return inputs[expression.index]
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(substituted(argument, inputs) for argument in expression.arguments))
    if isinstance(expression, SparkExpression):
        plain = {i: inputs[i] for i in columns_of(expression)}
        return shift_columns(expression, {i: e.index for i, e in plain.items() if isinstance(e, ColumnRef)})
    return expression


def places_below(node: Project, places: Sequence[int | None]) -> tuple[int | None, ...]:
    """Return where the columns at ``places`` stand in the input of ``node``, None for what is computed or None."""
    columns = [None if place is None else node.expressions[place] for place in places]
    return tuple(column.index if isinstance(column, ColumnRef) else None for column in columns)


def plain_places(node: Project, places: Sequence[int]) -> tuple[int, ...] | None:
    """Return where the columns at ``places`` stand in the input of ``node``, None where one of them is computed."""
    below = places_below(node, places)
    found = tuple(place for place in below if place is not None)
    return found if len(found) == len(below) else None


def over_moved(
    node: Join, left: Node, left_map: Mapping[int, int], right: Node, right_map: Mapping[int, int]
) -> tuple[Join, dict[int, int]]:
    """Return a join over inputs whose columns have moved, and old → new positions in both together.

    Its schema and key are still those of before.

    Args:
        node: the join.
        left: its left input.
        left_map: old → new positions there; columns may have come or gone.
        right: its right input.
        right_map: likewise.
    """
    width = len(node.left.schema)
    both = {**left_map, **{width + old: len(left.schema) + new for old, new in right_map.items()}}
    joined = replace(
        node,
        left=left,
        right=right,
        left_keys=tuple(left_map[position] for position in node.left_keys),
        right_keys=tuple(right_map[position] for position in node.right_keys),
        residual=None if node.residual is None else shift_columns(node.residual, both),
    )
    return joined, both
