"""Hashes of keys, equal for keys that SQL calls equal, in every process and on every machine.

The hash decides which slot, and so which view manager, owns a key; it must not change between versions while a store
keeps state by slot. It is not stored in keys: those have a cryptographic hash of their own (``keys``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh64_intdigest

from viewkeeper.zset.buffers import Int64Array, float_bits, null_mask, one_array, raw_values
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.schema import SqlType

SLOTS = 1024

UInt64Array = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x4E554C4C4E554C4C)


def hash_columns(
    arrays: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[SqlType], num_rows: int | None = None
) -> UInt64Array:
    """Return one 64-bit hash a row.

    NULL is a value like others, −0.0 hashes as 0.0, all NaN hash alike, and integers of all widths hash by value.

    Args:
        arrays: the key columns.
        types: their types; no MAP.
        num_rows: how many rows there are, needed where there are no columns.

    Example:
        >>> from viewkeeper.zset.schema import DOUBLE
        >>> a, b = hash_columns([pa.array([0.0, -0.0])], [DOUBLE])
        >>> bool(a == b)
        True
    """
    columns = [one_array(column) for column in arrays]
    count = len(columns[0]) if columns else (num_rows or 0)
    hashes = np.zeros(count, np.uint64)
    for column, sql_type in zip(columns, types, strict=True):
        mask = null_mask(column)
        for word in _words(column, sql_type):
            hashes += _GOLDEN
            hashes += word if mask is None else np.where(mask, _NULL, word)
            _mix(hashes)
    return hashes


def slot_of(hashes: UInt64Array) -> Int64Array:
    """Return the slot of each hash, 0 to 1,023: its highest ten bits.

    Example:
        >>> slot_of(np.array([0, 2**64 - 1], np.uint64)).tolist()
        [0, 1023]
    """
    return (hashes >> np.uint64(54)).astype(np.int64)


def _mix(hashes: UInt64Array) -> None:
    """Apply the finalizer of splitmix64 in place: each input bit turns each output bit half of the time."""
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)


def _words(column: pa.Array, sql_type: SqlType) -> list[UInt64Array]:
    """Return uint64 arrays that determine the values; what stands under a NULL is arbitrary."""
    if sql_type.name == "VOID":
        return [np.full(len(column), _NULL)]
    if sql_type.is_nested:
        encoded = KeyCodec((sql_type,)).encode([column])
        return [_digests(pa.array(encoded, pa.large_binary()))]
    if sql_type.name in ("STRING", "BINARY"):
        return [_digests(column.cast(pa.large_binary()))]
    values = raw_values(column)
    if values.dtype.kind == "f":
        values = float_bits(values, equal_zeros=True)
    parts = [values[:, 0], values[:, 1]] if values.ndim == 2 else [values]
    return [np.ascontiguousarray(part, np.int64).view(np.uint64) for part in parts]


def _digests(column: pa.Array) -> UInt64Array:
    encoded = pc.dictionary_encode(column)
    if len(encoded.dictionary) == 0:
        return np.zeros(len(column), np.uint64)
    values = encoded.dictionary.to_numpy(zero_copy_only=False)
    digests = np.fromiter(map(xxh64_intdigest, values), np.uint64, len(values))
    result: UInt64Array = digests[pc.fill_null(encoded.indices, 0).to_numpy()]
    return result
