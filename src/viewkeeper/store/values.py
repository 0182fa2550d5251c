"""Python values in: what users pass, checked against a table's columns and brought to the one form that is stored.

The forms of values themselves (which Python type fits which SQL type) are in ``zset.values``; here they meet columns:
names without regard to case, defaults, NOT NULL, the session's time zone, and messages that name the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from viewkeeper.errors import InputError, shown
from viewkeeper.store.model import Table
from viewkeeper.store.tables import Values
from viewkeeper.zset.schema import Column, SqlType
from viewkeeper.zset.values import from_raw, is_identity, out_of_range, to_raw

_TYPES_WITHOUT_CONTEXT = 512
_MISSING = object()
# Of a name that is compared with others; files have longer ones.
_NAME_LETTERS = 256


def row_from_dict(table: Table, values: Mapping[str, object], time_zone: str = "UTC") -> Values:
    """Return a whole row in column order.

    Args:
        table: the table that the row is for.
        values: values by column name, in any case; absent columns take their DEFAULT, else NULL.
        time_zone: the session's zone, in which naive datetimes are read for TIMESTAMP.

    Raises:
        InputError: ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, ``NULL_IN_NOT_NULL_COLUMN``, ``WRONG_TYPE``,
            ``VALUE_OUT_OF_RANGE`` or ``INVALID_TIME_ZONE``, naming the column.
    """
    return _row_reader(table, time_zone).row(_by_name(table, values))


def changes_from_dict(table: Table, values: Mapping[str, object], time_zone: str = "UTC") -> dict[int, object]:
    """Return the given columns only, by position: what UpdateRow and the expectation of CheckAndPut take.

    Args:
        table: the table.
        values: values by column name, in any case.
        time_zone: the session's zone.

    Raises:
        InputError: as ``row_from_dict``.
    """
    return _row_reader(table, time_zone).some(_by_name(table, values))


def expectation_from_dict(table: Table, values: Mapping[str, object], time_zone: str = "UTC") -> dict[int, object]:
    """Return what a row is expected to show, by position; NULL may be expected of any column.

    Args:
        table: the table.
        values: values by column name, in any case.
        time_zone: the session's zone.

    Raises:
        InputError: as ``row_from_dict``, NULL excepted.
    """
    return _row_reader(table, time_zone).some(_by_name(table, values), may_be_null=True)


def _by_name(table: Table, values: object) -> Mapping[str, object]:
    if isinstance(values, Mapping):
        return values
    message = f"A row for {place_of(table)} is a dict of column names and values, not {shown(values)}."
    raise InputError("WRONG_TYPE", message)


def key_values(names: Sequence[str], types: Sequence[SqlType], key: object, time_zone: str = "UTC") -> Values:
    """Return the key columns' values from any form in which users write a key.

    Args:
        names: the key columns' names, in key order.
        types: their types.
        key: one value where the key is one column, else a tuple or list in key order, or a dict by name.
        time_zone: the session's zone.

    Raises:
        InputError: ``WRONG_KEY_LENGTH``, ``UNKNOWN_COLUMN``, ``MISSING_KEY_COLUMN``, ``WRONG_TYPE`` or
            ``VALUE_OUT_OF_RANGE``.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, STRING
        >>> key_values(("a",), (BIGINT,), 7), key_values(("a", "b"), (BIGINT, STRING), {"B": "x", "a": 7})
        ((7,), (7, 'x'))
    """
    values = _key_sequence(tuple(names), types, key)
    columns = [Column(name, sql_type) for name, sql_type in zip(names, types, strict=True)]
    return tuple(
        convert_value(column, value, time_zone, "the key") for column, value in zip(columns, values, strict=False)
    )


def key_of_table(table: Table, key: object, time_zone: str = "UTC") -> Values:
    """Return the primary key's values from any form in which users write a key; see ``key_values``."""
    if key is not None and len(table.key) == 1 and not isinstance(key, (Mapping, tuple, list)):
        # The usual form, for many deletes in a row; what is wrong with a value is said below.
        try:
            value = _row_reader(table, time_zone).key_converter(key)
        except InputError:
            value = None
        if value is not None:
            return (value,)
    columns = table.key_columns
    return key_values([c.name for c in columns], [c.type for c in columns], key, time_zone)


def convert_value(column: Column, value: object, time_zone: str, place: str) -> object:
    """Return ``value`` in the form that ``column`` stores, None for NULL.

    Args:
        column: the column.
        value: what the user passed.
        time_zone: the session's zone.
        place: whose column it is, for messages, for example ``table 't'``.

    Raises:
        InputError: ``WRONG_TYPE`` or ``VALUE_OUT_OF_RANGE``, naming the column.
    """
    if value is None:
        return None
    try:
        return converter(column.type, time_zone)(value)
    except InputError as error:
        raise in_column(error, column, value, place) from error


def in_column(error: InputError, column: Column, value: object, place: str) -> InputError:
    """Return ``error`` with the column that it happened in."""
    return InputError(
        error.code,
        f"Column {column.name!r} of {place}: {error.message}",
        {**error.details, "column": column.name, "type": str(column.type), "value": shown(value)},
    )


def unknown_column(name: str, names: Sequence[str], place: str) -> InputError:
    """Return the error for a column that is not there, with the name that was probably meant."""
    folded = {known.lower(): known for known in names}
    near = get_close_matches(str(name)[:_NAME_LETTERS].lower(), folded, n=1)
    hint = f"did you mean {folded[near[0]]!r}?" if near else f"it has {', '.join(map(repr, names))}."
    return InputError(
        "UNKNOWN_COLUMN",
        f"There is no column {shown(name)} in {place}: {hint}",
        {"name": name, "column": name, "columns": list(names)},
    )


def null_in_column(column: Column, place: str) -> InputError:
    """Return the error for a NULL where none may be."""
    return InputError(
        "NULL_IN_NOT_NULL_COLUMN",
        f"Column {column.name!r} of {place} is NOT NULL or part of the key: give it a value.",
        {"column": column.name},
    )


def place_of(table: Table) -> str:
    """Return how messages call ``table``."""
    return f"table {table.name!r}"


@lru_cache(maxsize=64)
def zone(time_zone: str) -> ZoneInfo:
    """Return the time zone of that name.

    Raises:
        InputError: ``INVALID_TIME_ZONE`` where there is none.
    """
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError("INVALID_TIME_ZONE", f"There is no time zone {time_zone!r}: use a name like UTC.") from error


# ---- one value ----

Convert = Callable[[Any], Any]


@lru_cache(maxsize=_TYPES_WITHOUT_CONTEXT)
def converter(sql_type: SqlType, time_zone: str) -> Convert:
    """Return the function from what users pass (not None) to the Python value that reading it back gives.

    Args:
        sql_type: the column's type.
        time_zone: the zone in which naive datetimes are read for TIMESTAMP.
    """
    localise = _localiser(sql_type, zone(time_zone))
    raw, back = to_raw(sql_type), from_raw(sql_type)
    if is_identity(sql_type) and localise is None and sql_type.name != "ARRAY":

        def plain(value: Any) -> Any:
            return raw(value.item() if isinstance(value, np.generic) else value)

        return plain

    def convert(value: Any) -> Any:
        value = _unboxed(value)
        if value is None:
            return None
        try:
            return back(raw(value if localise is None else localise(value)))
        except OverflowError:
            raise out_of_range(value, sql_type) from None

    return convert


def _unboxed(value: Any) -> Any:
    """Return numpy's scalars and arrays as Python's own; NaT and the like as None."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.generic):
        return value.item()
    elif isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, datetime) and value != value:  # noqa: PLR0124 - so NaT shows
        return None
    return value


def _localiser(sql_type: SqlType, session_zone: ZoneInfo) -> Convert | None:
    """Return the function that gives naive datetimes for TIMESTAMP the session's zone; None where none can occur."""
    if sql_type.name == "TIMESTAMP":

        def localise(value: Any) -> Any:
            if isinstance(value, datetime) and value.tzinfo is None:
                # In a gap fold 0 uses the offset before it, as Spark does.
                return _to_utc(value.replace(tzinfo=session_zone, fold=0))
            return value

        return localise
    inner = [_localiser(child, session_zone) for child in sql_type.children]
    if not any(inner):
        return None
    children = [_or_null(child) for child in inner]
    if sql_type.name == "ARRAY":
        return lambda v: [children[0](x) for x in v] if isinstance(v, (list, tuple)) else v
    if sql_type.name == "MAP":
        return lambda v: {children[0](k): children[1](x) for k, x in v.items()} if isinstance(v, Mapping) else v
    by_name = dict(zip(sql_type.field_names, children, strict=True))

    def localise_struct(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: by_name[name](item) if name in by_name else item for name, item in value.items()}
        if isinstance(value, tuple) and len(value) == len(children):
            return tuple(child(item) for child, item in zip(children, value, strict=True))
        return value

    return localise_struct


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise out_of_range(value, "TIMESTAMP") from None


def _or_null(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


# ---- whole rows ----


class _RowReader:
    """The checks of one table's rows in one time zone."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self._table = table
        self._place = place_of(table)
        columns = table.schema.columns
        self._positions = {column.name.lower(): i for i, column in enumerate(columns)}
        not_null = {i for i, column in enumerate(columns) if not column.nullable} | set(table.key)
        self._time_zone = time_zone
        self._columns = [
            (i, column.name, column, converter(column.type, time_zone), i in not_null)
            for i, column in enumerate(columns)
        ]
        self.key_converter = converter(columns[table.key[0]].type, time_zone)

    def row(self, values: Mapping[str, object], names_are_exact: bool = False) -> Values:
        row: list[object] = []
        found = 0
        for i, name, column, convert, not_null in self._columns:
            value = values.get(name, _MISSING)
            if value is _MISSING:
                value = self._table.defaults[i]
            else:
                found += 1
            if value is not None:
                try:
                    value = convert(value)
                except InputError as error:
                    raise in_column(error, column, value, self._place) from error
            if value is None and not_null:
                if not names_are_exact:
                    return self._row_in_other_case(values)
                raise null_in_column(column, self._place)
            row.append(value)
        return tuple(row) if found == len(values) else self._row_in_other_case(values)

    def _row_in_other_case(self, values: Mapping[str, object]) -> Values:
        """Read a row some of whose names are written in another case than the table's, or do not exist."""
        named = self.some(values)
        names = self._table.schema.names
        return self.row({names[i]: value for i, value in named.items()}, names_are_exact=True)

    def some(self, values: Mapping[str, object], may_be_null: bool = False) -> dict[int, object]:
        found: dict[int, object] = {}
        for name, value in values.items():
            i = self._positions.get(str(name).lower(), -1)
            if i < 0:
                raise unknown_column(name, self._table.schema.names, self._place)
            if i in found:
                raise InputError("DUPLICATE_COLUMN", f"Column {name!r} of {self._place} is given twice: give it once.")
            column, not_null = self._columns[i][2], self._columns[i][4]
            converted = convert_value(column, value, self._time_zone, self._place)
            if converted is None and not_null and not may_be_null:
                raise null_in_column(column, self._place)
            found[i] = converted
        return found


_READERS_MAX = 1024
_readers: dict[tuple[int, str], tuple[Table, _RowReader]] = {}


def _row_reader(table: Table, time_zone: str) -> _RowReader:
    # As tables.format_of: the object's identity stands for its content, for hashing a table costs more than a put.
    found = _readers.get((id(table), time_zone))
    if found is not None and found[0] is table:
        return found[1]
    if len(_readers) >= _READERS_MAX:
        _readers.clear()
    reader = _RowReader(table, time_zone)
    _readers[(id(table), time_zone)] = (table, reader)
    return reader


def _key_sequence(names: tuple[str, ...], types: Sequence[SqlType], key: object) -> Sequence[object]:
    if isinstance(key, Mapping):
        given = {str(name).lower(): value for name, value in key.items()}
        folded = [name.lower() for name in names]
        for name in key:
            if str(name).lower() not in folded:
                raise unknown_column(str(name), names, "the key")
        missing = next((name for name in names if name.lower() not in given), None)
        if missing is not None:
            raise InputError("MISSING_KEY_COLUMN", f"The key lacks {missing!r}: it has {', '.join(map(repr, names))}.")
        return [given[name] for name in folded]
    is_value = len(names) == 1 and (not isinstance(key, (tuple, list)) or types[0].is_nested)
    values = [key] if is_value or not isinstance(key, (tuple, list)) else key
    if len(values) != len(names):
        raise InputError(
            "WRONG_KEY_LENGTH",
            f"Values given: {len(values)}; the key has {len(names)} ({', '.join(names)}):"
            " pass a tuple in that order, or a dict; scan with prefix= reads all rows whose keys begin alike.",
        )
    return values
