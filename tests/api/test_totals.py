"""Totals that do not fit their type: an error of SUM and AVG, NULL of TRY_SUM and TRY_AVG; and totals of intervals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from viewkeeper import errors
from viewkeeper.database import Database
from viewkeeper.testing.oracle import in_memory

LARGEST, WIDEST = (1 << 63) - 1, Decimal(10**38 - 1)


@pytest.fixture
def db() -> Iterator[Database]:
    with in_memory() as database:
        database.sql("CREATE TABLE t (k BIGINT NOT NULL, g STRING, a BIGINT, d DECIMAL(38,0), PRIMARY KEY (k))")
        database.sql("CREATE TABLE u (g STRING NOT NULL, name STRING, PRIMARY KEY (g))")
        database.sql(f"INSERT INTO t VALUES (1, 'x', {LARGEST}, {WIDEST}), (2, 'x', 1, 1), (3, 'y', NULL, NULL)")
        database.sql("INSERT INTO u VALUES ('x', 'first'), ('y', 'second')")
        yield database


def answer(db: Database, view: str = "v") -> list[tuple[object, ...]]:
    db.refresh()
    return [tuple(row.values()) for row in db.sql(f"SELECT * FROM {view}").rows()]


def test_what_overflows_is_null_until_it_fits_again(db: Database) -> None:
    calls = "try_sum(a) AS s, try_sum(d) AS w, try_avg(d) AS m, try_avg(a) AS f"
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT g, {calls} FROM t GROUP BY g")
    assert answer(db) == [("x", None, None, None, 2.0**62), ("y", None, None, None, None)]
    # Spark adds 1 first and is left with NULL.
    db.sql("INSERT INTO t VALUES (4, 'x', -1, -1)")
    assert answer(db)[0] == ("x", LARGEST, WIDEST, None, 2.0**63 / 3)
    db.sql("DELETE FROM t WHERE k = 1")
    assert answer(db)[0] == ("x", 0, Decimal(0), Decimal("0.0000"), 0.0)
    db.sql("DELETE FROM t WHERE g = 'x'")
    assert answer(db) == [("y", None, None, None, None)]


def test_so_it_is_over_joins_in_grouping_sets_and_of_distinct_values(db: Database) -> None:
    db.sql("""CREATE MATERIALIZED VIEW v AS SELECT name, try_sum(a) AS s, try_sum(DISTINCT a) FILTER (WHERE k < 9) AS o
        FROM t JOIN u ON t.g = u.g GROUP BY ROLLUP(name)""")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT try_sum(a) AS s FROM t WHERE k > 9")
    assert (answer(db), answer(db, "w")) == (
        [(None, None, None), ("first", None, None), ("second", None, None)],
        [(None,)],
    )
    db.sql("UPDATE t SET a = 1 WHERE k = 1")
    assert answer(db) == [(None, 2, 1), ("first", 2, 1), ("second", None, None)]


def test_so_it_is_over_windows(db: Database) -> None:
    db.sql("""CREATE MATERIALIZED VIEW v AS SELECT k, try_sum(a) OVER (PARTITION BY g ORDER BY k) AS running,
        try_avg(d) OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING) AS sliding,
        try_sum(d) OVER (PARTITION BY g) AS whole FROM t""")
    assert answer(db) == [(1, LARGEST, None, None), (2, None, None, None), (3, None, None, None)]
    db.sql("INSERT INTO t VALUES (4, 'x', -1, -1)")
    assert [row[1:] for row in answer(db)] == [
        (LARGEST, None, WIDEST), (None, None, WIDEST), (None, None, None), (LARGEST, Decimal("0.0000"), WIDEST),
    ]  # fmt: skip


SPAN = datetime.max.replace(microsecond=0) - datetime.min


@pytest.fixture
def spans(db: Database) -> Database:
    """30 rows whose spans do not fit an INTERVAL together."""
    db.sql("CREATE TABLE s (k BIGINT NOT NULL, g STRING, a TIMESTAMP_NTZ, b TIMESTAMP_NTZ, PRIMARY KEY (k))")
    last, first = datetime.max.replace(microsecond=0), datetime.min
    for k in range(30):
        db.put("s", {"k": k, "g": "x", "a": last, "b": first})
    return db


def test_intervals_are_added_and_averaged(spans: Database) -> None:
    spans.sql("DELETE FROM s WHERE k > 2")
    spans.sql("UPDATE s SET b = a - INTERVAL 3 MICROSECONDS WHERE k = 2")
    spans.sql("UPDATE s SET a = NULL WHERE k = 1")
    spans.sql("""CREATE MATERIALIZED VIEW v AS SELECT g, SUM(a - b) AS s, AVG(a - b) AS m, AVG(b - a) AS n,
        MAX(a - b) AS h, TRY_AVG(a - b) AS t, COUNT(DISTINCT a - b) AS c FROM s GROUP BY g""")
    three = timedelta(microseconds=3)
    mean = (SPAN + three) // 2 + timedelta(microseconds=1)
    assert answer(spans) == [("x", SPAN + three, mean, -mean, SPAN, mean, 2)]
    spans.sql("DELETE FROM s WHERE k = 0")
    assert answer(spans) == [("x", three, three, -three, three, three, 1)]
    spans.sql("DELETE FROM s WHERE k = 2")
    assert answer(spans) == [("x", None, None, None, None, None, 0)]


@pytest.mark.parametrize("call", ["SUM(a - b)", "AVG(a - b)"])
@pytest.mark.parametrize("over", ["", " OVER (PARTITION BY g)"])
def test_intervals_overflow_until_they_fit_again(spans: Database, call: str, over: str) -> None:
    group = "" if over else " GROUP BY g"
    spans.sql(f"CREATE MATERIALIZED VIEW v AS SELECT DISTINCT g, TRY_{call}{over} AS s FROM s{group}")
    with pytest.raises(errors.ViewFailed, match=r"INTERVAL_ARITHMETIC_OVERFLOW.*or use TRY_SUM"):
        spans.sql(f"CREATE MATERIALIZED VIEW w AS SELECT {'k' if over else 'g'}, {call}{over} AS s FROM s{group}")
    assert [tuple(row.values()) for row in spans.sql("SELECT * FROM v").rows()] == [("x", None)]
    spans.sql("DELETE FROM s WHERE k > 28")
    total = SPAN * 29 if call.startswith("SUM") else SPAN
    assert {row[1] for row in answer(spans, "w")} == {total}
    assert answer(spans) == [("x", total)]
