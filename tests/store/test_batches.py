"""Bulk rows of every kind against a table's columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.store.examples import make_table
from viewkeeper.errors import InputError
from viewkeeper.store import batches
from viewkeeper.store.batches import batch_from
from viewkeeper.zset.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
    array,
    decimal,
    struct,
)

COLUMNS = {"k": BIGINT, "city": STRING, "amount": decimal(10, 2), "at": TIMESTAMP}
SALES = make_table(COLUMNS, ("k",), defaults={"city": "?"})
MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS = [(1, "a", Decimal("1.50"), MOMENT), (2, None, None, None)]
DICTS = [
    {"K": 1, "city": "a", "amount": Decimal("1.5"), "at": MOMENT},
    {"K": 2, "city": None, "amount": None, "at": None},
]


def rows_of(data: object, table: Any = SALES, time_zone: str = "UTC") -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for batch in batch_from(table, data, time_zone):
        assert batch.schema == table.schema.to_arrow()
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


@pytest.mark.parametrize(
    "data",
    [
        DICTS,
        iter(DICTS),
        pa.Table.from_pylist(DICTS),
        pa.Table.from_pylist(DICTS).to_reader(),
        pa.RecordBatch.from_pylist(DICTS),
        pa.Table.from_pylist(DICTS).to_batches(1),
        iter(pa.Table.from_pylist(DICTS).to_batches(1)),
        pd.DataFrame(DICTS),
        pl.DataFrame(DICTS, schema_overrides={"amount": pl.Decimal(20, 4)}),
    ],
    ids=["dicts", "iterator", "table", "reader", "batch", "batches", "batch iterator", "pandas", "polars"],
)
def test_every_form_of_rows(data: object) -> None:
    assert rows_of(data) == ROWS


def test_no_rows() -> None:
    assert rows_of([]) == []
    assert rows_of(pa.table({"k": pa.array([], pa.int64())})) == []


def test_absent_columns_take_their_default() -> None:
    assert rows_of([{"k": 1}]) == rows_of(pa.table({"k": [1]})) == [(1, "?", None, None)]


def test_pandas_nan_is_null_and_its_index_is_left_out() -> None:
    frame = pd.DataFrame({"k": [1.0, 2.0], "city": [np.nan, "b"]}, index=["x", "y"])
    assert rows_of(frame) == [(1, None, None, None), (2, "b", None, None)]


def test_large_data_comes_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS_PER_BATCH", 10)
    for data in (pa.table({"k": range(25)}), [{"k": k} for k in range(25)], pl.DataFrame({"k": range(25)})):
        found = list(batch_from(SALES, data))
        assert [batch.num_rows for batch in found] == [10, 10, 5]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (pa.table({"k": [1], "ctiy": ["x"]}), "UNKNOWN_COLUMN"),
        (pa.table({"k": [1], "K": [2]}), "DUPLICATE_COLUMN"),
        (pa.table({"city": ["x"]}), "NULL_IN_NOT_NULL_COLUMN"),
        (pa.table({"k": [1, None]}), "NULL_IN_NOT_NULL_COLUMN"),
        (pa.table({"k": ["1"]}), "WRONG_TYPE"),
        (pa.table({"k": [True]}), "WRONG_TYPE"),
        (pa.table({"k": pa.array([1 << 63], pa.uint64())}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1.5]}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1], "amount": [0.5]}), "WRONG_TYPE"),
        (pa.table({"k": [1], "amount": [Decimal("0.001")]}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1], "amount": [10**9]}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1], "at": pa.array([1], pa.timestamp("ns", "UTC"))}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1], "at": pa.array([1 << 62], pa.timestamp("us", "UTC"))}), "VALUE_OUT_OF_RANGE"),
        (pa.table({"k": [1], "at": [date(2026, 1, 1)]}), "WRONG_TYPE"),
        ([{"k": 1, "city": 5}], "WRONG_TYPE"),
        ([(1, "a")], "WRONG_TYPE"),
        ({"k": 1}, "WRONG_TYPE"),
        (5, "WRONG_TYPE"),
        (pd.DataFrame({"k": [1, "x"]}), "WRONG_TYPE"),
    ],
)
def test_bad_data(data: object, code: str) -> None:
    with pytest.raises(InputError) as raised:
        rows_of(data)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("sql_type", "values", "expected"),
    [
        (INT, pa.array([1, 2], pa.int64()), [1, 2]),
        (INT, pa.array([1.0, None]), [1, None]),
        (TINYINT, pa.array([127], pa.uint8()), [127]),
        (DOUBLE, pa.array([(1 << 53) + 1]), [float(1 << 53)]),
        (DOUBLE, pa.array([float("inf"), float("nan")]), [float("inf"), float("nan")]),
        (FLOAT, pa.array([0.1, float("inf")]), [float(np.float32(0.1)), float("inf")]),
        (decimal(5, 2), pa.array([7, -7], pa.int8()), [Decimal("7.00"), Decimal("-7.00")]),
        (decimal(5, 2), pa.array([Decimal("1.500")]), [Decimal("1.50")]),
        (STRING, pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (STRING, pa.array(["a"], pa.large_string()), ["a"]),
        (STRING, pa.array(["a"], pa.string_view()), ["a"]),
        (STRING, pa.nulls(2), [None, None]),
        (BINARY, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (BOOLEAN, pa.array([True, None]), [True, None]),
        (DATE, pa.array([date(2026, 1, 1)], pa.date64()), [date(2026, 1, 1)]),
        (TIMESTAMP_NTZ, pa.array([datetime(2026, 1, 1)], pa.timestamp("ns")), [datetime(2026, 1, 1)]),
        (array(INT), pa.array([[1, None], None]), [[1, None], None]),
        (struct(a=INT, b=STRING), pa.array([{"a": 1, "b": "x"}]), [{"a": 1, "b": "x"}]),
    ],
)
def test_arrow_types_that_fit(sql_type: SqlType, values: pa.Array, expected: list[object]) -> None:
    table = make_table({"k": INT, "c": sql_type}, ("k",))
    found = rows_of(pa.table({"k": pa.array(range(len(values)), pa.int32()), "c": values}), table)
    assert repr([row[1] for row in found]) == repr(expected)


def test_moments_of_another_zone_and_unit() -> None:
    data = pa.table({"k": [1], "at": pa.array([MOMENT], pa.timestamp("s", "Asia/Tokyo"))})
    assert rows_of(data)[0][3] == MOMENT


@pytest.mark.parametrize(
    "bad",
    [
        pa.table({"k": [*range(5), None]}),
        pa.table({"k": [*range(5), 1.5]}),
        pa.table({"k": range(6), "amount": [*([Decimal(1)] * 5), Decimal("0.001")]}),
        pa.table({"k": range(6), "at": pa.array([*([0] * 5), 1 << 62], pa.timestamp("us", "UTC"))}),
    ],
)
def test_the_wrong_row_of_arrow_data_is_told(monkeypatch: pytest.MonkeyPatch, bad: pa.Table) -> None:
    monkeypatch.setattr(batches, "ROWS_PER_BATCH", 2)
    with pytest.raises(InputError) as caught:
        rows_of(bad)
    assert caught.value.details["row"] == 5


def test_too_large_for_float() -> None:
    table = make_table({"k": INT, "c": FLOAT}, ("k",))
    with pytest.raises(InputError, match="VALUE_OUT_OF_RANGE"):
        rows_of(pa.table({"k": [1], "c": [1e39]}), table)


def test_naive_moments_are_read_in_the_sessions_zone() -> None:
    values = [datetime(2026, 7, 1, 12), datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)]
    expected = [datetime(2026, 7, 1, 10), datetime(2026, 10, 25, 0, 30), datetime(2026, 3, 29, 1, 30)]
    for count in (1, 2, 3):
        data = pa.table({"k": range(count), "at": values[:count]})
        found = [row[3] for row in rows_of(data, time_zone="Europe/Berlin")]
        assert found == [moment.replace(tzinfo=UTC) for moment in expected[:count]]
