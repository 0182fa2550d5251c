"""Every node computes only the columns that are read above it, or that belong to its key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from viewkeeper.expressions.tree import ColumnRef, columns_of, shift_columns
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
    shifted_order,
    with_inputs,
)
from viewkeeper.plan.rules.substitute import over_moved


def prune_columns(root: Node, needed: frozenset[int]) -> Node:
    """Remove columns that nobody reads; the root keeps all of its own.

    A computed column that can raise goes too when nobody reads it, as in Spark. Keys are kept everywhere but below an
    aggregate, down to the next join.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT c, COUNT(*) AS n FROM (SELECT k, c, 1 / a AS r FROM t) q GROUP BY c"))
        Aggregate by c: n := count_star()
          Scan t (c)
    """
    pruned, mapping = _pruned(root, range(len(root.schema)), True)
    assert all(old == new for old, new in mapping.items())
    return pruned


def _pruned(node: Node, needed: Iterable[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    """Return ``node`` with the ``needed`` columns (and its key where ``keyed``), and old → new positions."""
    wanted = set(needed)
    if keyed and node.key is not None:
        wanted |= set(node.key)
    if not wanted:
        # COUNT(*) reads no column, but rows without columns cannot be counted in Arrow batches.
        wanted = set((node.key or (0,))[:1]) & set(range(len(node.schema)))
    if isinstance(node, Scan):
        return _pruned_scan(node, wanted, keyed)
    if isinstance(node, Filter):
        below, mapping = _pruned(node.input, wanted | columns_of(node.condition), keyed)
        condition = shift_columns(node.condition, mapping)
        schema = node.schema.select(tuple(sorted(mapping)))
        return Filter(below, condition, schema, below.key), mapping
    if isinstance(node, Project):
        return _pruned_project(node, wanted, keyed)
    if isinstance(node, Join):
        return _pruned_join(node, wanted, keyed)
    if isinstance(node, Aggregate):
        return _pruned_aggregate(node, wanted)
    if isinstance(node, UnionAll):
        return _pruned_union(node, wanted, keyed)
    if isinstance(node, TopK):
        return _pruned_top_k(node, wanted)
    if isinstance(node, Window):
        return _pruned_window(node, wanted, keyed)
    if isinstance(node, Generate):
        return _pruned_generate(node, wanted, keyed)
    if isinstance(node, Expand):
        return _pruned_expand(node, wanted, keyed)
    return _unpruned(node)


def _unpruned(node: Node) -> tuple[Node, dict[int, int]]:
    """Return ``node`` with all its columns: each of its inputs is pruned by itself, keeping its own columns."""
    inputs = [prune_columns(child, frozenset(range(len(child.schema)))) for child in inputs_of(node)]
    return with_inputs(node, inputs), {i: i for i in range(len(node.schema))}


def _kept(wanted: set[int], width: int) -> tuple[list[int], dict[int, int]]:
    order = [position for position in range(width) if position in wanted]
    return order, {old: new for new, old in enumerate(order)}


def _key(node: Node, mapping: dict[int, int], keyed: bool) -> tuple[int, ...] | None:
    return tuple(mapping[position] for position in node.key) if keyed and node.key is not None else None


def _pruned_scan(node: Scan, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    order, mapping = _kept(wanted, len(node.schema))
    columns = tuple(node.columns[position] for position in order)
    return Scan(node.relation, columns, node.schema.select(tuple(order)), _key(node, mapping, keyed)), mapping


def _pruned_project(node: Project, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    order, mapping = _kept(wanted, len(node.schema))
    expressions = [node.expressions[position] for position in order]
    reads = frozenset().union(*map(columns_of, expressions))
    below, inner = _pruned(node.input, reads, keyed and node.key is not None and node.input.key is not None)
    moved = tuple(shift_columns(expression, inner) for expression in expressions)
    return Project(below, moved, node.schema.select(tuple(order)), _key(node, mapping, keyed)), mapping


def _pruned_join(node: Join, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    width = len(node.left.schema)
    reads = wanted | (columns_of(node.residual) if node.residual is not None else frozenset())
    # Arrangements hold a join's inputs: with their keys, each row stands for itself.
    left, left_map = _pruned(node.left, {p for p in reads if p < width} | set(node.left_keys), True)
    right, right_map = _pruned(node.right, {p - width for p in reads if p >= width} | set(node.right_keys), True)
    joined, both = over_moved(node, left, left_map, right, right_map)
    mapping = left_map if node.kind in ("semi", "anti") else both
    return replace(joined, schema=node.schema.select(tuple(sorted(mapping))), key=_key(node, mapping, True)), mapping


def _pruned_aggregate(node: Aggregate, wanted: set[int]) -> tuple[Node, dict[int, int]]:
    wanted = wanted | set(range(len(node.group)))
    # An aggregate of its own accord can overflow: it is pruned only as Spark prunes it, when nobody reads it.
    order, mapping = _kept(wanted, len(node.schema))
    calls = [node.calls[position - len(node.group)] for position in order if position >= len(node.group)]
    reads = {position for call in calls for position in call.reads}
    # An order that leaves ties is completed by the key of the rows.
    below, inner = _pruned(node.input, set(node.group) | reads, any(call.needs_key for call in calls))
    moved = tuple(call.shifted(inner) for call in calls)
    group = tuple(inner[position] for position in node.group)
    return Aggregate(below, group, moved, node.schema.select(tuple(order)), node.key), mapping


def _pruned_top_k(node: TopK, wanted: set[int]) -> tuple[Node, dict[int, int]]:
    rank = len(node.input.schema)
    reads = (wanted - {rank}) | set(node.partition) | {item.column for item in node.order}
    # The key breaks ties.
    below, mapping = _pruned(node.input, reads, True)
    mapping = mapping | {rank: len(below.schema)}
    return replace(
        node,
        input=below,
        partition=tuple(mapping[position] for position in node.partition),
        order=shifted_order(node.order, mapping),
        schema=node.schema.select(tuple(sorted(mapping))),
        key=_key(node, mapping, True),
    ), mapping


def _pruned_window(node: Window, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    width = len(node.input.schema)
    # A total that overflows and that nobody reads is as if it had not been computed, as in Spark.
    kept = [i for i in range(len(node.calls)) if width + i in wanted]
    if not kept:
        return _pruned(node.input, wanted, keyed)
    calls = [node.calls[i] for i in kept]
    reads = {position for call in calls for position in call.reads}
    reads |= {p for p in wanted if p < width} | set(node.partition) | {item.column for item in node.order}
    below, inner = _pruned(node.input, reads, True)
    mapping = inner | {width + i: len(below.schema) + number for number, i in enumerate(kept)}
    return replace(
        node,
        input=below,
        partition=tuple(inner[position] for position in node.partition),
        order=shifted_order(node.order, inner),
        calls=tuple(call.shifted(inner) for call in calls),
        schema=node.schema.select(tuple(sorted(mapping))),
        key=_key(node, mapping, True),
    ), mapping


def _pruned_union(node: UnionAll, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    order, mapping = _kept(wanted, len(node.schema))
    branches = []
    for branch in node.inputs:
        below, inner = _pruned(branch, wanted, keyed)
        branches.append(_selected(below, [inner[position] for position in order]))
    return UnionAll(tuple(branches), node.schema.select(tuple(order)), _key(node, mapping, keyed)), mapping


def _pruned_generate(node: Generate, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    width = len(node.kept)
    order, mapping = _kept(wanted | set(range(width, len(node.schema))), len(node.schema))
    kept = [node.kept[position] for position in order if position < width]
    reads = columns_of(node.collection).union(kept)
    below, inner = _pruned(node.input, reads, keyed and node.key is not None)
    return replace(
        node,
        input=below,
        kept=tuple(inner[position] for position in kept),
        collection=shift_columns(node.collection, inner),
        schema=node.schema.select(tuple(order)),
        key=_key(node, mapping, keyed),
    ), mapping


def _pruned_expand(node: Expand, wanted: set[int], keyed: bool) -> tuple[Node, dict[int, int]]:
    order, mapping = _kept(wanted, len(node.schema))
    chosen = [[projection[position] for position in order] for projection in node.projections]
    reads = {output.index for projection in chosen for output in projection if isinstance(output, ColumnRef)}
    below, inner = _pruned(node.input, reads, keyed and node.key is not None)
    projections = tuple(
        tuple(replace(o, index=inner[o.index]) if isinstance(o, ColumnRef) else o for o in projection)
        for projection in chosen
    )
    return Expand(below, projections, node.schema.select(tuple(order)), _key(node, mapping, keyed)), mapping


def _selected(node: Node, order: list[int]) -> Node:
    if order == list(range(len(node.schema))):
        return node
    columns = [node.schema.columns[position] for position in order]
    expressions = tuple(ColumnRef(p, c.type, c.nullable) for p, c in zip(order, columns, strict=True))
    return Project(node, expressions, type(node.schema)(tuple(columns)), None)
