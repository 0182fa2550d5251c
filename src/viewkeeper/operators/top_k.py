"""TOP-K: the first rows of each partition in an order, kept by an arrangement in that order.

    delta --exchange by partition--> TOP-K --> rows that come to or go from the first k, or change their rank

Rule:   new rows = state + d;  step = first k of new rows - first k of the state, for each partition that d touches.
State:  partition, order, key (windows/placement.py) -> the row. All rows: one that goes makes room for any other.
Why:    the state is scanned in order, so both answers are read from its beginning: the published rows, and these less
        those that go, merged with those that come. Ranks are counted on the way; RANK and DENSE_RANK go on while rows
        are peers. Ties are broken by the input's key, so the answer is a function of the rows alone.
Work:   per touched partition one scan of k rows, ties, and as many as go in front; never the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import tee

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, columns_sql
from viewkeeper.operators.kept_rows import stored_values
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.windows.partitions import Partitions
from viewkeeper.operators.windows.placement import Place, Placement
from viewkeeper.operators.windows.sql import over
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import after
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Schema
from viewkeeper.zset.sort_keys import OrderItem

Candidate = tuple[Place, bytes]
"""A row that may be among the first: its place, and itself as stored."""


@dataclass
class _Change:
    """What an epoch does to a partition: the rows that come, the state keys whose rows go or are replaced."""

    comes: list[Candidate] = field(default_factory=list)
    touched: set[bytes] = field(default_factory=set)


@dataclass(frozen=True)
class TopK(Stateless):
    """Rows with their rank, where it is above ``offset`` and at most ``limit``.

    Args:
        schema: the input's columns, then the rank.
        partition: positions of the partition columns; none for one partition of all rows.
        order: the order.
        key: positions of the input's key.
        limit: the greatest rank that is kept.
        offset: how many ranks are left out first.
        ranking: ``row_number``, ``rank`` or ``dense_rank``.
        state: the state table.
    """

    schema: Schema
    partition: tuple[int, ...]
    order: tuple[OrderItem, ...]
    key: tuple[int, ...]
    limit: int
    offset: int
    ranking: str
    state: str

    @property
    def states(self) -> tuple[str, ...]:
        """The rows in order."""
        return (self.state,)

    @cached_property
    def input_schema(self) -> Schema:
        """The columns of the input."""
        return self.schema.select(tuple(range(len(self.schema) - 1)))

    @cached_property
    def placement(self) -> Placement:
        """Rows to state keys."""
        return Placement(self.input_schema, self.partition, self.order, self.key)

    @cached_property
    def row_codec(self) -> RowCodec:
        """Rows to bytes."""
        return RowCodec(self.input_schema.types)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows that come to and go from the first, for a netted delta of whole partitions."""
        (delta,) = inputs
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        goes: list[tuple[int, bytes]] = []
        comes: list[tuple[int, bytes]] = []
        for prefix, change in self._staged(delta, context).items():
            before, after_ = tee(self._published(prefix, context))
            left = ((place, row) for key, place, row in after_ if key not in change.touched)
            old = set(self._first((place, row) for _, place, row in before))
            new = set(self._first(merge(left, sorted(change.comes))))
            goes += sorted(old - new)
            comes += sorted(new - old)
        return self._rows([*goes, *comes], [-1] * len(goes) + [1] * len(comes))

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the first rows of complete partitions."""
        (rows,) = inputs
        parts = Partitions.of(rows, self.input_schema, self.partition, self.order, self.key)
        ranks = parts.ranks(self.ranking)
        kept = np.flatnonzero((ranks > self.offset) & (ranks <= self.limit))
        found = parts.rows.take(kept)
        columns = [*found.rows.columns, pa.array(ranks[kept].astype(np.int32))]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), found.weights)

    def query(self) -> Query:
        """Return the rows whose rank is wanted."""
        width = len(self.input_schema)
        ties = tuple(OrderItem(k) for k in self.key) if self.ranking == "row_number" else ()
        window = over(self.partition, (*self.order, *ties), None)
        ranked = f"SELECT *, {self.ranking}() OVER {window} AS {column_name(width)} FROM i0"
        items = ", ".join(columns_sql(range(width + 1)))
        condition = f"{column_name(width)} > {self.offset} AND {column_name(width)} <= {self.limit}"
        return Query(f"SELECT {items} FROM ({ranked}) WHERE {condition}", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return the input's rows in order."""

        def keys_of(columns: Sequence[pa.Array]) -> list[bytes]:
            rows = len(columns[0])
            pairs = zip(self.placement.prefixes(columns, rows), self.placement.places(columns, rows), strict=True)
            return [self.placement.state_key(prefix, place) for prefix, place in pairs]

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> Sequence[pa.Array]:
            return list(self.row_codec.decode(values).columns)

        query = Query("SELECT * FROM i0", self.input_schema)
        return (Contents(self.state, "rows in order", query, self.key, decode, keys_of),)

    @property
    def kept_in(self) -> str:
        """The rows in order."""
        return self.state

    def unit_end(self, key: bytes, value: bytes) -> bytes | None:
        """Return the key behind the row's partition."""
        (prefix,) = self.placement.prefixes(self.row_codec.decode([value]).columns, 1)
        return after(prefix)

    def kept_rows(self, start: bytes | None, stop: bytes | None, context: StepContext) -> Delta:
        """Return the first rows of the partitions in a range of keys; of the one of all rows no more are read."""
        if not self.partition:
            ranked = list(self._first((place, row) for _, place, row in self._published(b"", context)))
            return self._rows(ranked, [1] * len(ranked))
        values = stored_values(context.lookups, self.state, start, stop)
        return self.whole((Delta.from_rows(self.row_codec.decode(values)),))

    def _staged(self, delta: Delta, context: StepContext) -> dict[bytes, _Change]:
        """Stage the rows that come and go; return what changes by partition."""
        columns, count = delta.rows.columns, delta.num_rows
        prefixes, places = self.placement.prefixes(columns, count), self.placement.places(columns, count)
        changes: dict[bytes, _Change] = {}
        writes: dict[bytes, bytes | None] = {}
        rows = zip(prefixes, places, self.row_codec.encode(delta.rows), delta.weights.tolist(), strict=True)
        for prefix, place, row, weight in rows:
            key = self.placement.state_key(prefix, place)
            change = changes.setdefault(prefix, _Change())
            change.touched.add(key)
            if weight > 0:
                change.comes.append((place, row))
                writes[key] = row
            else:
                writes.setdefault(key, None)
        keys = sorted(writes)
        context.writes.change(self.state, keys, [writes[key] for key in keys])
        return changes

    def _published(self, prefix: bytes, context: StepContext) -> Iterator[tuple[bytes, Place, bytes]]:
        """Yield state key, place and row of a partition's published rows, in order."""
        run: list[tuple[bytes, Place, bytes]] = []
        shared = b""
        for key, row in context.lookups.scan(self.state, prefix, after(prefix)):
            if run and not key.startswith(shared):
                yield from sorted(run, key=lambda found: found[1])
                run = []
            place = self.placement.place_of(prefix, key)
            if place is not None:
                yield key, place, row
            else:
                shared = self.placement.run_of(key)
                run.append((key, self.placement.places(self.row_codec.decode([row]).columns, 1)[0], row))
        yield from sorted(run, key=lambda found: found[1])

    def _first(self, candidates: Iterable[Candidate]) -> Iterator[tuple[int, bytes]]:
        """Yield rank and row of the candidates, which come in order, whose rank is wanted."""
        peers, rank, rank_of_peers = None, 0, 0
        for number, (place, row) in enumerate(candidates, 1):
            if self.ranking == "row_number":
                rank = number
            elif place.order != peers:
                rank_of_peers += 1
                rank = number if self.ranking == "rank" else rank_of_peers
                peers = place.order
            if rank > self.limit:
                return
            if rank > self.offset:
                yield rank, row

    def _rows(self, ranked: list[tuple[int, bytes]], weights: list[int]) -> Delta:
        rows = self.row_codec.decode([row for _, row in ranked])
        columns = [*rows.columns, pa.array([rank for rank, _ in ranked], pa.int32())]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), np.array(weights, np.int64))
