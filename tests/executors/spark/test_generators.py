"""Views that make rows of rows, maintained by one fused job, against Spark's own answer: types, nullability, rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.answers import assert_answers_of_spark, assert_kept_right
from viewkeeper.database import connect

pytestmark = pytest.mark.spark

TABLE = (
    "k BIGINT, j STRING, a INT, b INT, c STRING, tags ARRAY<STRING>, m MAP<STRING, INT>, "
    "s ARRAY<STRUCT<p: INT, q: STRING>>"
)
VIEWS = (
    "SELECT k, posexplode(tags) FROM t",
    "SELECT k, explode(m) FROM t",
    "SELECT k, explode_outer(m) AS (x, y) FROM t",
    "SELECT k, inline_outer(s) FROM t",
    "SELECT k, inline(s) FROM t WHERE a > 0",
    "SELECT k, stack(2, a, c, b) FROM t",
    "SELECT k, p, x, y FROM t LATERAL VIEW OUTER posexplode(tags) e AS p, x LATERAL VIEW explode(array(a, 1)) f AS y",
    "SELECT k, explode(split(c, '[,]')) AS part FROM t",
    "SELECT k, inline(array(struct(a AS x, upper(c) AS y), struct(1 AS x, 'z' AS y))) FROM t",
    "SELECT k, explode(map_from_arrays(array('u'), array(b))) FROM t",
    "SELECT c, explode(array(max(a), count(*))) AS z FROM t GROUP BY c",
    "SELECT k, json_tuple(j, 'a', 'b c') FROM t",
    "SELECT k, json_tuple(j, 'a') AS x, c FROM t WHERE a > 0",
    "SELECT k, x, y FROM t LATERAL VIEW json_tuple(j, 'b c', CAST(NULL AS STRING)) e AS x, y WHERE x IS NOT NULL",
    "SELECT k, e.* FROM t LEFT JOIN LATERAL json_tuple(j, 'a', 'A', concat('n', '')) e ON true",
    "SELECT c, json_tuple(max(j), 'a') AS x FROM t GROUP BY c",
    "SELECT x, COUNT(*) AS n FROM t, LATERAL explode(sequence(a, b)) AS e(x) GROUP BY x",
    "SELECT t.k, v.name, r.id FROM t JOIN (VALUES (1, 'one'), (2, NULL)) v(n, name) ON v.n = t.a, range(2) r",
    "SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT ((v) FOR n IN ((a) AS first, (b)))",
    "SELECT * FROM (SELECT k, a, b FROM t) UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((a, b) AS ab, (b, a)))",
    "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (SUM(b) AS s, COUNT(*) FOR c IN ('x' AS xx, 'y', NULL))",
    "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (MAX(c) AS m, COUNT(*) AS n FOR b IN (2, 4 AS four))",
    "SELECT * FROM (SELECT a, b, c FROM t) PIVOT (COUNT(b) FOR (c, a) IN (('x', 1) AS p, ('y', 2)))",
)
ROWS: list[dict[str, object]] = [
    {
        "k": 1,
        "j": '{"a": 1.50, "b c": "x", "n": null}',
        "a": 1,
        "b": 2,
        "c": "x",
        "tags": ["p", None],
        "m": {"i": 1, "j": None},
        "s": [{"p": 1, "q": "z"}, None],
    },
    {"k": 2, "j": '{"a": [1, {"b": true}], "b c": ""}', "a": None, "b": None, "c": "y", "tags": [], "m": {}, "s": []},
    {"k": 3, "j": '[{"a": 1}]', "a": 2, "b": 4, "c": None, "tags": None, "m": None, "s": None},
    {
        "k": 4,
        "j": '{"a": "é\\u0041", "b c"',
        "a": 1,
        "b": -1,
        "c": "x,y,",
        "tags": ["q", "q"],
        "m": {"i": 3},
        "s": [{"p": None, "q": None}],
    },
]


# Rows of one row, of groups, of a join, and of a PIVOT.
VERIFIED = (0, 10, 17, 20)


def test_views_follow_their_table(spark: SparkSession, tmp_path: Path) -> None:
    """Filled in process, then changed by one fused job; verified with their state."""
    path = tmp_path / "rows.vk"
    with connect(path, durability="none", spark=spark) as database:
        database.sql(f"CREATE TABLE t ({TABLE}, PRIMARY KEY (k))")
        database.put_batch("t", ROWS[:3])
        for number, sql in enumerate(VIEWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    with connect(path, executor="spark", durability="none", spark=spark) as database:
        assert_answers_of_spark(database, spark, {"t": (TABLE, "k")}, VIEWS)
        database.put_batch("t", [ROWS[3], {**ROWS[0], "tags": ["p", "r"], "a": 2}, {**ROWS[1], "c": "x", "b": 7}])
        database.delete("t", {"k": 3})
        database.refresh()
        assert_answers_of_spark(database, spark, {"t": (TABLE, "k")}, VIEWS)
        assert_kept_right(database, VIEWS, VERIFIED)
