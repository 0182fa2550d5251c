"""Extremes: the PRE-AGGREGATION arrangement behind MIN and MAX, ordered by value within each group.

State:  group, value -> the value and how many rows have it.
Rule:   the extreme of a group is the first (last) key under the group's prefix: among the keys published, less those
        whose count falls to 0 in this epoch, plus those that it adds.
Why:    key bytes order as values do (NaN last, as in Spark), so the answer is a seek, after deletes too; never a scan
        of the group. Only strings over 128 bytes share key bytes: a run of equal prefixes is compared by full value.
Work:   one lookup per changed (group, value); per changed group one seek, plus one step per key that dies in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import state_is_broken
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.functions.base import Answer
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import KeyCodec, after
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import BIGINT, BINARY, Column, Schema, to_arrow_type

Candidate = tuple[bytes, object]


@dataclass(frozen=True)
class Changed:
    """What an epoch does to one group's values: (key, value) alive after it, keys that die in it."""

    alive: list[Candidate]
    dead: set[bytes]


@dataclass(frozen=True)
class Extremes:
    """Values by group, in order.

    Args:
        schema: the group columns, then the value.
        state: the state table.
    """

    schema: Schema
    state: str

    @cached_property
    def _plain_codec(self) -> KeyCodec:
        return KeyCodec(self.schema.types)

    @cached_property
    def key_codec(self) -> KeyCodec:
        """Group and value to key bytes; a group that might not fit beside its value is packed into one component."""
        return self._plain_codec if self._plain_codec.always_fits else KeyCodec((BINARY, self.schema.types[-1]))

    def _key_columns(self, columns: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of state keys for group columns, with or without the value behind."""
        width = len(self.schema) - 1
        if self._plain_codec.always_fits or not width:
            return columns
        group = KeyCodec(self.schema.types[:-1]).encode(columns[:width])
        return [pa.array(group, pa.binary()), *columns[width:]]

    def prefixes(self, groups: list[pa.Array], count: int) -> list[bytes]:
        """Return for each of ``count`` groups the bytes with which its keys start."""
        return self.key_codec.encode_prefixes(self._key_columns(groups)) if groups else [b""] * count

    @cached_property
    def row_codec(self) -> RowCodec:
        """Value and count to bytes."""
        return RowCodec((self.schema.types[-1], BIGINT))

    def contents(self, number: int) -> Contents:
        """Return the values with how many rows have each, over the aggregate's input ``number``."""
        width = len(self.schema) - 1
        everything = columns_sql(range(width + 1))
        by = ", ".join(column_name(i) for i in range(width + 1))
        sql = f"SELECT {', '.join([*everything, named('COUNT(*)', width + 1)])} FROM i{number} GROUP BY {by}"
        shown = Schema((Column("key", BINARY), Column("value", self.schema.types[-1]), Column("rows", BIGINT)))

        def finish(batch: pa.RecordBatch) -> list[pa.Array]:
            # The group stands in the key alone.
            keys = self.key_codec.encode(self._key_columns([canonical(c) for c in batch.columns[:-1]]))
            return [pa.array(keys, pa.binary()), *batch.columns[-2:]]

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> Sequence[pa.Array]:
            return [pa.array(keys, pa.binary()), *self.row_codec.decode(values).columns]

        query = Query(sql, shown, finish=finish)
        return Contents(self.state, "values", query, (0,), decode, lambda columns: columns[0].to_pylist())

    def update(self, delta: Delta, context: StepContext) -> dict[bytes, Changed]:
        """Stage the new counts and return what changed, by group prefix."""
        changed: dict[bytes, Changed] = {}
        if not delta.num_rows:
            return changed
        columns = list(delta.rows.columns)
        keys, order = encode_sorted(self.key_codec.encode, self._key_columns(columns))
        sorted_rows = delta if order is None else delta.take(order)
        prefixes = self.prefixes(list(sorted_rows.rows.columns[:-1]), len(keys))
        stored = context.lookups.multi_get(self.state, keys)
        counts = np.zeros(len(keys), np.int64)
        present = np.array([value is not None for value in stored], dtype=bool)
        if present.any():
            found = self.row_codec.decode([value for value in stored if value is not None])
            counts[present] = found.column(1).to_numpy()
        counts = counts + sorted_rows.weights
        if (counts < 0).any():
            raise state_is_broken(self.state)
        values = sorted_rows.rows.column(len(columns) - 1)
        rows = self.row_codec.encode([values, pa.array(counts)])
        alive = counts > 0
        context.writes.put(self.state, keys, [row if a else None for row, a in zip(rows, alive.tolist(), strict=True)])
        for i, (key, value) in enumerate(zip(keys, values.to_pylist(), strict=True)):
            group = changed.setdefault(prefixes[i], Changed([], set()))
            if alive[i]:
                group.alive.append((key, value))
            else:
                group.dead.add(key)
        return changed

    def extreme(self, prefix: bytes, changed: Changed, largest: bool, context: StepContext) -> object:
        """Return the group's smallest or largest value as of E, None where it has none."""
        stop = after(prefix)
        published: list[Candidate] = []
        run: bytes | None = None
        for key, row in context.lookups.scan(self.state, prefix, stop, largest):
            if run is not None and not key.startswith(run):
                break
            if key in changed.dead:
                continue
            published.append((key, self.row_codec.decode_values(row)[0]))
            run = self.key_codec.truncated_run_prefix(key, len(self.key_codec.types) - 1)
            if run is None:
                break
        candidates = [*published, *changed.alive]
        if not candidates:
            return None
        best = max(candidates, key=_order) if largest else min(candidates, key=_order)
        return best[1]

    def answers(
        self, groups: Iterator[tuple[bytes, object]], changed: dict[bytes, Changed], largest: bool, context: StepContext
    ) -> Answer:
        """Return the extreme of each (prefix, old extreme); groups without a change keep theirs."""
        values = [
            self.extreme(prefix, changed[prefix], largest, context) if prefix in changed else old
            for prefix, old in groups
        ]
        return Answer(pa.array(values, to_arrow_type(self.schema.types[-1])))


def _order(candidate: Candidate) -> bytes:
    """Order candidates as their values: texts by their bytes, everything else by its key bytes."""
    key, value = candidate
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else key
