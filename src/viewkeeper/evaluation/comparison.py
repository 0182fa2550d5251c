"""Two bags of rows compared: what one lacks, what it has too much, and what differs under one key.

Rows that are equal cancel; NaN equals NaN and -0.0 equals 0.0. What is left is paired by key, or without one by all
columns that are no floating numbers, and floating numbers may then differ in their last digits: Spark's sums of them
depend on the order of rows. Large bags are first parted by a hash of those columns, so that memory holds a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from viewkeeper.evaluation.result import Result
from viewkeeper.evaluation.spool import MEMORY_BYTES_MAX, Spool
from viewkeeper.zset.buffers import Int64Array, canonical, null_mask
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.grouping import first_equal_rows, row_words
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.schema import Schema

ROWS_PER_PART = 500_000
TOLERANCES: Mapping[str, float] = {"DOUBLE": 1e-9, "FLOAT": 1e-6}
ANY_DIFFERENCE: Mapping[str, float] = {"DOUBLE": np.inf, "FLOAT": np.inf}

Row = dict[str, Any]


@dataclass
class Differences:
    """How two bags differ: counts, and some of the rows."""

    limit: int
    rows: int = 0
    missing: list[Row] = field(default_factory=list)
    unexpected: list[Row] = field(default_factory=list)
    different: list[tuple[Row, Row]] = field(default_factory=list)
    missing_count: int = 0
    unexpected_count: int = 0
    different_count: int = 0


def compare(
    expected: Iterable[pa.RecordBatch],
    stored: Iterable[pa.RecordBatch],
    schema: Schema,
    key: Sequence[int] | None,
    stored_rows: int,
    limit: int,
    tolerances: Mapping[str, float] = TOLERANCES,
) -> Differences:
    """Compare the rows that there should be with those that there are.

    Args:
        expected: the rows that there should be.
        stored: the rows that there are.
        schema: the columns of both.
        key: columns that tell rows apart; None where rows may repeat.
        stored_rows: about how many rows there are.
        limit: how many rows of each kind are returned at most.
        tolerances: by which part of the larger one floating numbers may differ, by type.
    """
    floating = [i for i, t in enumerate(schema.types) if t.is_floating]
    pairing = [i for i in range(len(schema)) if i not in floating] if key is None else list(key)
    hashed = [i for i in pairing if not schema.types[i].contains_map]
    parts = stored_rows // ROWS_PER_PART + 1 if hashed else 1
    found = Differences(limit)
    with _Parted(schema, hashed, parts) as wanted, _Parted(schema, hashed, parts) as there:
        for batch in expected:
            wanted.write(batch)
        for batch in stored:
            there.write(batch)
        found.rows = there.rows
        for part in range(parts):
            delta = _delta(wanted.part(part), there.part(part), schema)
            _compare_part(delta, schema, pairing, key is None, tolerances, found)
    return found


class _Parted:
    """Rows parted by a hash of some columns, their floating numbers in one form."""

    def __init__(self, schema: Schema, hashed: Sequence[int], parts: int) -> None:
        self._spools = [Spool(schema, MEMORY_BYTES_MAX // parts) for _ in range(parts)]
        self._hashed = hashed
        self._codec = KeyCodec([schema.types[i] for i in hashed])

    def __enter__(self) -> _Parted:
        return self

    def __exit__(self, *_: object) -> None:
        for spool in self._spools:
            spool.close()

    @property
    def rows(self) -> int:
        return sum(spool.rows for spool in self._spools)

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [canonical(column) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        count = len(self._spools)
        if count == 1:
            self._spools[0].write(batch)
            return
        keys = self._codec.encode([batch.column(i) for i in self._hashed])
        owners = np.fromiter((crc32(k) % count for k in keys), np.int64, batch.num_rows)
        for number, spool in enumerate(self._spools):
            spool.write(batch.filter(pa.array(owners == number)))

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        return iter(self._spools[number])


def _delta(expected: Iterable[pa.RecordBatch], stored: Iterable[pa.RecordBatch], schema: Schema) -> Delta:
    deltas = [Delta.from_rows(batch) for batch in expected] + [Delta.from_rows(batch, -1) for batch in stored]
    return Delta.concat(deltas, schema.to_arrow()).consolidate()


def _compare_part(
    delta: Delta,
    schema: Schema,
    pairing: Sequence[int],
    is_bag: bool,
    tolerances: Mapping[str, float],
    found: Differences,
) -> None:
    if not delta.num_rows:
        return
    rows = np.repeat(np.arange(delta.num_rows), np.abs(delta.weights))
    signs = np.sign(delta.weights)[rows]
    words = [word for i in pairing for word in row_words(delta.rows.column(i))]
    groups = first_equal_rows(words, delta.num_rows) if words else np.zeros(delta.num_rows, np.int64)
    wanted, there = rows[signs > 0], rows[signs < 0]
    floating = [i for i, t in enumerate(schema.types) if t.is_floating]
    wanted, wanted_ids = _numbered(delta.rows, wanted, groups, floating, len(rows))
    there, there_ids = _numbered(delta.rows, there, groups, floating, len(rows))
    _, at_wanted, at_there = np.intersect1d(wanted_ids, there_ids, assume_unique=True, return_indices=True)
    close = _close(delta.rows, wanted[at_wanted], there[at_there], schema, tolerances)
    settled = at_wanted if not is_bag else at_wanted[close]
    settled_there = at_there if not is_bag else at_there[close]
    missing, unexpected = np.delete(wanted, settled), np.delete(there, settled_there)
    found.missing_count += len(missing)
    found.unexpected_count += len(unexpected)
    found.missing += _shown(delta.rows, missing, schema, found.limit - len(found.missing))
    found.unexpected += _shown(delta.rows, unexpected, schema, found.limit - len(found.unexpected))
    if not is_bag:
        left = found.limit - len(found.different)
        found.different_count += int((~close).sum())
        pairs = zip(
            _shown(delta.rows, wanted[at_wanted[~close]], schema, left),
            _shown(delta.rows, there[at_there[~close]], schema, left),
            strict=True,
        )
        found.different += pairs


def _numbered(
    rows: pa.RecordBatch, positions: Int64Array, groups: Int64Array, floating: Sequence[int], places: int
) -> tuple[Int64Array, Int64Array]:
    """Return ``positions`` by their groups and floating numbers, and for each (group, place in it) as one number."""
    ids = groups[positions].astype(np.int64)
    keys = [np.nan_to_num(_numbers(rows.column(i))[positions], nan=np.inf) for i in reversed(floating)]
    order = np.lexsort([*keys, ids])
    ids = ids[order]
    starts = np.searchsorted(ids, ids, "left")
    return positions[order], ids * places + (np.arange(len(ids)) - starts)


def _numbers(column: pa.Array) -> np.ndarray:
    numbers: np.ndarray = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    return numbers


def _close(
    rows: pa.RecordBatch, left: Int64Array, right: Int64Array, schema: Schema, tolerances: Mapping[str, float]
) -> np.ndarray:
    close = np.ones(len(left), dtype=bool)
    for column, sql_type in zip(rows.columns, schema.types, strict=True):
        if not sql_type.is_floating:
            for words in row_words(column):
                close &= words[left] == words[right]
            continue
        mask = null_mask(column)
        nulls = np.zeros(rows.num_rows, dtype=bool) if mask is None else mask
        numbers = _numbers(column)
        a, b = numbers[left], numbers[right]
        tolerance = tolerances[sql_type.name]
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= tolerance * np.maximum(np.abs(a), np.abs(b))
        near = (near & np.isfinite(a) & np.isfinite(b)) | (a == b) | (np.isnan(a) & np.isnan(b))
        near |= np.isinf(tolerance)
        close &= (near & ~nulls[left] & ~nulls[right]) | (nulls[left] & nulls[right])
    return close


def _shown(rows: pa.RecordBatch, positions: Int64Array, schema: Schema, limit: int) -> list[Row]:
    return Result(schema, [rows.take(pa.array(positions[: max(limit, 0)]))]).rows()
