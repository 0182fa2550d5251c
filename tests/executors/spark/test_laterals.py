"""LATERAL and correlated subqueries, maintained by one fused job, against Spark's own answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.answers import assert_answers_of_spark, assert_kept_right
from viewkeeper.database import connect

pytestmark = pytest.mark.spark

TABLES = {
    "t": ("k BIGINT, a INT, b INT, c STRING, tags ARRAY<STRING>", "k"),
    "u": ("id INT, t_k BIGINT, v INT, name STRING", "id"),
}
VIEWS = (
    "SELECT t.k, q.v FROM t, LATERAL (SELECT v FROM u WHERE u.t_k = t.k) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT SUM(v) AS s, COUNT(*) AS n, collect_set(v) FROM u WHERE u.t_k = t.k) q",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT SUM(v) AS s, COUNT(*) AS n FROM u WHERE t_k = k HAVING n > 1) q",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.v > t.a) q ON q.n > t.k",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT v, id FROM u WHERE u.t_k = t.k) q ON q.v > t.b",
    "SELECT t.k, q.id FROM t, LATERAL (SELECT id FROM u WHERE t_k = k ORDER BY v DESC NULLS LAST, id LIMIT 2) q",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT v, id FROM u WHERE v >= a ORDER BY v, id LIMIT 1 OFFSET 1) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT t.a + 1 AS x, upper(c) || t.k, t.b) q(x, y, z) WHERE z > 1",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT a + 1, t.b * k, 7) q",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT t.a + 1 AS x, 1 AS o WHERE t.b > 2) q ON o < k",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT v + t.a AS y, COALESCE(a, v), initcap(name || c) FROM u WHERE t_k = k) q",
    "SELECT t.k, q.* FROM t LEFT JOIN LATERAL (SELECT COALESCE(t.a, v) AS z, id FROM u WHERE u.t_k = t.k) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT v, ROW_NUMBER() OVER (ORDER BY id) AS r FROM u WHERE u.t_k = t.k) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT name, MAX(v) AS m FROM u WHERE u.t_k = t.k GROUP BY name) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT DISTINCT name FROM u WHERE u.t_k = t.k) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT v FROM u WHERE u.t_k = t.k UNION ALL SELECT t.a) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT t.a AS x UNION SELECT t.b) q",
    "SELECT t.k, q.n FROM t, LATERAL (SELECT MAX(m) n FROM (SELECT SUM(v) AS m FROM u WHERE t_k = k GROUP BY name)) q",
    "SELECT t.k, q.*, r.* FROM t, LATERAL (SELECT v FROM u WHERE u.t_k = t.k) q, LATERAL (SELECT v + 1 AS w) r",
    "SELECT t.k, q.v, r.id FROM t JOIN LATERAL (SELECT v FROM u WHERE u.t_k = t.k) q ON q.v > 1 JOIN u r ON r.v = q.v",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT explode(t.tags) AS e) q",
    "SELECT t.k, q.* FROM t, LATERAL (SELECT col FROM explode(t.tags) WHERE col > t.c) q",
    "SELECT s.* FROM LATERAL (SELECT v FROM u) s",
    "SELECT t.k, q.* FROM t, LATERAL (WITH w(m) AS (SELECT MAX(v) FROM u WHERE t_k = k), z AS (TABLE w) TABLE z) q",
    "SELECT k, (SELECT v FROM u WHERE u.t_k = t.k ORDER BY id DESC LIMIT 1) AS v FROM t",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT b FROM t x WHERE x.k = u.v) s WHERE u.t_k = t.k)",
)
T: list[dict[str, object]] = [
    {"k": 1, "a": 1, "b": 2, "c": "m", "tags": ["p", None, "z"]},
    {"k": 2, "a": None, "b": 3, "c": "x", "tags": []},
    {"k": 3, "a": 5, "b": None, "c": None, "tags": None},
    {"k": 4, "a": 0, "b": 1, "c": "M", "tags": ["q"]},
]
U: list[dict[str, object]] = [
    {"id": 1, "t_k": 1, "v": 10, "name": "m"},
    {"id": 2, "t_k": 1, "v": 2, "name": "n"},
    {"id": 3, "t_k": 2, "v": 3, "name": None},
    {"id": 4, "t_k": 1, "v": None, "name": "m"},
    {"id": 5, "t_k": None, "v": 3, "name": "o"},
]


# Groups under outer joins, first rows, and windows.
VERIFIED = (2, 5, 12)


def test_views_follow_their_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Filled in process, then changed by two fused jobs; verified with their state."""
    path = tmp_path / "lateral.vk"
    with connect(path, durability="none", spark=spark) as database:
        for name, (columns, key) in TABLES.items():
            database.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
        database.put_batch("t", T[:3])
        database.put_batch("u", U[:3])
        for number, sql in enumerate(VIEWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    with connect(path, executor="spark", durability="none", spark=spark) as database:
        database.put_batch("u", U[3:])
        database.put_batch("t", [T[3], {**T[0], "a": 2, "tags": ["p"]}])
        database.refresh()
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
        assert_kept_right(database, VIEWS, ())
        database.put_batch("u", [{**U[0], "t_k": 2}, {**U[3], "v": 1}])
        database.delete("t", {"k": 2})
        database.delete("u", {"id": 2})
        database.refresh()
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
        assert_kept_right(database, VIEWS, VERIFIED)
