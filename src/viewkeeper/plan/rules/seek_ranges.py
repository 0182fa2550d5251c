"""Conditions of WHERE between the sides of an inner join become its own, where it then has something to seek by."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Expression, is_portable
from viewkeeper.plan.join_branches import branches_of
from viewkeeper.plan.keys import all_of, conjuncts_of, where
from viewkeeper.plan.nodes import Filter, Join, Node, inputs_of, with_inputs
from viewkeeper.plan.ranges import is_range, ranges_of


def seek_ranges(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Move the conditions of a filter above an inner join into it, if that lets it seek a range or join by branches.

    Those that cannot raise move; of the others comparisons, where nothing that can raise stands before them: they are
    judged on the same pairs as before.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT k, id FROM t, u WHERE a = v AND b < id"))
        Project k := k, id := id
          Join on a = v where (b < id), seeks b < id on the left, id > b on the right
            Scan t (k, a, b)
            Scan u (id, v)
    """
    node = with_inputs(node, [seek_ranges(child) for child in inputs_of(node)])
    if not isinstance(node, Filter) or not isinstance(node.input, Join) or node.input.kind != "inner":
        return node
    join = node.input
    own = [] if join.residual is None else conjuncts_of(join.residual)
    moving: list[Expression] = []
    staying: list[Expression] = []
    for part in conjuncts_of(node.condition):
        is_sure = not can_raise(part) and is_portable(part)
        overtakes = any(map(can_raise, [*own, *staying]))
        moves = is_sure or (is_range(part, len(join.left.schema)) and not overtakes)
        (moving if moves else staying).append(part)
    moved = replace(join, residual=all_of([*own, *moving]), schema=node.schema, key=node.key)
    if not moving or (ranges_of(moved) is None and branches_of(moved) is None):
        return node
    return where(moved, staying)
