"""Which queries Spark may answer in several ways, so that another answer proves nothing against a view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.evaluation.freedom import has_many_answers
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.views.planning import Planner

MANY = [
    "SELECT a, COLLECT_SET(b) AS x FROM t GROUP BY a",
    "SELECT a, ARRAY_AGG(b) AS x FROM t GROUP BY a",
    "SELECT a, LISTAGG(DISTINCT c, ',') AS x FROM t GROUP BY a",
    "SELECT a, MIN_BY(k, b) AS x FROM t GROUP BY a",
    "SELECT a, MODE(b) AS x FROM t GROUP BY a",
    "SELECT a, ANY_VALUE(b) AS x FROM t GROUP BY a",
    "SELECT a, approx_count_distinct (b) AS x FROM t GROUP BY a",
    "SELECT k, b FROM t ORDER BY b LIMIT 3",
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS x FROM t",
    "SELECT k, SUM(b) OVER (PARTITION BY a ORDER BY b ROWS 1 PRECEDING) AS x FROM t",
    "SELECT size(s) AS x, k FROM t JOIN (SELECT a, COLLECT_SET(b) AS s FROM t GROUP BY a) q ON q.a = t.a",
]
ONE = [
    "SELECT a, SUM(b) AS x, MIN(c) AS low, COUNT(DISTINCT b) AS n, MEDIAN(b) AS m FROM t GROUP BY a",
    "SELECT t.k, u.c FROM t LEFT JOIN t u ON u.a = t.b WHERE EXISTS (SELECT 1 FROM t v WHERE v.k = t.a)",
    "SELECT k, RANK() OVER (PARTITION BY a ORDER BY b) AS x, SUM(b) OVER (PARTITION BY a) AS s FROM t",
    "SELECT k, a + b AS x FROM t WHERE c > 'a'",
]


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(memory_store(), Settings(executor="local")) as opened:
        opened.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT, b INT, c STRING)")
        yield opened


@pytest.mark.parametrize(("sql", "many"), [*((sql, True) for sql in MANY), *((sql, False) for sql in ONE)])
def test_ties_lists_and_sketches_have_many_answers(db: Database, sql: str, many: bool) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {sql}; CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM v")
    catalog = db._engine.coordinator.catalog()
    assert [has_many_answers(Planner(), catalog, catalog.view(name)) for name in ("v", "w")] == [many, many]
