"""Python values against a table's columns."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.store.examples import make_table
from viewkeeper.errors import InputError
from viewkeeper.store.values import (
    changes_from_dict,
    expectation_from_dict,
    key_of_table,
    key_values,
    row_from_dict,
)
from viewkeeper.zset.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
    array,
    decimal,
    map_of,
    struct,
)

PEOPLE = make_table(
    {"Id": BIGINT, "Name": STRING, "score": INT, "seen": TIMESTAMP},
    ("Id",),
    not_null=("Name",),
    defaults={"Name": "nobody", "score": None},
)


def one(sql_type: SqlType, value: object, time_zone: str = "UTC") -> Any:
    return row_from_dict(make_table({"k": INT, "c": sql_type}, ("k",)), {"k": 1, "c": value}, time_zone)[1]


def test_names_defaults_and_nulls() -> None:
    assert row_from_dict(PEOPLE, {"Id": 1}) == (1, "nobody", None, None)
    assert row_from_dict(PEOPLE, {"ID": 1, "nAmE": "x", "SCORE": 2}) == (1, "x", 2, None)
    assert changes_from_dict(PEOPLE, {"NAME": "y", "score": None}) == {1: "y", 2: None}
    assert expectation_from_dict(PEOPLE, {"name": None}) == {1: None}


@pytest.mark.parametrize(
    ("values", "code", "text"),
    [
        ({}, "NULL_IN_NOT_NULL_COLUMN", "'Id' of table 'table_1'"),
        ({"Id": None}, "NULL_IN_NOT_NULL_COLUMN", "'Id'"),
        ({"Id": 1, "Name": None}, "NULL_IN_NOT_NULL_COLUMN", "'Name'"),
        ({"Id": 1, "scor": 2}, "UNKNOWN_COLUMN", "did you mean 'score'"),
        ({"Id": 1, "zzz": 2}, "UNKNOWN_COLUMN", "it has 'Id', 'Name'"),
        ({"zzz": 2}, "UNKNOWN_COLUMN", "'zzz'"),
        ({"Id": 1, "id": 2}, "DUPLICATE_COLUMN", "twice"),
        ({"Id": "one"}, "WRONG_TYPE", "Column 'Id' of table 'table_1': The value 'one' (str) does not fit BIGINT"),
        ({"Id": 1 << 63}, "VALUE_OUT_OF_RANGE", "BIGINT"),
        ({1: 1}, "UNKNOWN_COLUMN", "1"),
    ],
)
def test_bad_rows_name_the_column(values: dict[Any, object], code: str, text: str) -> None:
    with pytest.raises(InputError) as raised:
        row_from_dict(PEOPLE, values)
    assert raised.value.code == code
    assert text in raised.value.message


def test_details_of_a_wrong_type() -> None:
    with pytest.raises(InputError) as raised:
        row_from_dict(PEOPLE, {"Id": 1, "score": 2.5})
    assert raised.value.details == {"column": "score", "type": "int", "value": "2.5"}


@pytest.mark.parametrize(
    ("sql_type", "value", "stored"),
    [
        (BOOLEAN, True, True),
        (BOOLEAN, np.bool_(False), False),
        (TINYINT, -128, -128),
        (SMALLINT, np.int64(5), 5),
        (DOUBLE, 3, 3.0),
        (DOUBLE, np.float32(0.5), 0.5),
        (FLOAT, 0.1, float(np.float32(0.1))),
        (decimal(5, 2), 7, Decimal("7.00")),
        (decimal(5, 2), Decimal("1.5000"), Decimal("1.50")),
        (decimal(38, 0), 10**38 - 1, Decimal(10**38 - 1)),
        (STRING, np.str_("ä"), "ä"),
        (BINARY, bytearray(b"\x00a"), b"\x00a"),
        (DATE, date(1, 1, 1), date(1, 1, 1)),
        (TIMESTAMP, datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, tzinfo=UTC)),
        (TIMESTAMP, np.datetime64("2026-01-01T00:00:00.000000001"), datetime(2026, 1, 1, tzinfo=UTC)),
        (TIMESTAMP_NTZ, datetime(2026, 1, 1), datetime(2026, 1, 1)),
        (array(INT), [1, None], [1, None]),
        (array(INT), np.array([1, 2]), [1, 2]),
        (map_of(STRING, decimal(3, 1)), {"a": 1}, {"a": Decimal("1.0")}),
        (struct(a=INT, b=STRING), {"a": 1}, {"a": 1, "b": None}),
    ],
)
def test_values_are_brought_to_one_form(sql_type: SqlType, value: object, stored: object) -> None:
    found = one(sql_type, value)
    assert found == stored
    assert type(found) is type(stored)
    assert repr(found) == repr(stored)


@pytest.mark.parametrize(
    ("sql_type", "value", "code"),
    [
        (BOOLEAN, 1, "WRONG_TYPE"),
        (INT, True, "WRONG_TYPE"),
        (INT, 1.0, "WRONG_TYPE"),
        (TINYINT, 128, "VALUE_OUT_OF_RANGE"),
        (DOUBLE, "1", "WRONG_TYPE"),
        (DOUBLE, True, "WRONG_TYPE"),
        (FLOAT, 1e39, "VALUE_OUT_OF_RANGE"),
        (decimal(5, 2), 0.5, "WRONG_TYPE"),
        (decimal(5, 2), Decimal("1000"), "VALUE_OUT_OF_RANGE"),
        (decimal(5, 2), Decimal("0.001"), "VALUE_OUT_OF_RANGE"),
        (STRING, b"x", "WRONG_TYPE"),
        (STRING, "\ud800", "WRONG_TYPE"),
        (BINARY, "x", "WRONG_TYPE"),
        (DATE, datetime(2026, 1, 1), "WRONG_TYPE"),
        (TIMESTAMP, date(2026, 1, 1), "WRONG_TYPE"),
        (TIMESTAMP_NTZ, datetime(2026, 1, 1, tzinfo=UTC), "WRONG_TYPE"),
        (array(INT), 5, "WRONG_TYPE"),
        (array(INT), [1, "x"], "WRONG_TYPE"),
        (struct(a=INT), {"b": 1}, "WRONG_TYPE"),
    ],
)
def test_values_that_do_not_fit(sql_type: SqlType, value: object, code: str) -> None:
    with pytest.raises(InputError, match="Column 'c'") as raised:
        one(sql_type, value)
    assert raised.value.code == code


def test_naive_datetimes_are_read_in_the_sessions_zone() -> None:
    berlin = "Europe/Berlin"
    assert one(TIMESTAMP, datetime(2026, 7, 1, 12), berlin) == datetime(2026, 7, 1, 10, tzinfo=UTC)
    # The hour that does not exist moves forward, of the hour that comes twice it is the first: as in Spark.
    assert one(TIMESTAMP, datetime(2026, 3, 29, 2, 30), berlin) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert one(TIMESTAMP, datetime(2026, 10, 25, 2, 30), berlin) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert one(TIMESTAMP_NTZ, datetime(2026, 7, 1, 12), berlin) == datetime(2026, 7, 1, 12)
    nested = struct(at=array(TIMESTAMP))
    expected = {"at": [datetime(2026, 7, 1, 10, tzinfo=UTC), None]}
    assert one(nested, {"at": [datetime(2026, 7, 1, 12), None]}, berlin) == expected
    with pytest.raises(InputError, match="INVALID_TIME_ZONE"):
        one(TIMESTAMP, datetime(2026, 7, 1, 12), "Mars/Olympus")


@pytest.mark.parametrize("key", [("EWR", 7), ["EWR", 7], {"b": 7, "A": "EWR"}])
def test_forms_of_a_key_of_two_columns(key: object) -> None:
    assert key_values(("a", "b"), (STRING, INT), key) == ("EWR", 7)


@pytest.mark.parametrize("key", [7, (7,), [7], {"ID": 7}, np.int32(7)])
def test_forms_of_a_key_of_one_column(key: object) -> None:
    assert key_of_table(PEOPLE, key) == (7,)


def test_a_list_can_be_the_key_itself() -> None:
    assert key_values(("a",), (array(INT),), [1, 2]) == ([1, 2],)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("EWR", "WRONG_KEY_LENGTH"),
        (("EWR",), "WRONG_KEY_LENGTH"),
        (("EWR", 7, 8), "WRONG_KEY_LENGTH"),
        ({"a": "EWR"}, "MISSING_KEY_COLUMN"),
        ({"a": "EWR", "c": 7}, "UNKNOWN_COLUMN"),
        (("EWR", "7"), "WRONG_TYPE"),
        (("EWR", 1 << 31), "VALUE_OUT_OF_RANGE"),
    ],
)
def test_keys_that_do_not_fit(key: object, code: str) -> None:
    with pytest.raises(InputError) as raised:
        key_values(("a", "b"), (STRING, INT), key)
    assert raised.value.code == code
