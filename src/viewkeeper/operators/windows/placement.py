"""State keys in an order: partition, then ORDER BY items and the rows' key, so that a scan meets rows in that order.

    partition | full order (items, then key) | length of the items' part
    partition | its first bytes              | 128-bit hash of it        | FFFF      where it is too long

Rows whose full orders share the bytes kept form a run: whoever scans it sorts it by full orders, which follow from the
rows. The number of bytes kept depends on the partition alone, so no other row falls into a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.keys import MAX_KEY_BYTES
from viewkeeper.zset.schema import Schema
from viewkeeper.zset.sort_keys import OrderItem, sort_keys

_PARTITION_BYTES_MAX = 128
_HASHED_PARTITION = b"\xff"
_HASH_BYTES = 16
_TAIL_BYTES = 2
_CUT = 0xFFFF


class Place(NamedTuple):
    """Where a row stands in its partition.

    Args:
        full: sorts as the order does, ties broken by the key.
        width: how many bytes of ``full`` are the order's; the others are the key's.
    """

    full: bytes
    width: int

    @property
    def order(self) -> bytes:
        """Equal for peers."""
        return self.full[: self.width]


@dataclass(frozen=True)
class Placement:
    """Makes places and state keys of rows.

    Args:
        schema: the rows.
        partition: positions of the partition columns.
        order: the order.
        key: positions of the key that tells rows apart.
    """

    schema: Schema
    partition: tuple[int, ...]
    order: tuple[OrderItem, ...]
    key: tuple[int, ...]

    @cached_property
    def _ties(self) -> tuple[OrderItem, ...]:
        named = {item.column for item in self.order}
        return tuple(OrderItem(position) for position in self.key if position not in named)

    def places(self, columns: Sequence[pa.Array], rows: int) -> list[Place]:
        """Return the place of each row."""
        ordered = sort_keys(columns, self.schema.types, self.order, rows)
        full = sort_keys(columns, self.schema.types, (*self.order, *self._ties), rows)
        widths = pc.binary_length(ordered).to_pylist()
        return [Place(f, w) for f, w in zip(full.to_pylist(), widths, strict=True)]

    def prefixes(self, columns: Sequence[pa.Array], rows: int) -> list[bytes]:
        """Return for each row the bytes with which the state keys of its partition, and no others, start."""
        items = [OrderItem(position) for position in self.partition]
        exact: list[bytes] = sort_keys(columns, self.schema.types, items, rows).to_pylist()
        return [p if len(p) <= _PARTITION_BYTES_MAX else _HASHED_PARTITION + _digest(p) for p in exact]

    def state_key(self, prefix: bytes, place: Place) -> bytes:
        """Return the state key of a row at ``place`` of the partition of ``prefix``."""
        kept = MAX_KEY_BYTES - len(prefix) - _TAIL_BYTES - _HASH_BYTES
        if len(place.full) <= kept:
            return prefix + place.full + place.width.to_bytes(_TAIL_BYTES, "big")
        return prefix + place.full[:kept] + _digest(place.full) + _CUT.to_bytes(_TAIL_BYTES, "big")

    def place_of(self, prefix: bytes, state_key: bytes) -> Place | None:
        """Return the place that a state key tells; None where the row itself must tell it."""
        width = int.from_bytes(state_key[-_TAIL_BYTES:], "big")
        return None if width == _CUT else Place(state_key[len(prefix) : -_TAIL_BYTES], width)

    def run_of(self, state_key: bytes) -> bytes:
        """Return what the state keys of a run start with, for a key that does not tell its place."""
        return state_key[: -_TAIL_BYTES - _HASH_BYTES]


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_HASH_BYTES).digest()
