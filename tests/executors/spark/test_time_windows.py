"""Views over windows of time, by both executors, against Spark's own answer: names, types, nullability, rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.executors.spark.answers import assert_answers_of_spark, assert_kept_right, rows_of
from tests.interpreted import interpreting
from viewkeeper.database import Database, connect
from viewkeeper.errors import SqlError
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

pytestmark = pytest.mark.spark

TABLE = "k BIGINT, c STRING, ts TIMESTAMP, tn TIMESTAMP_NTZ, d DATE, window INT, x STRING, tags ARRAY<STRING>"
VIEWS = (
    "SELECT window(ts, '1 hour').start, window.end, c, SUM(k), MAX(window.start) FROM u "
    "GROUP BY c, window(ts, '1 hour')",
    "SELECT window, COUNT(*) AS n FROM u GROUP BY window(tn, '1 day 2 hours', '9 hours', '-30 minutes')",
    "SELECT window(d, '1 week', '1 day', '-18 hours') AS w, COUNT(DISTINCT c) AS n FROM u GROUP BY w",
    "SELECT k, c, window, window(ts, '10 minutes', '4 minutes') AS v, upper(window.start) FROM u",
    "SELECT *, window(tn, '10 minutes') AS w FROM t",
    "SELECT w.start AS s, n, m FROM (SELECT window(ts, '2 hours') AS w, COUNT(*) AS n, MAX(window) AS m FROM t "
    "GROUP BY ALL) WHERE n > 1",
    "SELECT COUNT(*) AS n, MIN(ts) AS first FROM u GROUP BY window(ts, 3600000000) HAVING window.start > '1970-01-01'",
    "SELECT window, c, COUNT(*) AS n, grouping(window) AS g FROM u "
    "GROUP BY GROUPING SETS ((window(ts, '1 hour', '30 minutes'), c), (c), ())",
    "SELECT window, COUNT(*) AS n FROM u GROUP BY window(ts, '1 hour') ORDER BY n DESC, window.start LIMIT 2",
    "SELECT window, c, COUNT(*) AS n FROM u GROUP BY window(ts, '1 day'), c "
    "QUALIFY RANK() OVER (PARTITION BY window ORDER BY n DESC) = 1",
    "SELECT k, SUM(k) OVER z AS s FROM u WINDOW z AS (PARTITION BY window(ts, '1 hour'), c ORDER BY k)",
    "SELECT u.c, window(t.ts, '1 hour').start AS s, COUNT(*) AS n FROM t JOIN u ON t.k = u.k "
    "GROUP BY window(t.ts, '60 minutes'), u.c",
    "SELECT window(to_timestamp(x), '1 hour') AS w, COUNT(*) AS n FROM u GROUP BY w",
    "SELECT timestamp_seconds(k * 1000) AS s, COUNT(*) AS n FROM u GROUP BY window(s, '1 hour', '20 minutes'), s",
    "SELECT explode(tags) AS tag, window(ts, '1 hour', '30 minutes') AS w FROM u",
    "SELECT window_time(w), window(w, '1 day') AS day FROM (SELECT window(tn, '1 hour', '20 minutes') AS w FROM u)",
    "SELECT window_time(window), COUNT(*) AS n FROM u GROUP BY window_time(window(ts, '5 minutes'))",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.c = t.c GROUP BY window(ts, '1 day') HAVING COUNT(*) > 1)",
    "SELECT window.k, window.start AS s, array(window.start) AS a, window.end - window.start AS length "
    "FROM u AS window GROUP BY window(ts, '90 minutes'), window.k",
    "SELECT session_window, c, COUNT(*) AS n, SUM(k) AS s FROM u GROUP BY c, session_window(ts, '90 minutes')",
    "SELECT session_window(tn, '89 minutes 59.999999 seconds').end, upper(c) AS p, MIN(k) AS m, COUNT(DISTINCT k) AS n "
    "FROM u GROUP BY 2, session_window(tn, '89 minutes 59.999999 seconds') HAVING n > 1",
    "SELECT session_window(ts, '30 minutes') AS w, k FROM u",
    "SELECT session_window.start, c, COUNT(*) AS n FROM u GROUP BY c, session_window(ts, '-1 hour')",
    "SELECT session_window, COUNT(*) AS n, MAX(k) AS m FROM u GROUP BY session_window(ts, '40 minutes')",
)
# Of windows that overlap, and of sessions.
VERIFIED = (1, 19)


def row(key: int, moment: datetime | None, **others: object) -> dict[str, object]:
    plain = None if moment is None else moment.replace(tzinfo=None)
    columns = {
        "c": "xyz"[key % 3],
        "ts": moment,
        "tn": plain,
        "d": None if plain is None else plain.date(),
        "window": key % 2,
        "x": None if plain is None else str(plain),
        "tags": ["p", None][: key % 3],
    }
    return {"k": key, **columns, **others}


ZONE = "America/New_York"
HOUR = timedelta(hours=1)
# Around 1970, at and beside the ends of windows, around the changes of New York's time, at the ends of the calendar.
MOMENTS = (
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 12, 30, 0, 1, tzinfo=UTC),
    datetime(1883, 11, 18, 17, 0, 1, tzinfo=UTC),
    datetime(1, 1, 9, tzinfo=UTC),
    datetime(9999, 12, 1, 23, 59, 59, tzinfo=UTC),
    *(datetime(2024, 3, 10, 5, 59, 59, 999_999, tzinfo=UTC) + n * HOUR / 2 for n in range(5)),
    *(datetime(2024, 11, 3, 4, 30, tzinfo=UTC) + n * HOUR / 2 for n in range(5)),
    None,
)
DURATIONS = (
    *(
        f"'{text}'"
        for text in (
            "5 minutes", "300 seconds", "1 day 2 hours", "interval 1 hour", " INTERVAL  1  HOUR ", "1.5 seconds",
            ".5 second", "5. seconds", "1.5 minutes", "-5 minutes", "- 5 minutes", "+5 minute", "0 seconds", "1 month",
            "1 year", "0 months 1 day", "1 month -30 days", "2 weeks 1 day", "1 day -2 hours", "1 hour -1 hour",
            "100 milliseconds", "1 microsecond", "10 nanoseconds", "5", "abc", "", "interval", "5minutes", "5 min",
            "1 quarter", "5\tminutes", "1:00", "1e3 seconds", "1 hour,", "1 hour ago", "1.123456789 seconds",
            "1.1234567891 seconds", "99999999999 days", "intervalx 1 day", "interval1 day", "1 hour interval",
        )
    ),
    "300000000", "300000000L", "-5", "0", "3e8", "300.0", "NULL", "k", "true", "INTERVAL 5 MINUTES",
    "concat('5', ' minutes')", "'5 minutes', '6 minutes'", "'5 minutes', '0 minutes'", "'5 minutes', '-1 minutes'",
    "'5 minutes', '5 minutes', '5 minutes'", "'5 minutes', '5 minutes', '-5 minutes'", "'5 minutes', '1 month'",
    "'5 minutes', '5 minutes', '-4 minutes -59 seconds'", "'5 minutes', 300000000, 60000000",
    "'10 minutes', '4 minutes', '-1 minute'", "'5 minutes', '2 minutes', '3 minutes'", "'5 minutes', '5 minutes', NULL",
)  # fmt: skip


@pytest.fixture
def zoned(spark: SparkSession) -> SparkSession:
    """A session in a zone with daylight saving time, which windows do not heed."""
    session = interpreting(spark)
    session.conf.set("spark.sql.session.timeZone", ZONE)
    return session


def test_views_follow_their_tables(spark: SparkSession, zoned: SparkSession, tmp_path: Path) -> None:
    """Filled in process, then changed by one fused job; verified with their state."""
    path = tmp_path / "windows.vk"
    settings = {"durability": "none", "spark": spark, "time_zone": ZONE}
    tables = {name: (columns(name), "k") for name in ("t", "u")}
    with connect(path, **settings) as database:
        for name in tables:
            database.sql(f"CREATE TABLE {name} ({columns(name)}, PRIMARY KEY (k))")
            database.put_batch(name, [given(name, row(n, moment)) for n, moment in enumerate(MOMENTS)])
        for number, sql in enumerate(VIEWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    with connect(path, executor="spark", **settings) as database:
        changes = [row(1, MOMENTS[6]), row(4, None), row(20, MOMENTS[7]), row(6, MOMENTS[6], c="x")]
        for name in tables:
            database.put_batch(name, [given(name, change) for change in changes])
            database.delete(name, {"k": 2})
        database.refresh()
        assert_answers_of_spark(database, zoned, tables, VIEWS)
        assert_kept_right(database, VIEWS, VERIFIED)


def test_durations_are_read_as_by_spark(zoned: SparkSession) -> None:
    """The windows of one moment, or a refusal, for each text and number."""
    moment = "timestamp_micros(1700000000123456)"
    with Database(memory_store(), Settings(executor="local", time_zone=ZONE)) as database:
        database.sql("CREATE TABLE one (k INT PRIMARY KEY); INSERT INTO one VALUES (1)")
        zoned.sql("SELECT 1 AS k").createOrReplaceTempView("one")
        for arguments in DURATIONS:
            sql = f"SELECT window({moment}, {arguments}) AS w FROM one"
            try:
                ours = rows_of(database.sql(sql).to_arrow())
            except SqlError:
                ours = []
            try:
                theirs = rows_of(zoned.sql(sql).toArrow())
            except PySparkException:
                theirs = []
            assert ours == theirs, arguments


def columns(table: str) -> str:
    """Return the columns of a table; that of the windows has one of theirs hidden by its own name in ``t`` alone."""
    return TABLE if table == "t" else TABLE.replace("window INT, ", "")


def given(table: str, values: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if table == "t" or name != "window"}
