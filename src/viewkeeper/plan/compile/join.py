"""Joins to operators: both sides by the join key, each arranged once, and what is not an inner join by composition.

    semi, anti      SemiJoin(L, R)                          with a residual: MatchedRows(L, pairs)
    left            pairs + anti(L, R) padded with NULLs
    right           pairs + anti(R, L) padded with NULLs
    full            pairs + both

The pairs are those of the inner join, found by ranges where a condition compares the sides (``plan/ranges.py``).
Arrangements are those of inner joins too: a row with a NULL key has no partner, so nobody looks it up, and an anti join
passes it on from the delta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Session, is_portable
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.join import Join
from viewkeeper.operators.matched_rows import MatchedRows
from viewkeeper.operators.project import Project
from viewkeeper.operators.range_order import RangeOrder
from viewkeeper.operators.range_seeks import Seek
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.operators.union import UnionAll
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, Partition, compiles, digest, key_of
from viewkeeper.plan.join_branches import Branch, branches_of, chosen, pairs_of, whole
from viewkeeper.plan.ranges import JoinRanges, ranges_of
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class _Rows:
    """One input of a join: as it is compiled, at the owner of ``columns``, and what tells its rows apart there."""

    source: Compiled
    columns: tuple[int, ...]
    moved: Compiled
    identity: tuple[int, ...]


@dataclass(frozen=True)
class _Side(_Rows):
    """One input, arranged too."""

    arranged: Arrange


@compiles(plan.Join)
def _join(compiler: Compiler, node: plan.Join, session: Session) -> Compiled:
    branches = branches_of(node)
    if branches is not None:
        return _by_branches(compiler, node, branches, session)
    ranges = ranges_of(node)
    left, right = _sides(compiler, node, ranges, session)
    if node.kind in ("semi", "anti"):
        if node.residual is None:
            id_ = _by_existence(compiler, node, left, right, node.kind == "anti")
        else:
            pairs = _pairs(compiler, node, left, right, ranges, session)
            id_ = _by_pairs(compiler, left, pairs, 0, node.kind == "anti")
        return Compiled(id_, node.schema, node.key, _partition(node))
    pairs = _pairs(compiler, node, left, right, ranges, session)
    if node.kind == "inner":
        return Compiled(pairs.id, node.schema, node.key, pairs.partition)
    id_ = _with_rows_alone(compiler, node, pairs, partial(_without_partner, compiler, node, left, right, pairs))
    return Compiled(id_, node.schema, node.key, _partition(node))


def _by_branches(compiler: Compiler, node: plan.Join, branches: Sequence[Branch], session: Session) -> Compiled:
    """Compile a join on an OR; of an outer one, by the pairs that all branches have found."""
    if len(branches) == 1:
        return compiler.node(whole(node, branches[0]), session)
    if node.kind in ("semi", "anti"):
        return compiler.node(chosen(node, branches), session)
    pairs = compiler.node(pairs_of(node, branches), session)
    left, right = compiler.node(node.left, session), compiler.node(node.right, session)
    id_ = _with_rows_alone(compiler, node, pairs, partial(_in_no_pair, compiler, left, right, pairs))
    return Compiled(id_, node.schema, node.key, None)


def _with_rows_alone(compiler: Compiler, node: plan.Join, pairs: Compiled, alone: Callable[[bool], int]) -> int:
    """Compile an outer join: the pairs, and of each side that it keeps the rows ``alone``; whether it is the left."""
    parts = [pairs.id]
    if node.kind in ("left", "full"):
        parts.append(_padded(compiler, node, alone(True), True))
    if node.kind in ("right", "full"):
        parts.append(_padded(compiler, node, alone(False), False))
    return compiler.add(UnionAll(node.schema, len(parts)), tuple(parts), "union")


def _in_no_pair(compiler: Compiler, left: Compiled, right: Compiled, pairs: Compiled, is_left: bool) -> int:
    """Compile the rows of a side that no pair holds; without a key that all pairs have, they meet by their own."""
    rows, offset = (left, 0) if is_left else (right, len(left.schema))
    key = key_of(rows)
    level = max(compiler.level_for(pairs, key, True), compiler.level_for(rows, key, True))
    moved = compiler.exchange(rows, key, nets=True, level=level)
    return _by_pairs(compiler, _Rows(rows, key, moved, key), pairs, offset, True)


def _sides(compiler: Compiler, node: plan.Join, ranges: JoinRanges | None, session: Session) -> tuple[_Side, _Side]:
    orders: tuple[RangeOrder | None, ...] = (None, None)
    if ranges is not None:
        both = ((ranges.left, ranges.left_checks), (ranges.right, ranges.right_checks))
        orders = tuple(None if r is None else RangeOrder(r.value, checks, session) for r, checks in both)
    inputs = [
        (compiler.node(node.left, session), node.left_keys, orders[0]),
        (compiler.node(node.right, session), node.right_keys, orders[1]),
    ]
    # Both sides of a key must meet: an owner by fewer or other columns than the join's does for neither.
    level = max(compiler.level_for(source, columns, True) for source, columns, _ in inputs)
    sides = []
    for source, columns, order in inputs:
        moved = compiler.exchange(source, columns, nets=True, level=level)
        arranged = compiler.arrange(moved, columns, key_of(source), not node.null_safe, order)
        sides.append(_Side(source, columns, moved, arranged.identity, arranged))
    return sides[0], sides[1]


def _pairs(
    compiler: Compiler, node: plan.Join, left: _Side, right: _Side, ranges: JoinRanges | None, session: Session
) -> Compiled:
    """Compile the inner join of both sides."""
    text = f"inner join {node.left_keys} {node.right_keys} {sorted(node.null_safe)} {node.residual!r} {session!r}"
    if ranges is not None:
        text = f"{text} {ranges!r}"
    width = len(left.source.schema)
    schema = node.schema
    if node.kind != "inner":
        schema = Schema(node.left.schema.columns + node.right.schema.columns)
    key = (*key_of(left.source), *(width + position for position in key_of(right.source)))
    residual = node.residual
    portable = residual is None or is_portable(residual)
    site = None
    if portable and residual is not None and can_raise(residual):
        fingerprints = f"{compiler.fingerprint(left.source.id)} {compiler.fingerprint(right.source.id)}"
        site = compiler.site(f"{text} {fingerprints}", schema, key)
    conditions = () if residual is None or not portable else (residual,)
    operator = Join(schema, left.arranged, right.arranged, conditions, session, site, node.null_safe)
    if ranges is not None:
        seek_left = None if ranges.left is None else Seek(ranges.left.bounds, ranges.right_checks, session)
        seek_right = None if ranges.right is None else Seek(ranges.right.bounds, ranges.left_checks, session)
        operator = replace(operator, conditions=ranges.conditions, seek_left=seek_left, seek_right=seek_right)
    id_ = compiler.add(operator, (left.moved.id, right.moved.id), text)
    both = zip(node.left_keys, node.right_keys, strict=True)
    pairs = Compiled(id_, schema, key, tuple(frozenset((a, width + b)) for a, b in both))
    return pairs if portable or residual is None else _filtered(compiler, pairs, residual, session)


def _filtered(compiler: Compiler, pairs: Compiled, residual: Expression, session: Session) -> Compiled:
    """Keep the pairs for which Spark finds ``residual`` true."""
    source, (condition,) = compiler.by_spark(pairs, (residual,), session)
    text = f"filter {condition!r} {session!r}"
    id_ = compiler.add(Filter(source.schema, condition, session, None), (source.id,), text)
    kept = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(pairs.schema.columns))
    id_ = compiler.add(Project(pairs.schema, kept, session, None), (id_,), f"columns {len(kept)}")
    return Compiled(id_, pairs.schema, pairs.key, source.partition)


def _by_existence(compiler: Compiler, node: plan.Join, left: _Side, right: _Side, anti: bool) -> int:
    operator = SemiJoin(left.arranged, right.arranged, anti, node.null_safe)
    text = f"{'anti' if anti else 'semi'} join {left.columns} {right.columns} {sorted(node.null_safe)}"
    return compiler.add(operator, (left.moved.id, right.moved.id), text)


def _by_pairs(compiler: Compiler, side: _Rows, pairs: Compiled, offset: int, anti: bool) -> int:
    # Pairs that Spark has filtered come back to the owner of their key, and the rows meet them there.
    columns = tuple(offset + column for column in side.columns)
    level = max(compiler.level_for(pairs, columns, True), compiler.nodes[side.moved.id].level)
    if level != compiler.nodes[pairs.id].level:
        pairs = compiler.exchange(pairs, columns, nets=True, level=level)
    rows = side.moved
    if level != compiler.nodes[rows.id].level:
        rows = compiler.exchange(side.source, side.columns, nets=True, level=level)
    text = f"{'anti' if anti else 'semi'} rows {side.identity} {offset}"
    name = digest(f"{text} {compiler.fingerprint(side.source.id)} {compiler.fingerprint(pairs.id)}")
    operator = MatchedRows(side.source.schema, side.identity, offset, anti, f"{compiler.namespace}/m{name}")
    return compiler.add(operator, (rows.id, pairs.id), text)


def _without_partner(
    compiler: Compiler, node: plan.Join, left: _Side, right: _Side, pairs: Compiled, is_left: bool
) -> int:
    """Compile the rows of a side that have no partner."""
    kept, other = (left, right) if is_left else (right, left)
    if node.residual is None:
        return _by_existence(compiler, node, kept, other, True)
    return _by_pairs(compiler, kept, pairs, 0 if is_left else len(left.source.schema), True)


def _padded(compiler: Compiler, node: plan.Join, alone: int, is_left: bool) -> int:
    """Compile rows of one side with NULLs for the other side's columns."""
    kept, other = (node.left, node.right) if is_left else (node.right, node.left)
    own: list[Expression] = [ColumnRef(i, c.type, c.nullable) for i, c in enumerate(kept.schema.columns)]
    nulls: list[Expression] = [Literal(None, c.type) for c in other.schema.columns]
    padded = tuple([*own, *nulls] if is_left else [*nulls, *own])
    offset = 0 if is_left else len(nulls)
    operator = Project(node.schema, padded, Session(), None)
    return compiler.add(operator, (alone,), f"padded {offset} {tuple(map(str, node.schema.types))}")


def _partition(node: plan.Join) -> Partition | None:
    """Return which columns of the result have the join key on every row; of a full join no side's do."""
    if node.kind == "full":
        return () if not node.left_keys else None
    if node.kind == "right":
        width = len(node.left.schema)
        return tuple(frozenset((width + position,)) for position in node.right_keys)
    return tuple(frozenset((position,)) for position in node.left_keys)
