"""Sorting rows by their key bytes, at array speed where the values sort as the bytes do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Order: TypeAlias = npt.NDArray[np.int64]
Encode: TypeAlias = Callable[[Sequence[pa.Array]], list[bytes]]

# Key bytes of these types have a fixed width and order as Arrow orders the values; others are sorted as bytes.
_ARROW_ORDERED = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


def encode_sorted(encode: Encode, columns: Sequence[pa.Array]) -> tuple[list[bytes], Order | None]:
    """Return the key bytes of the rows in ascending order, and that order.

    Args:
        encode: makes key bytes of columns: ``KeyCodec.encode``, or ``encode_prefixes`` for scans.
        columns: the key columns, at least one.

    Returns:
        The keys, ascending; and the row that each belongs to, None where the rows were in order already.

    Example:
        >>> from viewkeeper.zset.keys import KeyCodec
        >>> from viewkeeper.zset.schema import BIGINT
        >>> keys, order = encode_sorted(KeyCodec((BIGINT,)).encode, [pa.array([3, None, 1])])
        >>> order.tolist(), keys == sorted(keys)
        ([1, 2, 0], True)
    """
    if not all(any(check(c.type) for check in _ARROW_ORDERED) for c in columns):
        return _sorted_bytes(encode(columns))
    order = _arrow_order(columns)
    if order is None:
        return encode(columns), None
    at = pa.array(order)
    return encode([c.take(at) for c in columns]), order


def _sorted_bytes(keys: list[bytes]) -> tuple[list[bytes], Order | None]:
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return list(map(keys.__getitem__, order)), np.array(order, dtype=np.int64)


def _arrow_order(columns: Sequence[pa.Array]) -> Order | None:
    if len(columns) == 1 and not columns[0].null_count and pa.types.is_int64(columns[0].type):
        values = columns[0].to_numpy()
        if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):
            return None
        order: Order = np.argsort(values, kind="stable")
        return order
    table = pa.table(list(columns), names=[f"k{i}" for i in range(len(columns))])
    sort_keys = [(name, "ascending", "at_start") for name in table.column_names]
    indices = pc.sort_indices(table, sort_keys=sort_keys)
    positions: Order = indices.to_numpy().astype(np.int64)
    return positions
