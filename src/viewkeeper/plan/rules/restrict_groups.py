"""Aggregates that are joined by their groups compute only those that can have a partner, where that costs nothing.

    (R ⋈ F) ⋈ γ(R)    =    (R ⋈ F) ⋈ γ(R ⋉ F)        both joins and γ by the same column of R

Each row of the left side has a partner in F, so a group without one has no partner at the left. It is what a subquery
gives that compares a row with others of its kind (TPC-H's queries 2 and 17): with a restricted F few groups are kept in
place of all. The rows of R are arranged for its join with F anyway. Elsewhere the groups may be smaller than the rows
that a semi join would have to keep, so it is left alone; and so it is where something is computed on the way that can
raise: a row without a partner fails the view as ever. In databases that recompute this is a magic set (Mumick,
Finkelstein, Pirahesh, Ramakrishnan: Magic is relevant, SIGMOD 1990).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Expression
from viewkeeper.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    RecursiveScan,
    Scan,
    inputs_of,
    walk,
    with_inputs,
)
from viewkeeper.plan.rules.substitute import places_below, plain_places

# Of each column that is asked for, where it stands; None where it is computed or lost.
_Places = tuple[int | None, ...]


@dataclass(frozen=True)
class _Stored:
    """Rows of a relation that meet a condition, and the numbers of the columns that are asked for."""

    relation: int
    condition: Expression | None
    numbers: _Places


def restrict_groups(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Give aggregates that are joined by their groups the semi join that the other side is restricted by.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(
        ...     example_tree(
        ...         "SELECT id FROM u JOIN t ON t_k = k"
        ...         " WHERE c = 'x' AND v > (SELECT AVG(v) FROM u AS other WHERE other.t_k = t.k)"
        ...     )
        ... )
        Project id := id, __key_0_k := k
          Join on k = t_k where (cast(v as double) > avg(v)), seeks cast(v as double) > avg(v) on the left
            Join on t_k = k
              Scan u (id, t_k, v)
              Filter (c = 'x')
                Scan t (k, c)
            Aggregate by t_k: avg(v) := avg(argument of avg(v))
              Project t_k := t_k, argument of avg(v) := v
                Semi join on t_k = k
                  Scan u (id, t_k, v)
                  Filter (c = 'x')
                    Scan t (k, c)
    """
    node = with_inputs(node, [restrict_groups(child) for child in inputs_of(node)])
    if not isinstance(node, Join) or node.null_safe or node.kind not in ("inner", "left", "semi", "anti"):
        return node
    right = _restricted(node.right, node.right_keys, node.left, node.left_keys)
    if node.kind != "inner":
        return replace(node, right=right)
    return replace(node, right=right, left=_restricted(node.left, node.left_keys, node.right, node.right_keys))


def _restricted(node: Node, keys: Sequence[int], other: Node, other_keys: Sequence[int]) -> Node:
    """Return ``node`` with the aggregate at its top restricted to groups that ``other`` can have partners for."""
    if _can_raise(node):
        return node
    if isinstance(node, Filter):
        return replace(node, input=_restricted(node.input, keys, other, other_keys))
    if isinstance(node, Project):
        below = plain_places(node, keys)
        return node if below is None else replace(node, input=_restricted(node.input, below, other, other_keys))
    if not isinstance(node, Aggregate) or not keys or max(keys) >= len(node.group):
        return node
    groups = tuple(node.group[key] for key in keys)
    stored = _stored(node.input, groups)
    if stored is None:
        return node
    for join, places in _joins(other, tuple(other_keys)):
        for mine, theirs, restriction, restriction_keys in _sides(join, places):
            wanted = replace(stored, numbers=tuple(stored.numbers[index] for index in theirs))
            if None in wanted.numbers or not isinstance(mine, Filter | Scan) or not _restricts(restriction):
                continue
            if _stored(mine, tuple(theirs.values())) == wanted:
                left_keys = tuple(groups[index] for index in theirs)
                return replace(node, input=_where_stored(node.input, left_keys, restriction, restriction_keys))
    return node


def _restricts(restriction: Node) -> bool:
    """Return whether ``restriction`` is restricted itself, and may be read once more.

    Not what a recursion is at: its member is linear in it, which a product with itself is not. Nor what computes
    something that can raise: elsewhere a semi join may come to stand below it, and spare it rows.
    """
    nodes = [*walk(restriction)]
    if any(isinstance(below, RecursiveScan) for below in nodes):
        return False
    if any(isinstance(below, Project) and _can_raise(below) for below in nodes):
        return False
    return any(isinstance(below, Filter) for below in nodes)


def _can_raise(node: Node) -> bool:
    """Return whether ``node`` computes something that can raise, on rows that a semi join below would spare it."""
    if isinstance(node, Project):
        return any(map(can_raise, node.expressions))
    condition = node.condition if isinstance(node, Filter) else node.residual if isinstance(node, Join) else None
    return condition is not None and can_raise(condition)


def _joins(node: Node, places: _Places) -> Iterator[tuple[Join, _Places]]:
    """Yield the inner joins below ``node`` that each of its rows comes from, and where columns stand in their rows."""
    if isinstance(node, Filter):
        yield from _joins(node.input, places)
    elif isinstance(node, Project):
        yield from _joins(node.input, places_below(node, places))
    elif isinstance(node, Join) and node.kind in ("left", "semi", "anti"):
        width = len(node.left.schema)
        yield from _joins(node.left, tuple(p if p is not None and p < width else None for p in places))
    elif isinstance(node, Join) and node.kind == "inner":
        yield node, places
        width = len(node.left.schema)
        both = dict(zip(node.left_keys, (width + key for key in node.right_keys), strict=True))
        # A key's column holds the same as its partner's.
        to_left = {right: left for left, right in both.items()}
        lefts = [None if p is None else p if p < width else to_left.get(p) for p in places]
        rights = [None if p is None else p if p >= width else both.get(p) for p in places]
        yield from _joins(node.left, tuple(lefts))
        yield from _joins(node.right, tuple(None if p is None else p - width for p in rights))


def _sides(join: Join, places: _Places) -> Iterator[tuple[Node, dict[int, int], Node, tuple[int, ...]]]:
    """Yield each side of ``join`` whose whole key is asked for.

    With it: which of the columns asked for is which column of its key, the other side, and that side's key.
    """
    if join.null_safe or not join.left_keys:
        return
    width = len(join.left.schema)
    asked = {place: index for index, place in reversed([*enumerate(places)]) if place is not None}
    pairs = [*zip(join.left_keys, join.right_keys, strict=True)]
    found = [asked.get(left, asked.get(width + right)) for left, right in pairs]
    chosen = [index for index in found if index is not None]
    if len(set(chosen)) < len(pairs):
        return
    yield join.left, dict(zip(chosen, join.left_keys, strict=True)), join.right, join.right_keys
    yield join.right, dict(zip(chosen, join.right_keys, strict=True)), join.left, join.left_keys


def _stored(node: Node, places: _Places) -> _Stored | None:
    """Return the relation that the columns come from, through what semi joins are pushed down through."""
    if isinstance(node, Scan):
        return _Stored(node.relation.id, None, tuple(None if p is None else node.columns[p] for p in places))
    if _can_raise(node):
        return None
    if isinstance(node, Filter):
        below = _stored(node.input, places)
        return replace(below, condition=node.condition) if below is not None and isinstance(node.input, Scan) else below
    if isinstance(node, Project):
        return _stored(node.input, places_below(node, places))
    if isinstance(node, Join) and node.kind == "inner" and None not in places:
        width = len(node.left.schema)
        known = [place for place in places if place is not None]
        if max(known) < width:
            return _stored(node.left, places)
        if min(known) >= width:
            return _stored(node.right, tuple(place - width for place in known))
    return None


def _where_stored(node: Node, keys: Sequence[int], restriction: Node, restriction_keys: tuple[int, ...]) -> Node:
    """Return ``node`` with a semi join where ``_stored`` has found its rows."""
    if isinstance(node, Project):
        below = plain_places(node, keys)
        assert below is not None, "its rows are those of a relation"
        return replace(node, input=_where_stored(node.input, below, restriction, restriction_keys))
    if isinstance(node, Join):
        width = len(node.left.schema)
        if max(keys) < width:
            return replace(node, left=_where_stored(node.left, keys, restriction, restriction_keys))
        shifted = [key - width for key in keys]
        return replace(node, right=_where_stored(node.right, shifted, restriction, restriction_keys))
    if isinstance(node, Filter) and not isinstance(node.input, Scan):
        return replace(node, input=_where_stored(node.input, keys, restriction, restriction_keys))
    return Join(node, restriction, tuple(keys), restriction_keys, None, node.schema, node.key, "semi")
