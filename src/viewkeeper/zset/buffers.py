"""Arrow columns as plain numpy memory: raw values, null masks, and the one form of floats that keys use.

All functions work on the buffers themselves, without copying where the column has no nulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.zset.schema import SqlType, array, decimal, map_of

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_SQL_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.duration("us"): "INTERVAL_DAY_TIME",
    pa.null(): "VOID",
}
# Numbers of types are compared, which epochs of a few rows do by the thousand: asking a type what it is takes longer.
_NULL, _BOOLEAN, _DECIMAL = pa.null().id, pa.bool_().id, pa.decimal128(1).id
_NUMPY_TYPES = {_NULL: np.dtype(np.int8), _BOOLEAN: np.dtype(np.bool_), _DECIMAL: np.dtype(np.int64)}


def from_arrow_type(arrow_type: pa.DataType) -> SqlType:
    """Return the SQL type whose values an Arrow column of ``arrow_type`` holds.

    An interval of years and months is stored as INT and comes back as INT; its bytes and order are the same.

    Args:
        arrow_type: a type that ``schema.to_arrow_type`` gives.

    Raises:
        KeyError: for any other Arrow type.

    Example:
        >>> from_arrow_type(pa.list_(pa.int64()))
        SqlType(name='ARRAY', precision=0, scale=0, children=(SqlType(name='BIGINT', ...),), field_names=())
    """
    if pa.types.is_decimal(arrow_type):
        return decimal(arrow_type.precision, arrow_type.scale)
    if pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        return SqlType("TIMESTAMP")
    if pa.types.is_list(arrow_type):
        return array(from_arrow_type(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return map_of(from_arrow_type(arrow_type.key_type), from_arrow_type(arrow_type.item_type))
    if pa.types.is_struct(arrow_type):
        fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        children = tuple(from_arrow_type(field.type) for field in fields)
        return SqlType("STRUCT", children=children, field_names=tuple(field.name for field in fields))
    return SqlType(_SQL_NAMES[arrow_type])


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return ``column`` as one contiguous array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def null_mask(column: pa.Array) -> BoolArray | None:
    """Return which values are NULL, or None where none is."""
    if column.null_count == 0:
        return None
    mask: BoolArray = column.is_null().to_numpy(zero_copy_only=False)
    return mask


def raw_values(column: pa.Array) -> npt.NDArray[Any]:
    """Return the stored values of a fixed-width column as numpy holds them.

    Integers, DATE, TIMESTAMP and intervals come as integers of their width, floats as floats, BOOLEAN as bool, DECIMAL
    as pairs (low, high) of int64. What stands under a NULL is arbitrary: look at ``null_mask``.

    Args:
        column: an array of a fixed-width type.
    """
    kind = column.type.id
    length, offset = len(column), column.offset
    if length == 0 or kind == _NULL:
        return np.zeros((length, 2) if kind == _DECIMAL else length, _numpy_type(column.type))
    if kind == _BOOLEAN:
        packed = np.frombuffer(column.buffers()[1], np.uint8)
        first_byte, last_byte = offset // 8, (offset + length + 7) // 8
        bits = np.unpackbits(packed[first_byte:last_byte], bitorder="little")
        return bits[offset % 8 : offset % 8 + length].view(np.bool_)
    data = column.buffers()[1]
    if kind == _DECIMAL:
        return np.frombuffer(data, np.int64, 2 * length, 16 * offset).reshape(length, 2)
    dtype = _numpy_type(column.type)
    return np.frombuffer(data, dtype, length, dtype.itemsize * offset)


def _numpy_type(arrow_type: pa.DataType) -> np.dtype[Any]:
    found = _NUMPY_TYPES.get(arrow_type.id)
    if found is None:
        letter = "f" if pa.types.is_floating(arrow_type) else "i"
        found = _NUMPY_TYPES[arrow_type.id] = np.dtype(f"{letter}{arrow_type.bit_width // 8}")
    return found


def float_bits(values: npt.NDArray[Any], equal_zeros: bool) -> npt.NDArray[Any]:
    """Return the bits of floats as integers, all NaN alike.

    Args:
        values: float32 or float64.
        equal_zeros: whether −0.0 also becomes 0.0, as keys want it.
    """
    if equal_zeros:
        values = values + values.dtype.type(0)  # −0.0 + 0.0 is 0.0, everything else stays
    not_a_number = np.isnan(values)
    if not_a_number.any():
        values = np.where(not_a_number, values.dtype.type("nan"), values)
    return values.view(np.dtype(f"i{values.dtype.itemsize}"))


def canonical(column: pa.Array) -> pa.Array:
    """Return ``column`` with one NaN and without −0.0, inside ARRAY and STRUCT too, as SQL compares keys.

    Args:
        column: an array of any type; MAP is left alone, as it cannot be a key.

    Example:
        >>> canonical(pa.array([-0.0, 1.5, None])).to_pylist()
        [0.0, 1.5, None]
    """
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        values = raw_values(column)
        bits = float_bits(values, equal_zeros=True)
        if np.array_equal(bits, values.view(bits.dtype)):
            return column
        return pa.array(bits.view(values.dtype), mask=null_mask(column))
    if pa.types.is_list(arrow_type) and _contains_floats(arrow_type):
        inner = canonical(pc.list_flatten(column))
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int32)
        mask = null_mask(column)
        return pa.ListArray.from_arrays(
            pa.array(offsets), inner, type=arrow_type, mask=None if mask is None else pa.array(mask)
        )
    if pa.types.is_struct(arrow_type) and _contains_floats(arrow_type):
        mask = null_mask(column)
        fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        children = [canonical(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=fields, mask=None if mask is None else pa.array(mask))
    return column


def _contains_floats(arrow_type: pa.DataType) -> bool:
    if pa.types.is_map(arrow_type):
        return False
    if pa.types.is_nested(arrow_type):
        return any(_contains_floats(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    return bool(pa.types.is_floating(arrow_type))
