"""VERIFY of recursions without end: their views are FAILED, and Spark, asked for all rounds, would never answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from viewkeeper.errors import ViewFailed

pytestmark = pytest.mark.spark

VIEWS = {
    "bag": """WITH RECURSIVE r(k) MAX RECURSION LEVEL 4 AS (SELECT k FROM s
        UNION ALL SELECT e.b FROM r JOIN e ON e.a = r.k) SELECT k, COUNT(*) AS n FROM r GROUP BY k""",
    "rows": """WITH RECURSIVE r(k) MAX RECURSION LEVEL 4 AS (SELECT k FROM s
        UNION SELECT k + 1 FROM r WHERE k < 2 OR k > 8) SELECT COUNT(*) AS n FROM r""",
}


def test_what_has_no_end_is_checked_as_far_as_it_can_be(spark: SparkSession, tmp_path: Path) -> None:
    with vk.connect(tmp_path / "graph.vk", spark=spark, executor="local") as db:
        db.sql("CREATE TABLE e (a INT, b INT, PRIMARY KEY (a)); CREATE TABLE s (k INT, PRIMARY KEY (k))")
        db.sql("INSERT INTO e VALUES (1, 2); INSERT INTO s VALUES (1)")
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            assert db.verify(name).ok
        db.sql("INSERT INTO e VALUES (2, 1); INSERT INTO s VALUES (9)")
        with pytest.raises(ViewFailed) as raised:
            db.refresh()
        assert sorted(raised.value.details["views"]) == sorted(VIEWS)  # type: ignore[call-overload]
        for name in VIEWS:
            assert db.verify(name).ok
