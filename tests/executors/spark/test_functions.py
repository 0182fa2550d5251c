"""Users' functions on Spark: the fused job, expressions that both compute, VERIFY, and queries that are Spark's."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.errors import EvaluationError, ViewFailed
from viewkeeper.plan.function_catalog import SPARK_FUNCTIONS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

VIEWS = {
    "grouped": "SELECT up(s) AS u, SUM(plus(v)) AS a, COUNT(*) FILTER (WHERE plus(v) > 2) AS n FROM t GROUP BY up(s)",
    "typed": "SELECT k, told(k, v, s, m, ts, d, tags, mp) AS p, later(ts) AS l, both(tags, mp) AS b FROM t",
    "mixed": "SELECT k, soundex(up(s)) AS x, up(soundex(s)) AS y, up(concat(soundex(up(s)), s)) AS z FROM t",
    "branches": """SELECT k, CASE WHEN v > 0 THEN soundex(string(part(v))) ELSE 'no' END AS x,
        CASE WHEN v > 0 THEN part(v) END AS y,
        CASE WHEN v > 0 THEN soundex(string(part(factorial(v)))) END AS z FROM t""",
    "joined": "SELECT x.k, y.k AS other FROM t x JOIN t y ON plus(x.k) = y.k AND soundex(up(x.s)) <> up(y.s)",
    "outer_joined": "SELECT x.k, y.k AS other FROM t x LEFT JOIN t y ON x.k = y.k AND soundex(up(x.s)) <> up(y.s)",
    "kept": "SELECT k FROM t WHERE soundex(up(s)) = 'A000' AND plus(v) < 5",
}  # fmt: skip


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[vk.Database]:
    path = tmp_path_factory.mktemp("functions") / "store"
    with vk.connect(str(path), spark=spark, executor="spark") as database:
        database.sql(
            "CREATE TABLE t (k BIGINT, v INT, s STRING, m DECIMAL(10,2), ts TIMESTAMP, d DATE, tags ARRAY<STRING>,"
            " mp MAP<STRING,INT>, PRIMARY KEY (k))"
        )
        for k in range(6):
            database.put("t", row(k))
        register(database)
        for name, query in VIEWS.items():
            database.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        yield database


def row(k: int) -> dict[str, Any]:
    day = datetime.datetime(2024, 1, 1 + k, tzinfo=datetime.UTC)
    return {
        "k": k, "v": None if k == 3 else k, "s": "ab"[k % 2] * 2, "m": Decimal(k), "ts": day, "d": day.date(),
        "tags": ["x", None], "mp": {"q": k},
    }  # fmt: skip


def register(database: vk.Database) -> None:
    def part(v: Any) -> Any:
        if v == 0:
            raise ValueError("no part")
        return None if v is None else 100 // v

    def up(values: Any) -> Any:
        import pyarrow.compute as pc

        return pc.utf8_upper(values)

    day = datetime.timedelta(days=1)
    kinds: list[tuple[str, Any, str, str | None]] = [
        ("part", part, "INT", None),
        ("up", up, "STRING", "arrow"),
        ("plus", lambda v: v + 1, "BIGINT", "pandas"),
        ("told", lambda *values: repr(values), "STRING", None),
        ("later", lambda ts: None if ts is None else ts + day, "TIMESTAMP", None),
        ("both", lambda t, m: {"a": t, "b": m}, "STRUCT<a: ARRAY<STRING>, b: MAP<STRING,INT>>", None),
    ]
    for name, code, return_type, takes in kinds:
        database.register_function(
            name, code, return_type, deterministic=True, vectorized=takes, by_value=True, or_replace=True
        )


def test_views_follow_in_one_job_and_spark_finds_them_right(db: vk.Database) -> None:
    db.put("t", {"k": 10, "v": 7, "s": "zz"})
    db.put("t", {**row(2), "v": 0})
    db.delete("t", 1)
    assert db.refresh().executors == ("spark",)
    for name in VIEWS:
        report = db.verify(name)
        assert report.ok, str(report)
    assert db.get("mixed", 10) == {"k": 10, "x": "Z000", "y": "Z000", "z": "Z000ZZ"}
    assert db.get("branches", 4) == {"k": 4, "x": "25", "y": 25, "z": "4"}
    assert db.get("branches", 0) == {"k": 0, "x": "no", "y": None, "z": None}
    assert "datetime.date(2024, 1, 5)" in db.get("typed", 4)["p"]  # type: ignore[index]


def test_failing_rows_fail_the_view_until_they_are_mended(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW risky AS SELECT k, soundex(string(part(v + 1))) AS x, part(v + 1) AS y FROM t")
    good = list(db.scan("risky"))
    db.put("t", {"k": 20, "v": -1, "s": "a"})
    with pytest.raises(ViewFailed, match="risky"):
        db.refresh("risky")
    assert list(db.scan("risky")) == good
    db.delete("t", 20)
    db.refresh("risky")
    assert list(db.scan("risky")) == good
    assert db.verify("risky").ok


def test_queries_of_spark_call_them(db: vk.Database) -> None:
    found = db.sql("SELECT soundex(up(s)) AS q, COUNT(plus(v)) AS n FROM t WHERE k < 6 GROUP BY ALL ORDER BY 1")
    assert (found.executor, [r["q"] for r in found.rows()]) == ("spark", ["A000", "B000"])
    with pytest.raises(EvaluationError) as caught:
        db.sql("SELECT soundex(string(part(v))) FROM t")
    assert caught.value.code == "FUNCTION_RAISED"
    db.sql("MERGE INTO t USING (SELECT 4 AS k) n ON t.k = n.k WHEN MATCHED THEN UPDATE SET s = soundex(up(t.s))")
    assert db.get("t", 4)["s"] == "A000"  # type: ignore[index]


def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    names = {r.function for r in spark.newSession().sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert {name for name in names if re.fullmatch("[a-z_][a-z0-9_]*", name)} == SPARK_FUNCTIONS
