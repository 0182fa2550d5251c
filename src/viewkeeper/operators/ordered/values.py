"""ORDERED VALUES: the PRE-AGGREGATION arrangement behind the aggregates that are no sums, in order within each group.

State:  group, then what the values are ordered by -> what the aggregates need of them. Either equal values are one
        entry with their count (MIN, MAX, PERCENTILE, DISTINCT lists), or the key of the input's rows ends the order and
        each row is an entry (FIRST, MIN_BY, lists).
Rule:   values(E) = values(E-1) + d; what a group holds as of E is what is published, less the entries that d changes,
        plus those that are there after it, merged in order.
Why:    key bytes order as values do (NULL first, NaN last, as in Spark), so the first, the last and the next value are
        seeks, after deletes too; never a scan of the group. Only long values share key bytes: a run of equal ones is
        compared by full value.
Work:   one lookup per changed entry that has a count; then what is walked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from heapq import merge
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import state_is_broken
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.buffers import Int64Array, canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec, after, full_order
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec, is_fixed_width
from viewkeeper.zset.schema import BIGINT, BINARY, Column, Schema

Entry: TypeAlias = tuple[bytes, bytes]
"""A key and its row."""

_GROUP_BYTES = 16


@dataclass
class Changed:
    """What an epoch does to the entries of one group.

    Args:
        rows: the row of each changed key, None where it is gone.
        weights: by how much the number of rows under each changed key grows, each as often as it counts.
    """

    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    weights: dict[bytes, int] = field(default_factory=dict)

    @cached_property
    def alive(self) -> list[Entry]:
        """The changed entries that are there, in order; asked for when all changes are known."""
        return sorted((key, row) for key, row in self.rows.items() if row is not None)


Changes: TypeAlias = dict[bytes, Changed]
"""By the prefix of the group's keys."""

UNCHANGED = Changed()


@dataclass(frozen=True)
class Counts:
    """The counted entries that a delta changes, in key order: keys, one row each, counts at E-1 and as of E."""

    keys: list[bytes]
    rows: Delta
    before: Int64Array
    now: Int64Array


@dataclass(frozen=True)
class OrderedValues:
    """The entries of all groups.

    Args:
        schema: the rows that change it: group columns, then those that order, then what else is kept.
        groups: how many group columns there are.
        orders: how many columns order the entries of a group and tell them apart.
        kept: positions of the columns that aggregates read.
        counted: whether equal rows are one entry with a count; otherwise no two rows have the same key.
        state: the state table.
        weighted: whether the last column that orders is a BIGINT that says how often a row counts.
    """

    schema: Schema
    groups: int
    orders: int
    kept: tuple[int, ...]
    counted: bool
    state: str
    weighted: bool = False

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tables."""
        return (self.state,)

    @cached_property
    def _plain_codec(self) -> KeyCodec:
        return KeyCodec(self.schema.types[: self.groups + self.orders])

    @cached_property
    def key_codec(self) -> KeyCodec:
        """State keys to bytes; a group that might leave no room for its values is replaced by its hash."""
        if self._plain_codec.always_fits or not self.groups:
            return self._plain_codec
        return KeyCodec((BINARY, *self._plain_codec.types[self.groups :]))

    @cached_property
    def _long_components(self) -> tuple[int, ...]:
        """Components of the key, behind the group, whose order key bytes may lose."""
        first = len(self.key_codec.types) - self.orders
        return tuple(first + i for i, t in enumerate(self.key_codec.types[first:]) if not is_fixed_width((t,)))

    @cached_property
    def stored(self) -> tuple[int, ...]:
        """Positions of the columns that an entry holds, before its count."""
        ordering = range(self.groups, self.groups + self.orders) if self._long_components else ()
        return tuple(dict.fromkeys((*self.kept, *ordering)))

    @cached_property
    def row_codec(self) -> RowCodec:
        """Entries to bytes."""
        types = [self.schema.types[i] for i in self.stored]
        return RowCodec([*types, BIGINT] if self.counted else types)

    @cached_property
    def _full_order(self) -> Callable[[Entry], bytes]:
        order = full_order(self._plain_codec.types[self.groups :])
        at = [self.stored.index(i) for i in range(self.groups, self.groups + self.orders)]

        def of(entry: Entry) -> bytes:
            values = self.row_codec.decode_values(entry[1])
            return order([values[i] for i in at])

        return of

    def prefixes(self, groups: Sequence[pa.Array], count: int) -> list[bytes]:
        """Return for each of ``count`` groups the bytes with which its keys start."""
        return self.key_codec.encode_prefixes(self._key_columns(groups)) if groups else [b""] * count

    def _key_columns(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns of state keys for group columns, with or without those that order behind."""
        if self._plain_codec.always_fits or not self.groups:
            return list(columns)
        keys = KeyCodec(self.schema.types[: self.groups]).encode(columns[: self.groups])
        hashes = [blake2b(key, digest_size=_GROUP_BYTES).digest() for key in keys]
        return [pa.array(hashes, pa.binary()), *columns[self.groups :]]

    def contents(self, number: int) -> Contents:
        """Return what the state must hold over the aggregate's input ``number``."""
        columns = columns_sql(range(len(self.schema)))
        if not self.counted:
            return self.contents_of(f"SELECT {', '.join(columns)} FROM i{number}")
        by = ", ".join(column_name(i) for i in range(len(self.schema)))
        count = named("COUNT(*)", len(self.schema))
        return self.contents_of(f"SELECT {', '.join([*columns, count])} FROM i{number} GROUP BY {by}")

    def contents_of(self, sql: str) -> Contents:
        """Return what the state must hold where ``sql`` gives the columns of the schema, and counts behind them."""
        entry = [Column(f"value_{i}", self.schema.types[position]) for i, position in enumerate(self.stored)]
        shown = Schema((Column("key", BINARY), *entry, *([Column("rows", BIGINT)] if self.counted else [])))
        ordering = self.groups + self.orders

        def finish(batch: pa.RecordBatch) -> list[pa.Array]:
            # The group stands in the key alone.
            columns = [*map(canonical, batch.columns[:ordering]), *batch.columns[ordering:]]
            keys = self._keys(columns[:ordering], batch.num_rows)
            counts = columns[len(self.schema) :]
            return [pa.array(keys, pa.binary()), *(columns[i] for i in self.stored), *counts]

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> Sequence[pa.Array]:
            return [pa.array(keys, pa.binary()), *self.row_codec.decode(values).columns]

        query = Query(sql, shown, finish=finish)
        return Contents(self.state, "values", query, (0,), decode, lambda columns: columns[0].to_pylist())

    def _keys(self, columns: Sequence[pa.Array], count: int) -> list[bytes]:
        return self.key_codec.encode(self._key_columns(columns)) if columns else [SINGLE_KEY] * count

    def update(self, delta: Delta, context: StepContext) -> Changes:
        """Stage the entries that change and return them by group."""
        if not delta.num_rows:
            return {}
        if self.counted:
            return self.stage(self.count(delta, context), context)
        keys, delta = self._sorted(delta)
        starts = _starts(keys)
        comes = (delta.weights > 0).tolist()
        rows = self._encoded(delta, None)
        last: list[bytes | None] = [None] * len(starts)
        for run, (start, stop) in enumerate(zip(starts, [*starts[1:], len(keys)], strict=True)):
            # The old and the new row of one key: the new one counts.
            last[run] = next((rows[i] for i in range(start, stop) if comes[i]), None)
        weights = np.add.reduceat(delta.weights, starts)
        return self._staged([keys[i] for i in starts], last, delta.take(np.array(starts, np.int64)), weights, context)

    def count(self, delta: Delta, context: StepContext) -> Counts:
        """Return the counts that change."""
        keys, rows = self._sorted(delta)
        starts = _starts(keys)
        if len(starts) < len(keys):
            weights = np.add.reduceat(rows.weights, starts)
            keys, rows = [keys[i] for i in starts], rows.take(np.array(starts)).with_weights(weights)
        stored = context.lookups.multi_get(self.state, keys) if keys else []
        before = np.zeros(len(keys), np.int64)
        present = np.array([value is not None for value in stored], dtype=bool)
        if present.any():
            found = self.row_codec.decode([value for value in stored if value is not None])
            before[present] = found.column(len(self.stored)).to_numpy()
        now = before + rows.weights
        if (now < 0).any():
            raise state_is_broken(self.state)
        return Counts(keys, rows, before, now)

    def stage(self, counts: Counts, context: StepContext) -> Changes:
        """Stage the counts of entries and return them by group."""
        rows = self._encoded(counts.rows, counts.now)
        alive = [row if n else None for row, n in zip(rows, counts.now.tolist(), strict=True)]
        return self._staged(counts.keys, alive, counts.rows, counts.now - counts.before, context)

    def _sorted(self, delta: Delta) -> tuple[list[bytes], Delta]:
        """Return the keys of the rows in order, and the rows in that order."""
        if not self.key_codec.types:
            return [SINGLE_KEY] * delta.num_rows, delta
        columns = self._key_columns(delta.rows.columns[: self.groups + self.orders])
        keys, order = encode_sorted(self.key_codec.encode, columns)
        return keys, delta if order is None else delta.take(order)

    def _encoded(self, delta: Delta, counts: Int64Array | None) -> list[bytes]:
        columns = [delta.rows.column(i) for i in self.stored]
        return self.row_codec.encode(columns if counts is None else [*columns, pa.array(counts)])

    def _staged(
        self, keys: list[bytes], rows: list[bytes | None], delta: Delta, weights: Int64Array, context: StepContext
    ) -> Changes:
        context.writes.change(self.state, keys, rows)
        if self.weighted:
            weights = weights * delta.rows.column(self.groups + self.orders - 1).to_numpy()
        changes: Changes = {}
        prefixes = self.prefixes(delta.rows.columns[: self.groups], len(keys))
        for prefix, key, row, weight in zip(prefixes, keys, rows, weights.tolist(), strict=True):
            changed = changes.get(prefix)
            if changed is None:
                changed = changes[prefix] = Changed()
            changed.rows[key] = row
            changed.weights[key] = weight
        return changes

    def walk(
        self,
        prefix: bytes,
        changed: Changed,
        context: StepContext,
        reverse: bool = False,
        start: bytes | None = None,
    ) -> Iterator[Entry]:
        """Yield the entries whose keys start with ``prefix``, in order.

        Args:
            prefix: a group's, or a longer one.
            changed: what the epoch changes; ``UNCHANGED`` to see what is published.
            context: for lookups.
            reverse: from the last to the first.
            start: the key at which to begin; in reverse the one before which to begin.
        """
        low, high = prefix, after(prefix)
        if start is not None:
            low, high = (low, start) if reverse else (start, high)
        published = context.lookups.scan(self.state, low, high, reverse)
        if not changed.rows:
            return self._in_full_order(published, reverse)
        kept = (entry for entry in published if entry[0] not in changed.rows)
        first = bisect_left(changed.alive, (low, b""))
        stop = len(changed.alive) if high is None else bisect_left(changed.alive, (high, b""))
        alive = changed.alive[first:stop]
        merged = merge(kept, alive[::-1] if reverse else alive, reverse=reverse)
        return self._in_full_order(merged, reverse)

    def _in_full_order(self, entries: Iterator[Entry], reverse: bool) -> Iterator[Entry]:
        if not self._long_components:
            yield from entries
            return
        for _, run in groupby(entries, self._run):
            found = list(run)
            yield from sorted(found, key=self._full_order, reverse=reverse) if len(found) > 1 else found

    def _run(self, entry: Entry) -> bytes:
        """Return what is equal for entries that only full values order."""
        for component in self._long_components:
            shared = self.key_codec.truncated_run_prefix(entry[0], component)
            if shared is not None:
                return shared
        return entry[0]


def _starts(keys: Sequence[bytes]) -> list[int]:
    """Return where each run of equal keys starts."""
    return [i for i, key in enumerate(keys) if not i or key != keys[i - 1]]


def decoded(codec: RowCodec, rows: Sequence[bytes | None], column: int, empty: pa.DataType) -> pa.Array:
    """Return one column of ``rows``, NULL where there is no row."""
    found: Any = [row for row in rows if row is not None]
    if not found:
        return pa.nulls(len(rows), empty)
    values = codec.decode(found).column(column)
    if len(found) == len(rows):
        return values
    present = np.array([row is not None for row in rows])
    at = np.cumsum(present) - 1
    return values.take(pa.array(at, mask=~present))
