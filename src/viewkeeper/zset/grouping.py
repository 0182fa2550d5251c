"""Equal rows, found by hashing whole columns in numpy.

A column becomes one or more *words*: int64 arrays that are equal exactly where the values are. Rows then meet in a
hash table that is filled by one scatter and read by one gather for all rows; each row compares its words with those of
the slot's winner, and the few that met a different row go on to another round with another hash.

Measured on 1 M rows: 10,000 groups of one BIGINT 8 to 26 ms, 1 M groups 11 to 33 ms (the lower numbers where values are
a small range); pyarrow's dictionary_encode takes 7 and 110 ms, numpy.unique 250 ms. Four BIGINT 45 to 80 ms, where
pyarrow's group_by takes 420 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.buffers import Int64Array, float_bits, from_arrow_type, null_mask, raw_values
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.rows import RowCodec

_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xFF51AFD7ED558CCD], np.uint64
)
_MAX_ROUNDS = 12


def row_words(column: pa.Array) -> list[Int64Array]:
    """Return words that are equal where two values are the same row content: −0.0 and 0.0 differ, NaNs do not."""
    return _words(column, equal_zeros=False)


def key_words(column: pa.Array) -> list[Int64Array]:
    """Return words that are equal where two values are the same key for SQL: −0.0 equals 0.0, all NaN are one."""
    return _words(column, equal_zeros=True)


def _words(column: pa.Array, equal_zeros: bool) -> list[Int64Array]:
    arrow_type = column.type
    if pa.types.is_null(arrow_type):
        return []
    if pa.types.is_nested(arrow_type):
        sql_types = (from_arrow_type(arrow_type),)
        encoded = KeyCodec(sql_types).encode([column]) if equal_zeros else RowCodec(sql_types).encode([column])
        return _words(pa.array(encoded, pa.large_binary()), equal_zeros)
    if _is_variable(arrow_type):
        codes = pc.dictionary_encode(column).indices
        return [pc.fill_null(codes, -1).to_numpy().astype(np.int64)]
    values = raw_values(column)
    if values.dtype.kind == "f":
        values = float_bits(values, equal_zeros)
    parts = [values[:, 0], values[:, 1]] if values.ndim == 2 else [values]
    words: list[Int64Array] = [np.ascontiguousarray(part, np.int64) for part in parts]
    mask = null_mask(column)
    if mask is None:
        return words
    return [np.where(mask, 0, word) for word in words] + [mask.astype(np.int64)]


def _is_variable(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(arrow_type)
        or pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_large_string(arrow_type)
    )


def first_equal_rows(words: Sequence[Int64Array], num_rows: int) -> npt.NDArray[Any]:
    """Return for each row the index of the first row with equal words, itself where it is the first.

    Args:
        words: int64 arrays of ``num_rows`` values; with none, all rows are equal.
        num_rows: how many rows there are.
    """
    index_type = np.int32 if num_rows < 1 << 31 else np.int64
    if not words or num_rows <= 1:
        return np.zeros(num_rows, index_type)
    if len(words) == 1:
        low, high = int(words[0].min()), int(words[0].max())
        if high - low < 4 * num_rows + 1024:
            return _first_in_table(words[0] - low, high - low + 1, index_type)
    return _first_by_hash(words, num_rows, index_type)


def _first_in_table(positions: Int64Array, size: int, index_type: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    """Find first rows where the values themselves are a small range: no hash is needed."""
    table = np.empty(size, index_type)
    # numpy assigns in order, so the last one written, here the first row, stays.
    table[positions[::-1]] = np.arange(len(positions) - 1, -1, -1, dtype=index_type)
    return table[positions]


def _first_by_hash(
    words: Sequence[Int64Array], num_rows: int, index_type: type[np.signedinteger[Any]]
) -> npt.NDArray[Any]:
    bits = max(8, (2 * num_rows - 1).bit_length())
    table = np.empty(1 << bits, index_type)
    hashes = _hash(words)
    rows = np.arange(num_rows, dtype=index_type)
    first = rows.copy()
    current = list(words)
    for number in range(_MAX_ROUNDS):
        slots = (hashes >> np.uint64(64 - bits)).view(np.int64)
        table[slots[::-1]] = rows[::-1]
        winners = table[slots]
        differs = words[0][winners] != current[0]
        for word, own in zip(words[1:], current[1:], strict=True):
            differs |= word[winners] != own
        remaining = np.flatnonzero(differs)
        if number == 0:
            first = winners
        else:
            first[rows] = winners
        if len(remaining) == 0:
            return first
        rows = rows[remaining]
        current = [own[remaining] for own in current]
        hashes = hashes[remaining]
        hashes = (hashes ^ (hashes >> np.uint64(29))) * _MULTIPLIERS[number % len(_MULTIPLIERS)]
    first[rows] = _first_by_sort(current, rows)
    return first


def _hash(words: Sequence[Int64Array]) -> npt.NDArray[np.uint64]:
    hashes: npt.NDArray[np.uint64] = words[0].view(np.uint64) * _MULTIPLIERS[0]
    for word in words[1:]:
        hashes ^= hashes >> np.uint64(32)
        hashes += word.view(np.uint64)
        hashes *= _MULTIPLIERS[1]
    hashes ^= hashes >> np.uint64(31)
    hashes *= _MULTIPLIERS[2]
    return hashes


def _first_by_sort(words: Sequence[Int64Array], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Find first rows among the few whose 64-bit hashes collide: no input can make grouping wrong or endless."""
    order = np.lexsort((rows, *words))
    starts = np.zeros(len(order), np.bool_)
    starts[0] = True
    for word in words:
        ordered = word[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    leaders = rows[order][np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    result = np.empty_like(rows)
    result[order] = leaders
    return result
