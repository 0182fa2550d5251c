"""Conditions that cannot raise move below projections, joins, unions and aggregates, towards the scans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, SparkExpression, columns_of, shift_columns
from viewkeeper.plan.keys import all_of, conjuncts_of, where
from viewkeeper.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Node,
    Project,
    Scan,
    TopK,
    UnionAll,
    Window,
    inputs_of,
    with_inputs,
)
from viewkeeper.plan.rules.substitute import substituted
from viewkeeper.zset.schema import BOOLEAN


def push_down_filters(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Push conditions down.

    A condition may pass a projection whose columns it reads plainly, the side of a join that has all its columns, each
    branch of a union, an aggregate whose group columns it reads (never a global one, which has a row for no input), and
    windows and first rows of partitions whose columns it reads. A condition that can raise stays where it is, so it
    sees fewer rows than before, never more. As in Spark, a safe condition may so spare the expressions above it rows on
    which they would fail; but it never overtakes a filter that can raise.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT t.k, u.v FROM t JOIN u ON u.t_k = t.k WHERE u.v > 3"))
        Project k := k, v := v, __key_0_id := id
          Join on k = t_k
            Scan t (k)
            Filter (v > 3)
              Scan u (id, t_k, v)
    """
    if isinstance(node, Filter):
        staying, moving = _split(node.condition)
        below = node.input
        for condition in moving:
            below, rest = _push(below, condition)
            if rest is not None:
                staying.append(rest)
        below = push_down_filters(below)
        result = where(below, _in_order(node.condition, staying))
        return result if isinstance(result, Scan) else replace(result, schema=node.schema)
    if isinstance(node, Join) and node.residual is not None:
        node = _residual_pushed(node, node.residual)
    return with_inputs(node, [push_down_filters(child) for child in inputs_of(node)])


def _residual_pushed(node: Join, residual: Expression) -> Join:
    """Move conditions of matching to the side that they read, where only partners are looked for on that side."""
    staying, moving = _split(residual)
    joined = node
    for condition in moving:
        rest: Expression | None = condition
        if not isinstance(condition, SparkExpression) and columns_of(condition):
            into_left, into_right = node.kind in ("inner", "semi", "right"), node.kind not in ("right", "full")
            joined, rest = _into_side(joined, condition, into_left, into_right)
        if rest is not None:
            staying.append(rest)
    return replace(joined, residual=all_of(_in_order(residual, staying)))


def _split(condition: Expression) -> tuple[list[Expression], list[Expression]]:
    """Return the conditions that can raise, and those that cannot."""
    parts = conjuncts_of(condition)
    return [part for part in parts if can_raise(part)], [part for part in parts if not can_raise(part)]


def _in_order(condition: Expression, staying: Sequence[Expression]) -> list[Expression]:
    return [part for part in conjuncts_of(condition) if part in staying]


def _push(node: Node, condition: Expression) -> tuple[Node, Expression | None]:
    """Return ``node`` with ``condition`` inside it, and the condition again where it cannot go in."""
    if isinstance(condition, SparkExpression) or not columns_of(condition):
        return node, condition
    if isinstance(node, Filter):
        if can_raise(node.condition):
            return node, condition
        below, rest = _push(node.input, condition)
        if rest is None:
            return replace(node, input=below), None
        return Filter(node.input, _both(node.condition, condition), node.schema, node.key), None
    if isinstance(node, Project):
        return _through_project(node, condition)
    if isinstance(node, Join):
        return _into_join(node, condition)
    if isinstance(node, UnionAll):
        return replace(node, inputs=tuple(_placed(branch, condition) for branch in node.inputs)), None
    if isinstance(node, Generate):
        return _below_generate(node, condition)
    if isinstance(node, Expand):
        return _below_expand(node, condition)
    if isinstance(node, Aggregate) and node.group:
        return _below_aggregate(node, condition)
    if isinstance(node, Window | TopK) and columns_of(condition) <= set(node.partition):
        return _below_partitions(node, condition)
    return node, condition


def _placed(node: Node, condition: Expression) -> Node:
    below, rest = _push(node, condition)
    return below if rest is None else where(below, [rest])


def _both(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), BOOLEAN, left.nullable or right.nullable)


def _through_project(node: Project, condition: Expression) -> tuple[Node, Expression | None]:
    reads = columns_of(condition)
    if not all(isinstance(node.expressions[i], (ColumnRef, Literal)) for i in reads):
        return node, condition
    return replace(node, input=_placed(node.input, substituted(condition, node.expressions))), None


def _into_join(node: Join, condition: Expression) -> tuple[Join, Expression | None]:
    # Above an outer join a condition may drop rows that have no partner: it passes to the side that is kept whole.
    return _into_side(node, condition, node.kind not in ("right", "full"), node.kind in ("inner", "right"))


def _into_side(node: Join, condition: Expression, into_left: bool, into_right: bool) -> tuple[Join, Expression | None]:
    width = len(node.left.schema)
    reads = columns_of(condition)
    if max(reads) < width and into_left:
        return replace(node, left=_placed(node.left, condition)), None
    if min(reads) >= width and into_right:
        local = shift_columns(condition, {i: i - width for i in reads})
        return replace(node, right=_placed(node.right, local)), None
    return node, condition


def _below_partitions(node: Window | TopK, condition: Expression) -> tuple[Node, Expression | None]:
    types = [node.schema.columns[i].type for i in columns_of(condition)]
    if any(sql_type.is_floating or sql_type.is_nested for sql_type in types):
        # Rows of one partition may then answer differently: -0.0 and 0.0 are together.
        return node, condition
    return replace(node, input=_placed(node.input, condition)), None


def _below_generate(node: Generate, condition: Expression) -> tuple[Node, Expression | None]:
    reads = columns_of(condition)
    if max(reads) >= len(node.kept):
        return node, condition
    local = shift_columns(condition, {i: node.kept[i] for i in reads})
    return replace(node, input=_placed(node.input, local)), None


def _below_expand(node: Expand, condition: Expression) -> tuple[Node, Expression | None]:
    outputs = {i: {projection[i] for projection in node.projections} for i in columns_of(condition)}
    plain = {i: next(iter(found)) for i, found in outputs.items() if len(found) == 1}
    moved = {i: output.index for i, output in plain.items() if isinstance(output, ColumnRef)}
    if len(moved) < len(outputs):
        return node, condition
    return replace(node, input=_placed(node.input, shift_columns(condition, moved))), None


def _below_aggregate(node: Aggregate, condition: Expression) -> tuple[Node, Expression | None]:
    reads = columns_of(condition)
    if max(reads) >= len(node.group):
        return node, condition
    if any(node.schema.columns[i].type.is_floating or node.schema.columns[i].type.is_nested for i in reads):
        # The group's value is one of several that are equal (-0.0 and 0.0), so the row's own may answer differently.
        return node, condition
    local = shift_columns(condition, {i: node.group[i] for i in reads})
    return replace(node, input=_placed(node.input, local)), None
