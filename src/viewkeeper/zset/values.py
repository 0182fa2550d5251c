"""Python values and their raw forms, one at a time and by column.

*Python values* are what users pass and get: ``datetime``, ``Decimal``, ``dict``. *Raw values* are what keys and rows
are made of: DATE as days and TIMESTAMP as microseconds since 1970, DECIMAL as its unscaled integer, STRUCT as a list of
its fields, MAP as a list of pairs in order, all NaN as one; the others are themselves, NULL is None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeeper.errors import InputError, shown
from viewkeeper.zset.buffers import float_bits, null_mask, one_array, raw_values
from viewkeeper.zset.schema import INTEGER_BITS, SqlType, to_arrow_type

Converter = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NTZ = datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP_NTZ has no zone by definition
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_EXACT = Context(prec=100, Emax=10_000, Emin=-10_000, traps=[Inexact, InvalidOperation, Overflow])
_NOT_A_NUMBER = float("nan")
_WORD = (1 << 64) - 1


def is_identity(sql_type: SqlType) -> bool:
    """Return whether the Python value and the raw value of ``sql_type`` are the same object."""
    if sql_type.name == "ARRAY":
        return is_identity(sql_type.children[0])
    return sql_type.is_integer or sql_type.name in ("BOOLEAN", "FLOAT", "DOUBLE", "STRING", "BINARY", "VOID")


def to_raw(sql_type: SqlType) -> Converter:
    """Return the function from a Python value (not None) to its raw value.

    The function raises InputError with the code WRONG_TYPE or VALUE_OUT_OF_RANGE for what does not fit the type. A
    naive ``datetime`` for TIMESTAMP is taken as UTC: callers who know a session zone apply it before.

    Example:
        >>> to_raw(SqlType("DECIMAL", 10, 2))(Decimal("1.5"))
        150
    """
    if sql_type.is_integer:
        return _integer_checker(sql_type)
    if sql_type.name == "DECIMAL":
        return _unscaled_converter(sql_type)
    if sql_type.is_nested:
        return _nested_to_raw(sql_type)
    if sql_type.is_floating:
        return _float_converter(sql_type)
    return _TO_RAW[sql_type.name]


def from_raw(sql_type: SqlType) -> Converter:
    """Return the function from a raw value (not None) to the Python value that users see.

    Example:
        >>> from_raw(SqlType("DATE"))(19000)
        datetime.date(2022, 1, 8)
    """
    if sql_type.name == "DECIMAL":
        return _scaled_converter(sql_type.scale)
    if sql_type.name == "ARRAY":
        element = _nullable(from_raw(sql_type.children[0]))
        return lambda items: [element(item) for item in items]
    if sql_type.name == "MAP":
        key, value = (_nullable(from_raw(child)) for child in sql_type.children)
        return lambda pairs: {key(k): value(v) for k, v in pairs}
    if sql_type.name == "STRUCT":
        names, fields = sql_type.field_names, [_nullable(from_raw(child)) for child in sql_type.children]
        return lambda items: {n: f(item) for n, f, item in zip(names, fields, items, strict=True)}
    return _FROM_RAW.get(sql_type.name, _same)


def _same(value: Any) -> Any:
    return value


def _nullable(convert: Converter) -> Converter:
    return convert if convert is _same else lambda value: None if value is None else convert(value)


# What users pass for a type, by the first word of its name.
_PASSED = {
    "BOOLEAN": "a bool",
    "TINYINT": "an int",
    "SMALLINT": "an int",
    "INT": "an int",
    "BIGINT": "an int",
    "FLOAT": "a float or an int",
    "DOUBLE": "a float or an int",
    "DECIMAL": "a finite Decimal or an int",
    "STRING": "a str of valid Unicode",
    "BINARY": "bytes",
    "DATE": "a datetime.date",
    "TIMESTAMP": "a datetime.datetime",
    "TIMESTAMP_NTZ": "a datetime.datetime without tzinfo",
    "INTERVAL": "a datetime.timedelta, or an int of months for years and months",
    "ARRAY": "a list",
    "MAP": "a dict",
    "STRUCT": "a dict of its fields, or a tuple of as many",
    "VOID": "None",
}
_FIRST_WORD = re.compile(r"\w+")


def wrong_type(value: object, sql_type: SqlType | str) -> InputError:
    """Return the error that says that ``value`` is no value of ``sql_type``, and what to pass."""
    name = str(sql_type).upper()
    word = _FIRST_WORD.match(name)
    remedy = _PASSED[word.group() if word else name]
    return InputError(
        "WRONG_TYPE", f"The value {shown(value)} ({type(value).__name__}) does not fit {name}: pass {remedy}."
    )


def out_of_range(value: object, sql_type: SqlType | str) -> InputError:
    """Return the error that says that ``value`` is too large or too precise for ``sql_type``."""
    return InputError(
        "VALUE_OUT_OF_RANGE", f"The value {shown(value)} is out of range for {str(sql_type).upper()}: give another."
    )


def _integer_checker(sql_type: SqlType) -> Converter:
    limit = 1 << (INTEGER_BITS[sql_type.name] - 1)

    def check(value: Any) -> Any:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise wrong_type(value, sql_type)
            value = int(value)
        if not -limit <= value < limit:
            raise out_of_range(value, sql_type)
        return value

    return check


def _float_converter(sql_type: SqlType) -> Converter:
    is_single = sql_type.name == "FLOAT"

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
            raise wrong_type(value, sql_type)
        try:
            wide = float(value)
        except OverflowError:
            raise out_of_range(value, sql_type) from None
        if math.isnan(wide):
            return _NOT_A_NUMBER
        if not is_single:
            return wide
        with np.errstate(over="ignore"):
            single = float(np.float32(wide))
        if np.isinf(single) and not np.isinf(wide):
            raise out_of_range(value, sql_type)
        return single

    return convert


def _unscaled_converter(sql_type: SqlType) -> Converter:
    scale, limit = sql_type.scale, 10**sql_type.precision
    quantum = Decimal(1).scaleb(-scale, _EXACT)

    def convert(value: Any) -> int:
        if not isinstance(value, Decimal):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise wrong_type(value, sql_type)
            value = Decimal(int(value))
        if not value.is_finite():
            raise wrong_type(value, sql_type)
        try:
            unscaled = int(_EXACT.scaleb(_EXACT.quantize(value, quantum), scale))
        except DecimalException:
            raise out_of_range(value, sql_type) from None
        if not -limit < unscaled < limit:
            raise out_of_range(value, sql_type)
        return unscaled

    return convert


def _scaled_converter(scale: int) -> Converter:
    return lambda unscaled: Decimal(unscaled).scaleb(-scale, _EXACT)


def _date_to_days(value: Any) -> int:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise wrong_type(value, "date")
    return value.toordinal() - _EPOCH_DAY


def _timestamp_to_microseconds(value: Any) -> int:
    if not isinstance(value, datetime):
        raise wrong_type(value, "timestamp")
    if value.tzinfo is None:
        return (value - _EPOCH_NTZ) // _MICROSECOND
    return (value - EPOCH) // _MICROSECOND


def _naive_to_microseconds(value: Any) -> int:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise wrong_type(value, "timestamp_ntz")
    return (value - _EPOCH_NTZ) // _MICROSECOND


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise wrong_type(value, "boolean")
    return bool(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(value, "string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong_type(value, "string") from None
    return value


def _binary(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong_type(value, "binary")
    return bytes(value)


def _interval_to_microseconds(value: Any) -> int:
    if not isinstance(value, timedelta):
        raise wrong_type(value, "interval day to second")
    microseconds = value // _MICROSECOND
    if not -(1 << 63) <= microseconds < 1 << 63:
        raise out_of_range(value, "interval day to second")
    return microseconds


def _nothing(value: Any) -> None:
    raise wrong_type(value, "void")


_TO_RAW: dict[str, Converter] = {
    "BOOLEAN": _boolean,
    "STRING": _string,
    "BINARY": _binary,
    "DATE": _date_to_days,
    "TIMESTAMP": _timestamp_to_microseconds,
    "TIMESTAMP_NTZ": _naive_to_microseconds,
    "INTERVAL_DAY_TIME": _interval_to_microseconds,
    "INTERVAL_YEAR_MONTH": _integer_checker(SqlType("INT")),
    "VOID": _nothing,
}

_FROM_RAW: dict[str, Converter] = {
    "DATE": lambda days: date.fromordinal(days + _EPOCH_DAY),
    "TIMESTAMP": lambda microseconds: EPOCH + timedelta(microseconds=microseconds),
    "TIMESTAMP_NTZ": lambda microseconds: _EPOCH_NTZ + timedelta(microseconds=microseconds),
    "INTERVAL_DAY_TIME": lambda microseconds: timedelta(microseconds=microseconds),
}


def _nested_to_raw(sql_type: SqlType) -> Converter:
    children = [_nullable(to_raw(child)) for child in sql_type.children]

    def array_to_raw(value: Any) -> list[Any]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
            raise wrong_type(value, sql_type)
        return [children[0](item) for item in value]

    def map_to_raw(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, Mapping):
            raise wrong_type(value, sql_type)
        if None in value:
            raise InputError("NULL_MAP_KEY", f"The value {shown(value)} has a NULL key; keys of a MAP are never NULL.")
        return [(children[0](key), children[1](item)) for key, item in value.items()]

    def struct_to_raw(value: Any) -> list[Any]:
        names = sql_type.field_names
        if isinstance(value, Mapping):
            if not value.keys() <= set(names):
                raise wrong_type(value, sql_type)
            return [convert(value.get(name)) for name, convert in zip(names, children, strict=True)]
        if isinstance(value, tuple) and len(value) == len(names):
            return [convert(item) for item, convert in zip(value, children, strict=True)]
        raise wrong_type(value, sql_type)

    return {"ARRAY": array_to_raw, "MAP": map_to_raw, "STRUCT": struct_to_raw}[sql_type.name]


def to_raw_list(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the raw values of an Arrow column; NULL is None, decimals are unscaled integers of any size."""
    column = one_array(column)
    arrow_type = column.type
    if pa.types.is_struct(arrow_type):
        fields = [to_raw_list(child) for child in column.flatten()]
        return _with_nulls(list(zip(*fields, strict=True)) if fields else [()] * len(column), column)
    if pa.types.is_map(arrow_type):
        offsets = _offsets(column)
        start, stop = (offsets[0], offsets[-1]) if offsets else (0, 0)
        keys, items = (to_raw_list(part[start:stop]) for part in (column.keys, column.items))
        return _nested_lists(list(zip(keys, items, strict=True)), offsets, column)
    if pa.types.is_list(arrow_type):
        offsets = _offsets(column)
        start, stop = (offsets[0], offsets[-1]) if offsets else (0, 0)
        return _nested_lists(to_raw_list(column.values[start:stop]), offsets, column)
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type) or pa.types.is_null(arrow_type):
        values: list[Any] = column.to_pylist()
        return values
    raw = raw_values(column)
    if raw.dtype.kind == "f":
        raw = float_bits(raw, equal_zeros=False).view(raw.dtype)
    if raw.ndim == 2:
        low, high = raw[:, 0].tolist(), raw[:, 1].tolist()
        return _with_nulls([(h << 64) | (part & _WORD) for part, h in zip(low, high, strict=True)], column)
    return _with_nulls(raw.tolist(), column)


def _offsets(column: pa.Array) -> list[int]:
    if len(column) == 0:
        return []
    offsets: list[int] = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset).tolist()
    return offsets


def _nested_lists(items: list[Any], offsets: list[int], column: pa.Array) -> list[Any]:
    base = offsets[0] if offsets else 0
    return _with_nulls([items[start - base : stop - base] for start, stop in pairwise(offsets)], column)


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    mask = null_mask(column)
    if mask is not None:
        for i in np.flatnonzero(mask).tolist():
            values[i] = None
    return values


def from_raw_list(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    """Return the Arrow column of ``sql_type`` that holds the raw ``values``: the inverse of ``to_raw_list``."""
    arrow_type = to_arrow_type(sql_type)
    if sql_type.name in ("DATE", "INTERVAL_YEAR_MONTH"):
        return pa.array(values, pa.int32()).view(arrow_type)
    if sql_type.name in ("TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL_DAY_TIME"):
        return pa.array(values, pa.int64()).view(arrow_type)
    if sql_type.name == "DECIMAL":
        return _decimal_array(values, arrow_type)
    if sql_type.name == "ARRAY":
        offsets, items, mask = _flattened(values)
        child = from_raw_list(items, sql_type.children[0])
        return pa.ListArray.from_arrays(offsets, child, type=arrow_type, mask=mask)
    if sql_type.name == "MAP":
        offsets, items, mask = _flattened(values)
        keys = from_raw_list([item[0] for item in items], sql_type.children[0]).cast(arrow_type.key_type)
        mapped = from_raw_list([item[1] for item in items], sql_type.children[1])
        return pa.MapArray.from_arrays(offsets, keys, mapped, arrow_type, mask=mask)
    if sql_type.name == "STRUCT":
        return _struct_array(values, sql_type, arrow_type)
    return pa.array(values, arrow_type)


def _decimal_array(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    mask = np.array([value is None for value in values], np.bool_)
    raw = b"".join([(value or 0).to_bytes(16, "little", signed=True) for value in values])
    validity = pa.py_buffer(np.packbits(~mask, bitorder="little")) if mask.any() else None
    return pa.Array.from_buffers(arrow_type, len(values), [validity, pa.py_buffer(raw)])


def _flattened(values: Sequence[Any]) -> tuple[pa.Array, list[Any], pa.Array | None]:
    lengths = [0 if value is None else len(value) for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    items = [item for value in values if value is not None for item in value]
    return pa.array(offsets), items, _mask(values)


def _mask(values: Sequence[Any]) -> pa.Array | None:
    missing = [value is None for value in values]
    return pa.array(missing, pa.bool_()) if any(missing) else None


def _struct_array(values: Sequence[Any], sql_type: SqlType, arrow_type: pa.DataType) -> pa.Array:
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if not fields:
        return pa.array([None if value is None else {} for value in values], arrow_type)
    children = [
        from_raw_list([None if value is None else value[i] for value in values], child)
        for i, child in enumerate(sql_type.children)
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(values))
