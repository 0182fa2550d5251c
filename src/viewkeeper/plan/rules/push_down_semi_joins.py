"""Semi joins move below joins, to the side that they read: rows without a partner are not joined first."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.plan.nodes import Filter, Join, Node, Project, inputs_of, walk, with_inputs
from viewkeeper.plan.rules.substitute import plain_places


def push_down_semi_joins(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Push semi joins down whose right side is restricted, so that few rows are left (IN over a HAVING).

    Below a join of all pairs semi and anti joins move in any case. Those with a further condition stay: it is judged on
    pairs, of which there are fewer behind the joins. None overtakes a filter that can raise.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT t.k, u.id FROM t, u WHERE t.b = u.v AND t.k IN (SELECT t_k FROM u WHERE v > 3)"))
        Project k := k, id := id
          Join on b = v
            Semi join on k = t_k
              Scan t (k, b)
              Project t_k := t_k, __key_0_id := id
                Filter (v > 3)
                  Scan u (id, t_k, v)
            Scan u (id, v)
    """
    node = with_inputs(node, [push_down_semi_joins(child) for child in inputs_of(node)])
    if not isinstance(node, Join) or node.kind not in ("semi", "anti") or node.residual is not None:
        return node
    moved = _placed(node.left, node, node.left_keys)
    return node if moved is None else _typed(moved, node)


def _typed(node: Node, like: Join) -> Node:
    return node if node.schema == like.schema else replace(node, schema=like.schema)


def _placed(below: Node, join: Join, keys: tuple[int, ...]) -> Node | None:
    """Return ``below`` with the semi join inside it, None where it cannot go in."""
    if isinstance(below, Filter) and not can_raise(below.condition):
        inner = _placed(below.input, join, keys)
        return None if inner is None else replace(below, input=inner)
    if isinstance(below, Project):
        places = plain_places(below, keys)
        inner = None if places is None else _placed(below.input, join, places)
        return None if inner is None else replace(below, input=inner)
    if isinstance(below, Join) and below.kind == "inner" and keys and _may_enter(below, join):
        width = len(below.left.schema)
        if max(keys) < width:
            return replace(below, left=_here(below.left, join, keys))
        if min(keys) >= width:
            return replace(below, right=_here(below.right, join, tuple(key - width for key in keys)))
    return None


def _may_enter(below: Join, join: Join) -> bool:
    if below.residual is not None and can_raise(below.residual):
        return False
    is_restricted = any(isinstance(node, Filter) for node in walk(join.right))
    return not below.left_keys or (join.kind == "semi" and is_restricted)


def _here(below: Node, join: Join, keys: tuple[int, ...]) -> Node:
    further = _placed(below, join, keys)
    return further or replace(join, left=below, left_keys=keys, schema=below.schema, key=below.key)
