"""RANGE frames over months and days: the calendar's, in a time zone whose clocks change, as Spark has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from tests.interpreted import interpreting
from viewkeeper.database import Database

pytestmark = pytest.mark.spark

ZONE = "America/New_York"
COLUMNS = "k BIGINT NOT NULL, g INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ"
# Ends of months, of leap years too; hours around changes of the clocks, and a month and a day away from them.
DAYS = [date(2024, 3, day) for day in (1, 28, 29, 30, 31)] + [
    date(2024, 2, 29), date(2024, 2, 28), date(2024, 1, 31), date(2024, 1, 29), date(2023, 2, 28), None,
]  # fmt: skip
CHANGES = (datetime(2024, 3, 10, 5, tzinfo=UTC), datetime(2024, 11, 3, 4, tzinfo=UTC))
AWAY = (timedelta(0), timedelta(31), timedelta(-31), timedelta(30), timedelta(1), timedelta(-1))
HOURS = [change + away + timedelta(minutes=25 * i) for change, away in product(CHANGES, AWAY) for i in range(7)]
FRAMES = (
    "INTERVAL '1' MONTH PRECEDING AND CURRENT ROW",
    "INTERVAL '1' MONTH PRECEDING AND INTERVAL '1' MONTH FOLLOWING",
    "INTERVAL '2' MONTH PRECEDING AND INTERVAL '1' MONTH PRECEDING",
    "INTERVAL '-1' MONTH FOLLOWING AND UNBOUNDED FOLLOWING",
    "UNBOUNDED PRECEDING AND INTERVAL '0' MONTH FOLLOWING",
    "INTERVAL '1' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING",
)
MORE = "INTERVAL '26' HOUR PRECEDING AND INTERVAL '30' HOUR FOLLOWING"


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "store", executor="local", time_zone=ZONE, spark=spark) as opened:
        opened.sql(f"CREATE TABLE e ({COLUMNS}, PRIMARY KEY (k))")
        rows = [{"g": 0, "d": day} for day in DAYS]
        rows += [{"g": 1, "t": moment, "n": moment.replace(tzinfo=None)} for moment in HOURS]
        opened.put_batch("e", [{"k": k, **row} for k, row in enumerate(rows)])
        yield opened


def query_over(column: str) -> str:
    """Return a query with each frame over a column, up and down."""
    frames = FRAMES if column == "d" else (*FRAMES, MORE)
    calls = [
        f"COUNT(*) OVER (PARTITION BY g ORDER BY {column}{direction} RANGE BETWEEN {frame})"
        for direction, frame in product(("", " DESC NULLS LAST"), frames)
    ]
    return f"SELECT k, {', '.join(f'{call} AS c{i}' for i, call in enumerate(calls))} FROM e"


def test_frames_are_those_of_spark(db: Database, spark: SparkSession) -> None:
    session = interpreting(spark)
    session.conf.set("spark.sql.session.timeZone", ZONE)
    for column in "dtn":
        db.sql(f"CREATE MATERIALIZED VIEW over_{column} AS {query_over(column)}")
    # Each partition is computed anew.
    db.sql("DELETE FROM e WHERE k % 11 = 3")
    db.sql("UPDATE e SET d = DATE '2024-03-31' WHERE d = DATE '2024-03-30'")
    db.refresh()
    session.createDataFrame(db.table("e").to_arrow(), COLUMNS).createOrReplaceTempView("e")
    for column in "dtn":
        expected = sorted(map(tuple, session.sql(query_over(column)).collect()))
        assert sorted(tuple(row.values()) for row in db.scan(f"over_{column}")) == expected, column
    report = db.verify("over_t")
    assert report.ok, str(report)
