"""Views that join and unite constant rows, in process and by one fused job, against Spark: types, nullability, rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.answers import assert_answers_of_spark, assert_kept_right
from viewkeeper.database import Database, connect

pytestmark = pytest.mark.spark

TABLES = {"t": ("k INT, g STRING, v INT, tags ARRAY<INT>", "k"), "u": ("id INT, k INT, g STRING", "id")}
VIEWS = (
    "SELECT a.x, COUNT(t.k) AS c, SUM(v) AS s FROM (VALUES ('a'), ('c')) AS a(x) LEFT JOIN t ON t.g = a.x GROUP BY a.x",
    "SELECT * FROM t RIGHT JOIN VALUES ('a', 1.5), ('c', NULL) AS a(g, w) USING (g)",
    "SELECT * FROM t FULL JOIN (VALUES ('a'), ('c'), ('c')) AS a(g) USING (g)",
    "SELECT * FROM t NATURAL LEFT JOIN VALUES (1, 'a'), (2, 'c') AS a(k, g)",
    "SELECT a.x FROM (VALUES ('a'), ('c'), (NULL)) AS a(x) LEFT ANTI JOIN t ON t.g = a.x AND t.v > 1",
    "SELECT r.id, t.k FROM range(4) r FULL JOIN t ON r.id = t.k AND t.v IS NOT NULL",
    "SELECT x, y, t.k FROM (VALUES (1), (9)) a(x) FULL JOIN (VALUES (9), (3)) b(y) ON y = x LEFT JOIN t ON t.k = x",
    "SELECT t.k, a.x, u.id FROM t, (VALUES (1), (9)) a(x) LEFT JOIN u ON u.k = a.x WHERE t.v > 1",
    "SELECT k, (SELECT COUNT(u.id) FROM (VALUES (1), (2)) a(x) LEFT JOIN u ON u.k = a.x AND u.id > t.k) AS n FROM t",
    "SELECT k FROM t UNION VALUES 1.5, 2",
    "SELECT g FROM t EXCEPT ALL VALUES ('a'), ('x')",
    "WITH a AS (VALUES (1, 'q'), (7, NULL) AS b(x, y)) SELECT * FROM a LEFT JOIN (SELECT g, k FROM u) ON k = x",
    "SELECT k, e.x FROM t LEFT JOIN LATERAL explode(tags) AS e(x) ON e.x = t.k",
    "SELECT k, p, x FROM t LEFT JOIN LATERAL posexplode_outer(tags) AS e(p, x) ON x > v OR p = 0",
    "SELECT a.*, k FROM (VALUES (1, NULL), (7, NULL)) a(x, y) LEFT JOIN t ON t.k = x",
    "SELECT * FROM VALUES struct(1, 'a'), struct(2, 'b') a(x, y) LEFT JOIN u ON u.id = x",
    "SELECT s, k FROM VALUES (named_struct('a', 1, 'b', 2), 1), (named_struct('a', 7, 'b', 3L), 9) v(s, n)"
    " LEFT JOIN t ON k = n",
    "SELECT k, tags FROM t UNION ALL VALUES (7, array(7L))",
)


def test_views_follow_their_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Filled and changed in process, then by fused jobs: partners come, change and go."""
    path = tmp_path / "constants.vk"
    with connect(path, durability="none", spark=spark) as database:
        for name, (columns, key) in TABLES.items():
            database.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
        for number, sql in enumerate(VIEWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        database.refresh()
        assert_kept_right(database, VIEWS, ())
        database.put_batch("t", [row(1, "a", 1, [1, 2]), row(2, "b", 2, []), row(3, None, None, None)])
        database.put_batch("u", [{"id": 1, "k": 1, "g": "a"}, {"id": 7, "k": None, "g": "c"}])
        database.refresh()
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
    with connect(path, executor="spark", durability="none", spark=spark) as database:
        database.put_batch("t", [row(1, "c", None, [2]), row(4, "c", 7, [4, 9]), row(9, "a", 1, [9, None])])
        database.put_batch("u", [{"id": 2, "k": 2, "g": "x"}, {"id": 7, "k": 7, "g": "c"}])
        database.delete("t", {"k": 3})
        database.delete("u", {"id": 1})
        database.refresh()
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
        database.delete("t", {"k": 1})
        database.delete("t", {"k": 4})
        database.refresh()
        assert_kept_right(database, VIEWS, ())


def test_of_nothing_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """What only Spark computes of constants and of empty tables, filled, stepped and recomputed."""
    constants = "SELECT x, soundex(concat(x, g)) AS s, k FROM VALUES ('a'), ('c') AS a(x) LEFT JOIN t ON t.g = x"
    total = "SELECT soundex(m) AS s FROM (SELECT COALESCE(MAX(g), 'none') AS m FROM t)"
    views = {"stepped": f"AS {constants}", "anew": f"REFRESH POLICY FULL AS {constants}", "total": f"AS {total}"}
    void = "SELECT k, c FROM explode_outer(array()) AS e(c) LEFT JOIN t ON k = 7"
    with connect(tmp_path / "nothing.vk", durability="none", spark=spark) as database:
        database.sql(f"CREATE TABLE t ({TABLES['t'][0]}, PRIMARY KEY (k))")
        for name, text in views.items():
            database.sql(f"CREATE MATERIALIZED VIEW {name} {text}")
        database.sql(f"CREATE MATERIALIZED VIEW void AS {void}")
        assert shown(database, "void") == [(None, None)]
        alone: list[tuple[object, ...]] = [("a", None, None), ("c", None, None)]
        assert [shown(database, name) for name in views] == [alone, alone, [("N500",)]]
        database.put("t", row(1, "c", 1, None))
        database.refresh()
        paired = [("a", None, None), ("c", "C000", 1)]
        assert [shown(database, name) for name in views] == [paired, paired, [("C000",)]]
        database.delete("t", {"k": 1})
        database.refresh()
        assert [shown(database, name) for name in views] == [alone, alone, [("N500",)]]


def shown(database: Database, name: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in database.scan(name)), key=repr)


def row(k: int, g: str | None, v: int | None, tags: list[int | None] | None) -> dict[str, object]:
    return {"k": k, "g": g, "v": v, "tags": tags}
