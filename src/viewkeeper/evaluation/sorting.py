"""ORDER BY: which row comes when, as Spark sorts: NaN above all, -0.0 beside 0.0, strings by their UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.plan.nodes import SortKey
from viewkeeper.store.scans import order_key
from viewkeeper.zset.buffers import Int64Array, float_bits, null_mask, raw_values
from viewkeeper.zset.schema import Schema, SqlType

_LOWEST = np.int64(-(2**63))


def sorted_indices(rows: pa.RecordBatch, schema: Schema, order: Sequence[SortKey], ties: Sequence[int]) -> Int64Array:
    """Return the positions of ``rows`` in the order wanted.

    Args:
        rows: the rows.
        schema: their columns.
        order: the ORDER BY items.
        ties: columns that decide between rows that are equal by ``order``, ascending.

    Example:
        >>> from viewkeeper.zset.schema import Column, DOUBLE
        >>> rows = pa.record_batch({"x": [float("nan"), None, 1.0]})
        >>> sorted_indices(rows, Schema((Column("x", DOUBLE),)), [SortKey(0, False, False)], []).tolist()
        [0, 2, 1]
    """
    keys: list[npt.NDArray[Any]] = []
    named = {item.column for item in order}
    for item in (*order, *(SortKey(i, True, True) for i in ties if i not in named)):
        column = rows.column(item.column)
        mask = null_mask(column)
        for number, rank in enumerate(_ranks(column, schema.types[item.column])):
            rank = rank if item.ascending else ~rank
            if mask is not None:
                if number == 0:
                    keys.append(~mask if item.nulls_first else mask)
                rank = np.where(mask, 0, rank)
            keys.append(rank)
    if not keys:
        return np.arange(rows.num_rows)
    return np.lexsort(keys[::-1])


def _ranks(column: pa.Array, sql_type: SqlType) -> list[Int64Array]:
    """Return integers that sort as the values do, most significant first; whatever stands under a NULL."""
    if sql_type.name == "VOID":
        return []
    if sql_type.name in ("STRING", "BINARY"):
        return [_dictionary_ranks(column)]
    if sql_type.is_nested:
        return [_slow_ranks(column, sql_type)]
    values = raw_values(column)
    if sql_type.is_floating:
        bits = float_bits(values, equal_zeros=True).astype(np.int64)
        if sql_type.name == "FLOAT":
            return [np.where(bits < 0, ~(bits & 0x7FFFFFFF), bits)]
        return [np.where(bits < 0, ~bits ^ _LOWEST, bits)]
    if values.ndim == 2:
        return [np.ascontiguousarray(values[:, 1]), values[:, 0] ^ _LOWEST]
    return [values.astype(np.int64)]


def _dictionary_ranks(column: pa.Array) -> Int64Array:
    encoded = pc.dictionary_encode(column)
    rank = np.empty(len(encoded.dictionary), np.int64)
    # Arrow sorts text by its bytes, as Spark does.
    rank[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
    codes = pc.fill_null(encoded.indices, 0).to_numpy()
    return rank[codes] if len(rank) else np.zeros(len(column), np.int64)


def _slow_ranks(column: pa.Array, sql_type: SqlType) -> Int64Array:
    keys = [None if value is None else order_key((sql_type,), (value,)) for value in column.to_pylist()]
    present = sorted({key for key in keys if key is not None})
    rank = {key: number for number, key in enumerate(present)}
    return np.array([0 if key is None else rank[key] for key in keys], np.int64)
