"""Views that join and unite constant rows, in process and by one fused job, against Spark: types, nullability, rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.answers import assert_answers_of_spark, assert_kept_right
from viewkeeper.database import connect

pytestmark = pytest.mark.spark

TABLES = {"t": ("k INT, g STRING, v INT, tags ARRAY<INT>", "k"), "u": ("id INT, k INT, g STRING", "id")}
VIEWS = (
    "SELECT a.x, COUNT(t.k) AS c, SUM(v) AS s FROM (VALUES ('a'), ('c')) AS a(x) LEFT JOIN t ON t.g = a.x GROUP BY a.x",
    "SELECT col1, t.* FROM VALUES ('a'), (NULL) LEFT JOIN t ON t.g <=> col1",
    "SELECT * FROM t RIGHT JOIN VALUES ('a', 1.5), ('c', NULL) AS a(g, w) USING (g)",
    "SELECT * FROM t FULL JOIN (VALUES ('a'), ('c'), ('c')) AS a(g) USING (g)",
    "SELECT * FROM t NATURAL LEFT JOIN VALUES (1, 'a'), (2, 'c') AS a(k, g)",
    "SELECT * FROM (VALUES ('a'), ('c')) AS a(g) LEFT SEMI JOIN t USING (g)",
    "SELECT a.x FROM (VALUES ('a'), ('c'), (NULL)) AS a(x) LEFT ANTI JOIN t ON t.g = a.x AND t.v > 1",
    "SELECT k FROM t LEFT ANTI JOIN range(1, 9, 2) AS r(k) USING (k)",
    "SELECT t.k, r.x FROM t LEFT JOIN range(3) AS r(x) ON r.x = t.v",
    "SELECT r.id, t.k FROM range(4) r FULL JOIN t ON r.id = t.k AND t.v IS NOT NULL",
    "SELECT * FROM range(0) AS r(x) RIGHT JOIN t ON r.x = t.k",
    "SELECT x, y, t.k FROM (VALUES (1), (9)) a(x) FULL JOIN (VALUES (9), (3)) b(y) ON y = x LEFT JOIN t ON t.k = x",
    "SELECT t.k, a.x, u.id FROM t, (VALUES (1), (9)) a(x) LEFT JOIN u ON u.k = a.x WHERE t.v > 1",
    "SELECT * FROM (VALUES (1), (2)) a(x) CROSS JOIN range(2) r LEFT JOIN t ON t.k = a.x + r.id",
    "SELECT col1, t.k, u.id FROM (VALUES (1) a LEFT JOIN t ON t.k = col1) JOIN u ON u.k <=> t.k",
    "SELECT k, (SELECT COUNT(u.id) FROM (VALUES (1), (2)) a(x) LEFT JOIN u ON u.k = a.x AND u.id > t.k) AS n FROM t",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM (VALUES (1), (2)) a(x) LEFT JOIN u ON u.k = a.x WHERE a.x = t.k)",
    "SELECT k FROM t WHERE v IN (SELECT u.id FROM VALUES (1), (2) AS a(x) LEFT JOIN u ON u.k = a.x)",
    "SELECT k, (VALUES (7)) AS s FROM t WHERE EXISTS (VALUES (1))",
    "SELECT g FROM t UNION ALL VALUES ('x'), (NULL)",
    "SELECT k FROM t UNION VALUES 1.5, 2",
    "SELECT g FROM t EXCEPT ALL VALUES ('a'), ('x')",
    "VALUES (1), (3) AS v(y) INTERSECT SELECT k FROM t",
    "WITH a(x) AS (VALUES (1), (2)) SELECT x, k, g FROM a LEFT JOIN t ON t.k = x",
    "WITH a AS (VALUES (1, 'q'), (7, NULL) AS b(x, y)) SELECT * FROM a LEFT JOIN (SELECT g, k FROM u) ON k = x",
    "WITH a AS (SELECT g FROM t) SELECT a.g, y FROM a LEFT JOIN (VALUES (2), (1) ORDER BY 1 LIMIT 1) b(y) ON g = 'a'",
    "SELECT * FROM (VALUES (1) UNION ALL VALUES (7)) a(y) LEFT JOIN u ON u.id = a.y",
    "SELECT k, e.x FROM t LEFT JOIN LATERAL explode(tags) AS e(x) ON e.x = t.k",
    "SELECT k, p, x FROM t LEFT JOIN LATERAL posexplode_outer(tags) AS e(p, x) ON x > v OR p = 0",
    "SELECT k, e.x FROM t LEFT JOIN LATERAL (VALUES (1), (2)) AS e(x) ON e.x = t.k",
    "SELECT k, e.x FROM t LEFT JOIN explode(array(1, 5)) AS e(x) ON e.x = t.k",
    "SELECT e.*, t.k FROM stack(2, 1, 'a', 7, 'b') AS e(x, y) LEFT JOIN t ON e.x = t.k",
    "SELECT a.*, k FROM (VALUES (1, NULL), (7, NULL)) a(x, y) LEFT JOIN t ON t.k = x",
    "SELECT * FROM VALUES struct(1, 'a'), struct(2, 'b') a(x, y) LEFT JOIN u ON u.id = x",
)


def test_views_follow_their_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Filled and changed in process, then by one fused job: partners come, change and go."""
    path = tmp_path / "constants.vk"
    with connect(path, durability="none", spark=spark) as database:
        for name, (columns, key) in TABLES.items():
            database.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
        database.put("t", row(100, "z", None, [100]))
        database.put("u", {"id": 100, "k": None, "g": None})
        for number, sql in enumerate(VIEWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        database.refresh()
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
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
        assert_answers_of_spark(database, spark, TABLES, VIEWS)
        assert_kept_right(database, VIEWS, (0, 3, 27))


def row(k: int, g: str | None, v: int | None, tags: list[int | None] | None) -> dict[str, object]:
    return {"k": k, "g": g, "v": v, "tags": tags}
