"""Rows sorted by partition and order, and where partitions and runs of equal rows (peers) begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema
from viewkeeper.zset.sort_keys import OrderItem, sort_keys

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partitions:
    """Sorted rows; all arrays have one element a row.

    Args:
        rows: the rows, partition after partition, each in order.
        new_partition: whether a row is the first of its partition.
        new_peers: whether a row differs in the order from the one before, or is the first of its partition.
    """

    rows: Delta
    new_partition: npt.NDArray[np.bool_]
    new_peers: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        rows: Delta,
        schema: Schema,
        partition: Sequence[int],
        order: Sequence[OrderItem],
        key: Sequence[int],
    ) -> Partitions:
        """Return ``rows`` sorted; ties of the order are broken by the key, which tells rows apart."""
        count = rows.num_rows
        columns = rows.rows.columns
        codes = rows.group(partition)[0]
        ordered = sort_keys(columns, schema.types, order, count)
        named = {item.column for item in order}
        ties = [OrderItem(position) for position in key if position not in named]
        full = sort_keys(columns, schema.types, [*order, *ties], count)
        at = pc.array_sort_indices(full).to_numpy().astype(np.int64)
        at = at[np.argsort(codes[at], kind="stable")]
        new_partition, new_peers = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
        if count > 1:
            new_partition[1:] = codes[at][1:] != codes[at][:-1]
            taken = ordered.take(pa.array(at))
            differs = pc.not_equal(taken[1:], taken[:-1]).to_numpy(zero_copy_only=False)
            new_peers[1:] = new_partition[1:] | differs
        return cls(rows.take(at), new_partition, new_peers)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.num_rows

    @cached_property
    def place(self) -> Int64Array:
        """0, 1, 2, ..."""
        return np.arange(self.count)

    @cached_property
    def codes(self) -> Int64Array:
        """The number of the partition."""
        return np.cumsum(self.new_partition) - 1

    @cached_property
    def start(self) -> Int64Array:
        """Where the partition begins."""
        return _starts(self.new_partition)

    @cached_property
    def stop(self) -> Int64Array:
        """Where the partition ends: the place behind it."""
        return _stops(self.new_partition)

    @cached_property
    def peers_start(self) -> Int64Array:
        """Where the row's peers begin."""
        return _starts(self.new_peers)

    @cached_property
    def peers_stop(self) -> Int64Array:
        """Where the row's peers end."""
        return _stops(self.new_peers)

    def ranks(self, ranking: str) -> Int64Array:
        """Return ``row_number``, ``rank`` or ``dense_rank``."""
        if ranking == "row_number":
            return self.place - self.start + 1
        if ranking == "rank":
            return self.peers_start - self.start + 1
        numbers = np.cumsum(self.new_peers)
        return np.asarray(numbers - numbers[self.start] + 1)


def _starts(begins: npt.NDArray[np.bool_]) -> Int64Array:
    starts: Int64Array = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    return starts


def _stops(begins: npt.NDArray[np.bool_]) -> Int64Array:
    edges = np.r_[np.flatnonzero(begins), len(begins)]
    return np.repeat(edges[1:], np.diff(edges))
