"""MATCHED ROWS: rows of one side of a join that stand in a pair, or (anti) in none; for joins with a further condition.

    rows  ----------------------+--> MATCHED ROWS
    pairs of the inner join ----+

Rule:   step(dR, dP) = R(E) . m(E) - R(E-1) . m(E-1),  m(r) = 1 where pairs hold row r, else 0   (anti: 1 - m)
State:  per row that stands in a pair: join key, then the row's own key -> in how many pairs.
Why:    a pair carries its row, so dP says by how many the row's count changes, and the row itself where its count
        reaches or leaves 0. A row that changes is in dR in both versions: the old one goes by the old count, the new
        one comes by the new one. The key of the rows makes old and new version of a row one state row, so a version
        is never told from the other by its values.
Work:   one lookup per row that changed or whose pairs did; nothing is read of the other side, so one change on a key
        with 100,000 rows on either side costs its 100,000 pairs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless, state_is_broken
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import BIGINT, BINARY, Column, Schema


@dataclass(frozen=True)
class MatchedRows(Stateless):
    """Rows by whether a pair holds them.

    Args:
        schema: the rows.
        identity: positions of the join key and of the rows' own key, each once.
        offset: where the rows' columns begin in a pair.
        anti: whether the rows in no pair are wanted.
        state: the state table.
    """

    schema: Schema
    identity: tuple[int, ...]
    offset: int
    anti: bool
    state: str

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tables that it writes."""
        return (self.state,)

    @cached_property
    def key_codec(self) -> KeyCodec:
        """How state keys become bytes."""
        return KeyCodec(tuple(self.schema.types[i] for i in self.identity))

    @cached_property
    def row_codec(self) -> RowCodec:
        """How counts become bytes."""
        return RowCodec((BIGINT,))

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows that come and go, for a netted delta of whole join keys and the pairs that it makes."""
        changed, pairs = inputs[0], inputs[1].select(range(self.offset, self.offset + len(self.schema)))
        every = Delta.concat([changed, pairs], self.schema.to_arrow())
        codes, first = every.group(self.identity)
        split = changed.num_rows
        before, after = self._counts(every.take(first), codes[split:], pairs.weights, context)
        was, becomes = (before == 0, after == 0) if self.anti else (before > 0, after > 0)
        # Of a row that changed each version answers for itself.
        weights = np.where(changed.weights < 0, was[codes[:split]], becomes[codes[:split]]) * changed.weights
        # Of a row that stays any pair tells the values.
        stays = np.ones(len(first), dtype=bool)
        stays[codes[:split]] = False
        turns = np.flatnonzero(stays & (was != becomes))
        rows = every.take(first[turns]).with_weights(np.where(becomes[turns], 1, -1))
        kept = changed.with_weights(weights).filter(weights != 0)
        return Delta.concat([kept, rows], self.schema.to_arrow())

    def _counts(
        self, rows: Delta, codes: np.ndarray, weights: np.ndarray, context: StepContext
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of pairs of each distinct row as of E-1 and of E, which is staged where it changes."""
        before = np.zeros(rows.num_rows, np.int64)
        if not rows.num_rows:
            return before, before
        change = np.zeros(rows.num_rows, np.int64)
        np.add.at(change, codes, weights)
        keys, order = self._sorted_keys(rows)
        stored = context.lookups.multi_get(self.state, keys)
        present = np.array([value is not None for value in stored], dtype=bool)
        if present.any():
            at = np.flatnonzero(present) if order is None else order[present]
            before[at] = self.row_codec.decode([value for value in stored if value is not None]).column(0).to_numpy()
        after = before + change
        if (after < 0).any():
            raise state_is_broken(self.state)
        in_order = range(len(keys)) if order is None else order.tolist()
        staged = [(key, i) for key, i in zip(keys, in_order, strict=True) if change[i]]
        counts = after[[i for _, i in staged]]
        values = self.row_codec.encode([pa.array(counts)])
        alive = [value if count else None for value, count in zip(values, counts.tolist(), strict=True)]
        context.writes.change(self.state, [key for key, _ in staged], alive)
        return before, after

    def _sorted_keys(self, rows: Delta) -> tuple[list[bytes], np.ndarray | None]:
        if not self.identity:
            return [SINGLE_KEY], None
        return encode_sorted(self.key_codec.encode, [rows.rows.column(i) for i in self.identity])

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows that a pair holds, or those that none does."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return the rows that a pair holds, or those that none does."""
        kind = "ANTI" if self.anti else "SEMI"
        same = (f"l.{column_name(i)} <=> r.{column_name(self.offset + i)}" for i in self.identity)
        sql = f"SELECT l.* FROM i0 AS l LEFT {kind} JOIN i1 AS r ON {' AND '.join(same) or 'true'}"
        return Query(sql, self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return in how many pairs each row stands, by the bytes of its key."""
        places = [self.offset + i for i in self.identity]
        by = f" GROUP BY {', '.join(map(column_name, places))}" if places else " HAVING COUNT(*) > 0"
        items = ", ".join([*columns_sql(places), named("COUNT(*)", len(places))])
        shown = Schema((Column("key", BINARY, False), Column("pairs", BIGINT, False)))

        def finish(batch: pa.RecordBatch) -> list[pa.Array]:
            columns = [canonical(column) for column in batch.columns[:-1]]
            keys = self.key_codec.encode(columns) if columns else [SINGLE_KEY] * batch.num_rows
            return [pa.array(keys, pa.binary()), batch.columns[-1]]

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> Sequence[pa.Array]:
            return [pa.array(keys, pa.binary()), *self.row_codec.decode(values).columns]

        query = Query(f"SELECT {items} FROM i1{by}", shown, finish=finish)
        return (Contents(self.state, "pairs", query, (0,), decode, lambda columns: columns[0].to_pylist()),)
