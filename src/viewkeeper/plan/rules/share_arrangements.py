"""Joins that read one relation under one key read the same columns of it, so that its rows are arranged once.

Each side of a join is arranged with the columns that somebody reads. Where a query reads a table twice under one key,
with other columns, both would be kept: all columns together are fewer bytes than the two, and each changed row is
written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from viewkeeper.expressions.tree import Expression, shift_columns
from viewkeeper.plan.join_branches import branches_of
from viewkeeper.plan.nodes import Filter, Join, Node, Project, Scan, inputs_of, reference, walk, with_inputs
from viewkeeper.plan.ranges import ranges_of
from viewkeeper.plan.rules.substitute import over_moved, plain_places
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class _Arranged:
    """What is arranged of a relation, but for its columns: positions are those of the relation."""

    relation: int
    condition: Expression | None
    keys: tuple[int, ...]
    identity: tuple[int, ...] | None
    with_nulls: bool


_Columns = Mapping[_Arranged, tuple[int, ...]]


def share_arrangements(root: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Widen what joins read of a relation to what all of them read under the same key.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(
        ...     example_tree(
        ...         "SELECT k, u.name, w.v FROM u JOIN t ON k = u.t_k LEFT JOIN u AS w ON w.t_k = k AND w.id <> b"
        ...     )
        ... )
        Project k := k, name := name, v := v, __key_0_id := id, __key_1_id := id
          Left join on k = t_k where (id <> b)
            Project id := id, t_k := t_k, name := name, k := k, b := b
              Join on t_k = k
                Scan u (id, t_k, v, name)
                Scan t (k, b)
            Scan u (id, t_k, v, name)
    """
    read: dict[_Arranged, list[tuple[int, ...]]] = {}
    for join in (node for node in walk(root) if isinstance(node, Join)):
        for side, keys in _sides(join):
            source = _source(side)
            if source is not None:
                read.setdefault(_arranged(source, keys, join), []).append(source.scan.columns)
    several = {arranged: tuple(sorted({*chain(*found)})) for arranged, found in read.items() if len(found) > 1}
    return _widened(root, several) if several else root


@dataclass(frozen=True)
class _Source:
    """A side of a join that is read from a relation alone.

    Args:
        scan: what is read.
        condition: which of its rows, over the columns of the scan.
        places: where each column of the side stands in the scan.
    """

    scan: Scan
    condition: Expression | None
    places: tuple[int, ...]


def _source(side: Node) -> _Source | None:
    """Return what a side is read from; None where it is more than some columns of some rows of a relation."""
    if isinstance(side, Project):
        below, columns = _source(side.input), plain_places(side, range(len(side.expressions)))
        if below is None or columns is None or len({*columns}) < len(columns):
            return None
        return replace(below, places=tuple(below.places[i] for i in columns))
    if isinstance(side, Filter) and isinstance(side.input, Scan):
        return _Source(side.input, side.condition, tuple(range(len(side.schema))))
    return _Source(side, None, tuple(range(len(side.schema)))) if isinstance(side, Scan) else None


def _sides(join: Join) -> list[tuple[Node, tuple[int, ...]]]:
    # Rows that are kept in the order of a range are another arrangement, and so are those of an OR's branches.
    if ranges_of(join) is not None or branches_of(join) is not None:
        return []
    return [(join.left, join.left_keys), (join.right, join.right_keys)]


def _arranged(source: _Source, keys: tuple[int, ...], join: Join) -> _Arranged:
    columns, scan = source.scan.columns, source.scan
    condition = None if source.condition is None else shift_columns(source.condition, dict(enumerate(columns)))
    by = tuple(columns[source.places[key]] for key in keys)
    identity = None if scan.key is None else tuple(columns[position] for position in scan.key)
    return _Arranged(scan.relation.id, condition, by, identity, bool(join.null_safe))


def _widened(node: Node, columns: _Columns) -> Node:
    node = with_inputs(node, [_widened(child, columns) for child in inputs_of(node)])
    if not isinstance(node, Join) or not _sides(node):
        return node
    left, left_map = _wide(node.left, node.left_keys, node, columns)
    right, right_map = _wide(node.right, node.right_keys, node, columns)
    if left is node.left and right is node.right:
        return node
    joined, both = over_moved(node, left, left_map, right, right_map)
    key = None if node.key is None else tuple(both[position] for position in node.key)
    joined = replace(joined, schema=_schema(node, left.schema, right.schema, both), key=key)
    positions = [both[position] for position in range(len(node.schema))]
    if positions == list(range(len(joined.schema))):
        return joined
    return Project(joined, tuple(reference(joined, position) for position in positions), node.schema, node.key)


def _wide(side: Node, keys: tuple[int, ...], join: Join, columns: _Columns) -> tuple[Node, dict[int, int]]:
    """Return a side with all columns that are kept of it, and old → new positions."""
    source = _source(side)
    wanted = None if source is None else columns.get(_arranged(source, keys, join))
    if source is None or wanted is None:
        return side, {i: i for i in range(len(side.schema))}
    scan = source.scan
    moved = {old: wanted.index(column) for old, column in enumerate(scan.columns)}
    # Of a view hidden columns can be read too.
    schema = Schema((*scan.relation.schema.columns, *scan.relation.hidden.columns)).select(wanted)
    key = None if scan.key is None else tuple(moved[position] for position in scan.key)
    wide: Node = scan if wanted == scan.columns else Scan(scan.relation, wanted, schema, key)
    if source.condition is not None:
        wide = Filter(wide, shift_columns(source.condition, moved), schema, key)
    return side if wide == side else wide, {old: moved[place] for old, place in enumerate(source.places)}


def _schema(join: Join, left: Schema, right: Schema, mapping: Mapping[int, int]) -> Schema:
    """Return the columns of a join whose sides have got more: those that it had are as they were."""
    may_lack_left, may_lack_right = join.kind in ("right", "full"), join.kind in ("left", "full")
    lefts = [replace(column, nullable=column.nullable or may_lack_left) for column in left.columns]
    rights = [replace(column, nullable=column.nullable or may_lack_right) for column in right.columns]
    columns = lefts if join.kind in ("semi", "anti") else lefts + rights
    for old, column in enumerate(join.schema.columns):
        columns[mapping[old]] = column
    return Schema(tuple(columns))
