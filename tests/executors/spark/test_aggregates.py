"""Every aggregate function over edge values: name, type, nullability and value as Spark has them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from viewkeeper.database import Database
from viewkeeper.testing.oracle import in_memory

pytestmark = pytest.mark.spark

COLUMNS = (
    "k BIGINT NOT NULL, g STRING, a INT, n SMALLINT, x DOUBLE, y DOUBLE, d DECIMAL(6,2), s STRING, b BOOLEAN, t DATE"
)
NAN, INFINITY = math.nan, math.inf
ROWS: list[tuple[Any, ...]] = [
    ("plain", 1, 1, 1.5, 2.0, "10.25", "a", True, 1),
    ("plain", 1, -2, 2.5, -7.25, "20.25", "b", False, 2),
    ("plain", 3, 3, -0.0, 1e-3, None, "a", None, 3),
    ("plain", None, 7, 0.0, None, "-5.00", "", True, 2),
    ("plain", -9, None, 1e8, 3.0, "0.00", "é", True, None),
    ("one", 7, 7, 1e200, 1.0, "1.00", "q", True, 1),
    ("special", 7, 1, NAN, 1.0, "1.00", "q", True, 1),
    ("special", 8, 2, 1.0, 2.0, "2.00", "r", True, 1),
    ("infinite", 8, 0, INFINITY, 1.0, "1.00", "q", True, 2),
    ("infinite", 8, 0, 2.0, 4.0, "2.00", "q", False, 2),
    ("null", None, None, None, None, None, None, None, None),
    ("constant", 5, 1, 2.0, 3.0, "3.00", "q", False, 4),
    ("constant", 5, 2, 2.0, 4.0, "4.00", "z", False, 4),
    ("constant", 6, 4, 2.0, 5.0, "4.00", "z", False, 4),
    (None, 2147483647, -32768, 1e-30, 1e-30, "9999.99", "z", False, 4),
    (None, -2147483648, 32767, -1e-30, 1e30, "-9999.99", "y", True, 4),
]

EXACT = """
count(DISTINCT a) | count(DISTINCT a, x) | count(DISTINCT x) | count(DISTINCT s) FILTER (WHERE b) | count(DISTINCT NULL)
sum(DISTINCT a) | sum(DISTINCT d) | avg(DISTINCT d) | avg(DISTINCT a) | min(DISTINCT a) | max(DISTINCT s)
try_sum(a) | try_avg(d) | try_sum(DISTINCT d) FILTER (WHERE b) | try_avg(DISTINCT a) | try_sum(NULL) | try_sum(n / 4)
sum(timestamp_seconds(a) - timestamp_micros(n)) | avg(timestamp_micros(a) - timestamp_micros(n)) FILTER (WHERE k <> 1)
avg(DISTINCT timestamp_micros(n) - timestamp_micros(a)) | min(timestamp_micros(n) - timestamp_seconds(a))
try_sum(DISTINCT timestamp_micros(a) - timestamp_micros(n)) | try_avg(timestamp_seconds(n) - timestamp_micros(0))
max(timestamp_seconds(a) - timestamp_micros(0))
count_if(b) | count_if(DISTINCT b) | count_if(a > 1) | bool_and(b) | bool_or(b) | every(b) | some(b) | any(b)
bool_and(DISTINCT b) | bool_and(NULL) | bit_and(a) | bit_or(a) | bit_xor(a) | bit_xor(DISTINCT a) | bit_or(n)
bit_and(NULL) | bit_xor(k) | regr_count(a, x) | approx_count_distinct(a) | approx_count_distinct(x, 0.05)
first(a) | first(x, TRUE) | first_value(a) | last(a) | last_value(a, TRUE) | first(a) IGNORE NULLS | any_value(a)
any_value(s, TRUE) | first(a) FILTER (WHERE b) | first(NULL) | min_by(k, a + k) | max_by(k, t) FILTER (WHERE k < 4)
min_by(x, k, 2) | max_by(s, k, 3) | max_by(a, x, 1 + 1) FILTER (WHERE b) | min_by(k, k, 100000)
min_by(x, k) | max_by(s, k) | collect_list(a) | collect_list(s) | array_agg(x) | collect_list(a) FILTER (WHERE b)
collect_list(a) RESPECT NULLS | array_agg(x) FILTER (WHERE k > 1) RESPECT NULLS | max(a) RESPECT NULLS
listagg(s) | listagg(s, ',') | string_agg(s, '-')
listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s)
listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC) | listagg(s, ',') WITHIN GROUP (ORDER BY x DESC, k)
listagg(s, ',') WITHIN GROUP (ORDER BY a DESC NULLS FIRST, k DESC) | listagg(a, ',') | listagg(d, ',') | listagg(t, ';')
listagg(b, ',') | listagg(CAST(s AS BINARY), X'2c') | listagg(s, NULL) | listagg(s, 1) | listagg(NULL)
listagg(s, ',') WITHIN GROUP (ORDER BY k) FILTER (WHERE b) | string_agg(s, ',') WITHIN GROUP (ORDER BY k DESC)
median(a) | median(x) | median(d) | median(NULL) | percentile(a, 0.5) | percentile(x, 0.3) | percentile(d, 0.4)
percentile(a, array(0.0, 0.5, 1.0)) | percentile(a, '0.5') | percentile_cont(0.5) WITHIN GROUP (ORDER BY a)
percentile_cont(0.3) WITHIN GROUP (ORDER BY a DESC) | percentile_cont(array(0.3, 0.6)) WITHIN GROUP (ORDER BY x DESC)
percentile_disc(0.5) WITHIN GROUP (ORDER BY a) | percentile_disc(0.3) WITHIN GROUP (ORDER BY a DESC)
percentile_disc(0.3) WITHIN GROUP (ORDER BY d) | percentile_disc(array(0.3, 0.7)) WITHIN GROUP (ORDER BY x)
max(1 / a) FILTER (WHERE a > 0) | collect_list(CAST(s AS INT)) FILTER (WHERE s IS NULL)
max(shiftleft(1, n) / a) FILTER (WHERE a <> 0) | count(1 / a) FILTER (WHERE FALSE) | percentile(a, 0.5, abs(k - 4))
percentile(x, array(0.0, 0.3, 1.0), k % 3) | percentile(d, 0.4, 9 - k) FILTER (WHERE k < 9)
percentile(DISTINCT a, 0.5, k % 2) | percentile(a, 0.5, NULL) | percentile(a, 0.5, 0) | percentile('7', 0.5, 2)
percentile(a, 0.7, CASE WHEN a IS NULL THEN -1 ELSE 3 END) | percentile(y, 1, a * 0)
percentile(DISTINCT a, 0.5) | median(DISTINCT x) | percentile(DISTINCT d, array(0.2, 0.9)) FILTER (WHERE b)
percentile_approx(a, 0.5) | percentile_approx(d, 0.5, 100) | percentile_approx(t, 0.5) | approx_percentile(n, 0.25)
percentile_approx(a, array(0.0, 0.5, 1.0)) | mode(a, TRUE) | mode(s, TRUE) | mode() WITHIN GROUP (ORDER BY a)
mode() WITHIN GROUP (ORDER BY a DESC) | mode(NULL)
"""
SETS = "collect_set(a) | collect_set(x) | collect_set(d) | collect_list(DISTINCT s)"
CLOSE = """
sum(DISTINCT x) | avg(DISTINCT x) | stddev(a) | stddev(x) | stddev(d) | std(x) | stddev_samp(a) | stddev_pop(x)
variance(x) | var_pop(a) | var_samp(a) | var_pop(DISTINCT a) | stddev(DISTINCT n) | stddev(NULL) | skewness(x)
skewness(a) | kurtosis(a) | kurtosis(x) | covar_pop(a, x) | covar_samp(n, y) | corr(a, x) | corr(x, a)
corr(DISTINCT a, n) | corr(NULL, a)
regr_avgx(a, x) | regr_avgy(a, x) | regr_avgx(d, n) | regr_avgy(d, n) | regr_sxx(a, x) | regr_syy(a, x)
regr_sxy(a, x) | regr_sxx(x, a) | regr_syy(x, a) | regr_slope(a, x) | regr_slope(x, a) | regr_intercept(x, a)
regr_r2(x, a) | regr_r2(a, x) | var_pop(x) FILTER (WHERE b)
"""


def calls(text: str) -> list[str]:
    return [call.strip() for line in text.strip().splitlines() for call in line.split("|")]


@pytest.fixture(scope="module")
def mine() -> Iterator[Database]:
    with in_memory() as database:
        database.sql(f"CREATE TABLE e ({COLUMNS}, PRIMARY KEY (k))")
        names = [column.split()[0] for column in COLUMNS.split(", ")]
        for k, (g, a, n, x, y, d, s, b, t) in enumerate(ROWS):
            row = (k, g, a, n, x, y, None if d is None else Decimal(d), s, b, None if t is None else date(2024, 1, t))
            database.put("e", dict(zip(names, row, strict=True)))
        yield database


@pytest.fixture(scope="module")
def theirs(spark: SparkSession, mine: Database) -> SparkSession:
    session = spark.newSession()
    for name, value in (("leafNodeDefaultParallelism", "1"), ("shuffle.partitions", "1"), ("session.timeZone", "UTC")):
        session.conf.set(f"spark.sql.{name}", value)
    session.conf.set("spark.sql.ansi.enabled", "true")
    table: pa.Table = mine.table("e").to_arrow()
    # Rows come in the order of their keys, by which we decide what Spark leaves open.
    session.createDataFrame(table, COLUMNS).coalesce(1).createOrReplaceTempView("e")
    return session


def plain(value: Any) -> Any:
    """Return a value in a form that can be compared."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return [plain(item) for item in value] if isinstance(value, list) else value


def compared(mine: Database, theirs: SparkSession, some: list[str], clause: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield call, our value and Spark's for each group, after comparing names and types."""
    sql = (
        f"SELECT g, {', '.join(some)} FROM e {clause}"
        if "GROUP" in clause
        else f"SELECT {', '.join(some)} FROM e {clause}"
    )
    ours, frame = mine.sql(sql), theirs.sql(sql)
    described = [(column.name, str(column.type), column.nullable) for column in ours.schema.columns]
    assert described == [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema.fields]
    first = len(described) - len(some)

    def by_group(table: pa.Table) -> dict[Any, list[Any]]:
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return {row[:first]: list(row[first:]) for row in rows}

    left, right = by_group(ours.to_arrow()), by_group(frame.toArrow())
    assert left.keys() == right.keys()
    for group, values in left.items():
        for call, value, other in zip(some, values, right[group], strict=True):
            yield f"{call} of {group}", plain(value), plain(other)


CLAUSES = ["GROUP BY g", "WHERE k < 5", "WHERE k < 0"]


@pytest.mark.parametrize("clause", CLAUSES)
def test_exact_answers(mine: Database, theirs: SparkSession, clause: str) -> None:
    # One call a query: Spark fails on DISTINCT and WITHIN GROUP side by side.
    found = (value for call in calls(EXACT) for value in compared(mine, theirs, [call], clause))
    assert [(call, value, other) for call, value, other in found if value != other] == []


@pytest.mark.parametrize("clause", CLAUSES)
def test_sets(mine: Database, theirs: SparkSession, clause: str) -> None:
    for call, value, other in compared(mine, theirs, calls(SETS), clause):
        assert sorted(map(str, value)) == sorted(map(str, other)), call


@pytest.mark.parametrize("clause", CLAUSES)
def test_statistics_within_their_rounding(mine: Database, theirs: SparkSession, clause: str) -> None:
    for call, value, other in compared(mine, theirs, calls(CLOSE), clause):
        numbers = isinstance(value, float) and isinstance(other, float)
        assert value == other or (numbers and math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12)), (
            call, value, other
        )  # fmt: skip
