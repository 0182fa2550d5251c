"""What joins are made of: rows of a delta against stored rows and against each other, by equal keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.ordering import encode_sorted


def look_up(
    delta: Delta, columns: tuple[int, ...], arrangement: Arrange, context: StepContext
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
    """Return the stored rows that match ``delta``, and the matching pairs as (position in delta, position in rows)."""
    codec = arrangement.row_codec
    if not delta.num_rows:
        return codec.decode([]), np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = delta.group(columns)
    groups, values = _stored(delta.take(first), columns, arrangement, None, context)
    # Stored rows stand in prefix order; bring them into group order to find each delta row's run of matches.
    by_group = np.argsort(groups, kind="stable")
    starts, stops = runs(groups, len(first))
    matches, at = expand(starts[group], stops[group])
    rows = codec.decode(values)
    if arrangement.key_codec.always_fits or not len(at):
        return rows, matches, by_group[at]
    # Very long keys share prefixes: compare the values themselves.
    stored = Delta.from_rows(rows).take(by_group[at])
    mine, theirs = common_codes(delta.take(matches), columns, stored, arrangement.columns)
    same = mine == theirs
    return rows, matches[same], by_group[at][same]


def count_stored(keys: Delta, limits: np.ndarray, arrangement: Arrange, context: StepContext) -> np.ndarray:
    """Return how many stored rows each key has, counting no further than its limit.

    Args:
        keys: distinct keys, in the order of the arrangement's columns.
        limits: per key how many rows are enough; at least 1.
        arrangement: the stored rows.
        context: for the lookups.
    """
    columns = tuple(range(len(arrangement.columns)))
    if not keys.num_rows:
        return np.empty(0, np.int64)
    if not arrangement.key_codec.always_fits:
        matches = look_up(keys, columns, arrangement, context)[1]
        return np.bincount(matches, minlength=keys.num_rows)
    owners = _stored(keys, columns, arrangement, limits, context)[0]
    return np.bincount(owners, minlength=keys.num_rows)


def _stored(
    keys: Delta, columns: tuple[int, ...], arrangement: Arrange, limits: np.ndarray | None, context: StepContext
) -> tuple[np.ndarray, list[bytes]]:
    """Return for the stored rows of distinct ``keys``: the key's position, and the row; ``limits`` cut each key's."""
    lookups, state = context.lookups, arrangement.state
    if not columns:
        # A join without keys: all rows stand under the one key of no columns.
        limit = None if limits is None else int(limits[0])
        values = [value for _, value in islice(lookups.scan(state, b"", None), limit)]
        return np.zeros(len(values), np.int64), values
    prefixes, order = encode_sorted(arrangement.key_codec.encode_prefixes, [keys.rows.column(c) for c in columns])
    if arrangement.is_unique:
        found = lookups.multi_get(state, prefixes)
        owner = np.array([i for i, value in enumerate(found) if value is not None], dtype=np.int64)
        values = [value for value in found if value is not None]
    else:
        in_order = None if limits is None else (limits if order is None else limits[order]).tolist()
        owner, values = lookups.multi_scan(state, prefixes, in_order)
    return owner if order is None else order[owner], values


def runs(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each of ``count`` codes where its run starts and stops once ``codes`` are sorted."""
    lengths = np.bincount(codes, minlength=count)
    stops = np.cumsum(lengths)
    return stops - lengths, stops


def expand(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for ranges [start, stop) the pairs (index of the range, each position in it).

    Example:
        >>> expand(np.array([0, 3]), np.array([2, 4]))
        (array([0, 0, 1]), array([0, 1, 3]))
    """
    lengths = stops - starts
    owner = np.repeat(np.arange(len(starts)), lengths)
    offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, np.repeat(starts, lengths) + offset


def keys_of_both(left: Delta, left_columns: Sequence[int], right: Delta, right_columns: Sequence[int]) -> Delta:
    """Return the key columns of both deltas, the left one's rows first."""
    arrays = [
        pa.concat_arrays([left.rows.column(i), right.rows.column(j)])
        for i, j in zip(left_columns, right_columns, strict=True)
    ]
    keys = pa.RecordBatch.from_arrays(arrays, names=[f"k{i}" for i in range(len(arrays))])
    return Delta(keys, np.concatenate([left.weights, right.weights]))


def common_codes(
    left: Delta, left_columns: tuple[int, ...], right: Delta, right_columns: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Number the keys of both deltas alike: equal keys get equal numbers."""
    codes = keys_of_both(left, left_columns, right, right_columns).group(range(len(left_columns)))[0]
    return codes[: left.num_rows], codes[left.num_rows :]


def keys_sql(left_columns: Sequence[int], right_columns: Sequence[int], null_safe: frozenset[int]) -> str:
    """Return the condition that the keys of relations ``l`` and ``r`` are equal."""
    pairs = enumerate(zip(left_columns, right_columns, strict=True))
    equal = (f"l.{column_name(i)} {'<=>' if n in null_safe else '='} r.{column_name(j)}" for n, (i, j) in pairs)
    return " AND ".join(equal) or "true"
