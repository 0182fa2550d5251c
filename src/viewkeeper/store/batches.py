"""Bulk rows in: dicts, pandas, polars and Arrow, all as record batches of a table's own types.

Arrow columns are cast where nothing can be lost and refused by the same codes as single values elsewhere. Neither
pandas nor polars is imported here: a frame is known by the methods it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import InputError, shown
from viewkeeper.store.model import Table
from viewkeeper.store.tables import Values
from viewkeeper.store.values import (
    convert_value,
    in_column,
    null_in_column,
    place_of,
    row_from_dict,
    unknown_column,
    zone,
)
from viewkeeper.zset.schema import Column, SqlType, to_arrow_type
from viewkeeper.zset.values import from_raw_list, out_of_range, to_raw, wrong_type

ROWS_PER_BATCH = 65_536
_FIRST_DAY, _LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
_FIRST_MOMENT, _LAST_MOMENT = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001


def batch_from(table: Table, data: object, time_zone: str = "UTC") -> Iterator[pa.RecordBatch]:
    """Yield ``data`` as batches of all the table's columns, in order; absent columns hold their DEFAULT, else NULL.

    Args:
        table: the table that the rows are for.
        data: an iterable of dicts or of Arrow record batches; a pandas or polars frame; an Arrow table, record batch
            or reader; anything with ``__arrow_c_stream__``. In pandas frames NaN means NULL, as pandas has it.
        time_zone: the session's zone, in which naive datetimes are read for TIMESTAMP.

    Raises:
        InputError: as ``values.row_from_dict``; ``WRONG_TYPE`` also for data of another kind. Of Arrow data,
            ``details["row"]`` is the place of the row among all (0 is the first), where one row is wrong.
    """
    if isinstance(data, (pa.RecordBatch, pa.Table, pa.RecordBatchReader)):
        parts: Iterable[Any] = [data] if isinstance(data, pa.RecordBatch) else _batches_of(data)
    elif type(data).__module__.partition(".")[0] == "pandas":
        parts = pa_table_from_pandas(data).to_batches(ROWS_PER_BATCH)
    elif hasattr(data, "__arrow_c_stream__"):
        parts = pa.RecordBatchReader.from_stream(data)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
        parts = data
    else:
        raise InputError(
            "WRONG_TYPE",
            f"Rows for {place_of(table)} come as dicts, a pandas or polars frame or Arrow data, not as"
            f" {type(data).__name__}.",
        )
    yield from _converted(table, iter(parts), time_zone)


def _converted(table: Table, parts: Iterator[Any], time_zone: str) -> Iterator[pa.RecordBatch]:
    first = next(parts, None)
    if first is None:
        return
    everything = chain([first], parts)
    if isinstance(first, pa.RecordBatch):
        yield from _from_arrows(table, everything, time_zone)
        return
    while rows := [_row(table, item, time_zone) for item in islice(everything, ROWS_PER_BATCH)]:
        yield batch_of_rows(table, rows)


def _from_arrows(table: Table, batches: Iterable[pa.RecordBatch], time_zone: str) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            try:
                converted = _from_arrow(table, batch.slice(start, ROWS_PER_BATCH), time_zone)
            except InputError as error:
                _place_row(error, before + start)
                raise
            yield converted
        before += batch.num_rows


def _place_row(error: InputError, before: int) -> None:
    """Count the wrong row, if the error has one, from ``before`` rows earlier."""
    if "row" in error.details:
        error.details["row"] = before + int(str(error.details["row"]))


def _row(table: Table, item: object, time_zone: str) -> Values:
    if not isinstance(item, Mapping):
        raise InputError(
            "WRONG_TYPE", f"A row for {place_of(table)} is a dict of column names and values, not {shown(item)}."
        )
    return row_from_dict(table, item, time_zone)


def batch_of_rows(table: Table, rows: list[Values]) -> pa.RecordBatch:
    """Return whole rows, in column order and as ``row_from_dict`` gives them, as one batch."""
    arrays = []
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(table.schema)
    for column, values in zip(table.schema.columns, columns, strict=True):
        convert = to_raw(column.type)
        arrays.append(from_raw_list([None if v is None else convert(v) for v in values], column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema.to_arrow())


def pa_table_from_pandas(frame: Any) -> pa.Table:
    """Return a pandas frame as an Arrow table, without its index.

    Raises:
        InputError: ``WRONG_TYPE`` where a column mixes types that Arrow cannot hold together.
    """
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            "WRONG_TYPE", f"The frame has a column of mixed types: {error}. Give it one type, for example by astype."
        ) from error


def _batches_of(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table):
        return iter(data.to_batches(ROWS_PER_BATCH))
    return iter(data)


# ---- Arrow columns ----


def _from_arrow(table: Table, batch: pa.RecordBatch, time_zone: str) -> pa.RecordBatch:
    place = place_of(table)
    given: dict[int, pa.Array] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        i = table.schema.index(name)
        if i < 0:
            raise unknown_column(name, table.schema.names, place)
        if i in given:
            raise InputError("DUPLICATE_COLUMN", f"Column {name!r} of {place} is given twice: give it once.")
        given[i] = array
    arrays = []
    for i, column in enumerate(table.schema.columns):
        if i in given:
            array = cast_column(column, given[i], time_zone, place)
        else:
            array = constant(table.defaults[i], column.type, batch.num_rows)
        if array.null_count and (not column.nullable or i in table.key):
            raise _in_row(null_in_column(column, place), pc.index(array.is_null(), True).as_py())
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema.to_arrow())


def constant(value: object, sql_type: SqlType, length: int) -> pa.Array:
    """Return an array of ``length`` times the Python value ``value``."""
    one = from_raw_list([None if value is None else to_raw(sql_type)(value)], sql_type)
    return one.take(pa.repeat(pa.scalar(0, pa.int64()), length))


def cast_column(column: Column, array: pa.Array, time_zone: str, place: str) -> pa.Array:
    """Return ``array`` in the Arrow type of ``column``, losing nothing.

    Args:
        column: the column that it is for.
        array: values of any Arrow type.
        time_zone: the session's zone.
        place: whose column it is, for messages.

    Raises:
        InputError: ``WRONG_TYPE`` or ``VALUE_OUT_OF_RANGE``, naming the column.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    target = to_arrow_type(column.type)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if column.type.is_nested:
        return array if array.type == target else _by_value(column, array, time_zone, place)
    family = _family(array.type)
    if family not in _ACCEPTED.get(column.type.name, ()):
        raise in_column(wrong_type(_example(array), column.type), column, _example(array), place)
    try:
        converted = _cast(array, family, column.type, target, time_zone)
    except pa.ArrowInvalid:
        # Rare: one value at a time finds the one that does not fit, or reads what Arrow's kernel cannot.
        return _by_value(column, array, time_zone, place)
    _check_calendar(column, converted, place)
    return converted


_ACCEPTED: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("boolean",),
    "TINYINT": ("integer", "floating"),
    "SMALLINT": ("integer", "floating"),
    "INT": ("integer", "floating"),
    "BIGINT": ("integer", "floating"),
    "FLOAT": ("integer", "floating"),
    "DOUBLE": ("integer", "floating"),
    "DECIMAL": ("integer", "decimal"),
    "STRING": ("string",),
    "BINARY": ("binary",),
    "DATE": ("date",),
    "TIMESTAMP": ("timestamp", "naive timestamp"),
    "TIMESTAMP_NTZ": ("naive timestamp",),
}


def _family(arrow_type: pa.DataType) -> str:
    tests = (
        ("boolean", pa.types.is_boolean),
        ("integer", pa.types.is_integer),
        ("floating", pa.types.is_floating),
        ("decimal", pa.types.is_decimal),
        ("date", pa.types.is_date),
    )
    for name, test in tests:
        if test(arrow_type):
            return name
    if pa.types.is_timestamp(arrow_type):
        return "naive timestamp" if arrow_type.tz is None else "timestamp"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return "string"
    is_binary = pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type)
    if is_binary or pa.types.is_fixed_size_binary(arrow_type) or pa.types.is_binary_view(arrow_type):
        return "binary"
    return "other"


def _cast(array: pa.Array, family: str, sql_type: SqlType, target: pa.DataType, time_zone: str) -> pa.Array:
    if array.type == target:
        return array
    if sql_type.is_floating:
        # Rounding is meant here, as Python's own float() does; only what becomes infinite does not fit.
        converted = array.cast(target, safe=False)
        if pc.any(pc.and_(pc.is_inf(converted), pc.is_finite(array.cast(pa.float64(), safe=False)))).as_py():
            raise pa.ArrowInvalid("too large")
        return converted
    if sql_type.name == "DECIMAL" and family == "integer":
        return array.cast(pa.decimal128(38, 0)).cast(pa.decimal256(76, sql_type.scale)).cast(target)
    if sql_type.name == "TIMESTAMP" and family == "naive timestamp":
        moments = array.cast(pa.timestamp("us"))
        return pc.assume_timezone(moments, str(zone(time_zone)), ambiguous="earliest", nonexistent="raise").cast(target)
    return array.cast(target)


def _check_calendar(column: Column, array: pa.Array, place: str) -> None:
    """Refuse days and moments outside the years 1 to 9999, which neither Spark nor Python can show."""
    name = column.type.name
    if name not in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return
    first: Any = _FIRST_DAY if name == "DATE" else _FIRST_MOMENT
    last: Any = _LAST_DAY if name == "DATE" else _LAST_MOMENT
    if name == "TIMESTAMP":
        first, last = first.replace(tzinfo=UTC), last.replace(tzinfo=UTC)
    limits = [pa.scalar(limit, array.type) for limit in (first, last)]
    bad = pc.or_(pc.less(array, limits[0]), pc.greater(array, limits[1]))
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        number = array[row].cast(pa.int32() if name == "DATE" else pa.int64()).as_py()
        unit = "days" if name == "DATE" else "microseconds"
        shown = f"{number} {unit} since 1970"
        raise _in_row(in_column(out_of_range(shown, column.type), column, shown, place), row)


def _example(array: pa.Array) -> object:
    valid = array.drop_null()
    try:
        return valid[0].as_py() if len(valid) else None
    except (ValueError, OverflowError):
        return str(valid[0])


def _by_value(column: Column, array: pa.Array, time_zone: str, place: str) -> pa.Array:
    convert = to_raw(column.type)
    raw = []
    for row, value in enumerate(_python_values(column, array, place)):
        if column.type.is_integer and isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, float) and column.type.is_integer:
            raise _in_row(in_column(out_of_range(value, column.type), column, value, place), row)
        try:
            converted = convert_value(column, value, time_zone, place)
        except InputError as error:
            raise _in_row(error, row) from error.__cause__
        raw.append(None if converted is None else convert(converted))
    return from_raw_list(raw, column.type)


def _in_row(error: InputError, row: int) -> InputError:
    error.details["row"] = row
    return error


def _python_values(column: Column, array: pa.Array, place: str) -> list[Any]:
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        floored = array.cast(pa.timestamp("us", array.type.tz), safe=False)
        lossy = pc.not_equal(floored.cast(array.type), array)
        if pc.any(lossy).as_py():
            shown = str(array.filter(lossy)[0])
            raise in_column(out_of_range(shown, column.type), column, shown, place)
        array = floored
    try:
        return list(array.to_pylist(maps_as_pydicts="strict"))
    except (ValueError, OverflowError, KeyError) as error:
        shown = f"an Arrow {array.type}"
        raise in_column(out_of_range(shown, column.type), column, shown, place) from error
