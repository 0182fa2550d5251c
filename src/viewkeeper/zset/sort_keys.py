"""Orders as bytes: ORDER BY items, ascending or descending, with NULLs first or last, as keys that sort so.

An item is the component that ``keys.py`` gives its value, never truncated. Descending, all its bits are turned over:
no component is a prefix of another, so that reverses the order. NULL, which is 00, becomes 02 where it goes behind
ascending values, and stays 00 before descending ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.keys import sortable
from viewkeeper.zset.schema import SqlType

_NULL_FIRST = pa.scalar(b"\x00", pa.large_binary())
_NULL_LAST = pa.scalar(b"\x02", pa.large_binary())
_NOTHING = pa.scalar(b"", pa.large_binary())


@dataclass(frozen=True)
class OrderItem:
    """One item of an order: the position of a column and how it sorts."""

    column: int
    ascending: bool = True
    nulls_first: bool = True


def sort_keys(columns: Sequence[pa.Array], types: Sequence[SqlType], order: Sequence[OrderItem], rows: int) -> pa.Array:
    """Return one binary a row; they sort as the rows do by ``order``, and are equal where it leaves a tie.

    Args:
        columns: the columns of the rows.
        types: their types; those that are ordered contain no MAP.
        order: the items.
        rows: how many rows there are.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT
        >>> keys = sort_keys([pa.array([1, None, 2])], [BIGINT], [OrderItem(0, False, False)], 3)
        >>> pc.array_sort_indices(keys).to_pylist()
        [2, 0, 1]
    """
    parts = [_item(columns[item.column], types[item.column], item) for item in order]
    if not parts:
        return pa.array([b""] * rows, pa.large_binary())
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _NOTHING)


def _item(column: pa.Array, sql_type: SqlType, item: OrderItem) -> pa.Array:
    components = sortable(column, sql_type)
    if not item.ascending:
        components = _turned(components)
    if item.nulls_first == item.ascending or not column.null_count:
        return components
    return pc.if_else(column.is_null(), _NULL_LAST if item.ascending else _NULL_FIRST, components)


def _turned(components: pa.Array) -> pa.Array:
    """Return the binaries with all bits turned over."""
    if not len(components):
        return components
    data = np.frombuffer(components.buffers()[2], np.uint8)
    buffers = [None, components.buffers()[1], pa.py_buffer(~data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(components), buffers, 0, components.offset)
