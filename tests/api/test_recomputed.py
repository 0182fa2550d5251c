"""What every change computes anew: other policies than INCREMENTAL have it, with its code, and its rows are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.errors import UnsupportedSql
from viewkeeper.pipeline.policy import FEW_CHANGES, FULL, INCREMENTAL, NO_CHANGES, POLICY, TOGETHER

WINDOW, OFFSET = "WINDOW_WITHOUT_PARTITION", "OFFSET_WITHOUT_LIMIT"
QUERIES = {
    "running": ("SELECT k, SUM(x) OVER (ORDER BY k) AS s, LAG(x) OVER (ORDER BY x, k) AS l FROM t", WINDOW),
    "ranked": ("SELECT g, RANK() OVER (ORDER BY SUM(x) DESC) AS r, SUM(x) AS s FROM t GROUP BY g", WINDOW),
    "shares": ("SELECT g, 100 * SUM(x) / SUM(SUM(x)) OVER () AS part FROM t GROUP BY g", WINDOW),
    "tiles": ("SELECT k, NTILE(3) OVER (ORDER BY x, k) AS n FROM t QUALIFY n > 1 OR k = 2", WINDOW),
    "beside": ("SELECT k, x - AVG(x) OVER () AS d, ROW_NUMBER() OVER (PARTITION BY g ORDER BY k) AS n FROM t", WINDOW),
    "behind": ("SELECT k, x FROM t ORDER BY x DESC, k OFFSET 2", OFFSET),
    "outside": ("SELECT k FROM t WHERE x NOT IN (SELECT x FROM t ORDER BY x OFFSET 3)", OFFSET),
}
POLICIES = ("AUTO", "FULL")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as database:
        database.sql("CREATE TABLE t (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
        # Nothing is slow enough to be weighed, on a busy machine either.
        database._engine.coordinator.ways.quick_seconds = 3600.0
        yield database


def rows_of(rows: object) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_the_query_whichever_way_they_come(shop: Database, query: str) -> None:
    sql, code = QUERIES[query]
    for policy in POLICIES:
        shop.sql(f"CREATE MATERIALIZED VIEW v_{policy} REFRESH POLICY {policy} AS {sql}")
    # Larger than what is recomputed unweighed, so that it is stepped; of other rows than the others.
    wide = sql.replace("FROM t", "FROM u")
    shop.sql("CREATE TABLE u (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
    shop.put_batch("u", [{"k": k, "g": k % 3, "x": k % 50} for k in range(1_100)])
    shop.sql(f"CREATE MATERIALIZED VIEW wide AS {wide}")
    chance = Random(7)
    for _ in range(6):
        for table in ("t", "u"):
            with shop.transaction() as tx:
                for _ in range(chance.randint(1, 6)):
                    key = chance.randrange(12)
                    if chance.random() < 0.3:
                        tx.delete(table, {"k": key})
                    else:
                        tx.put(table, {"k": key, "g": chance.randrange(3), "x": chance.randrange(9)})
        shop.refresh()
        for policy in POLICIES:
            assert rows_of(shop.scan(f"v_{policy}")) == rows_of(shop.sql(sql).rows())
        assert rows_of(shop.scan("wide")) == rows_of(shop.sql(wide).rows())
    shown = {view["name"]: (view["way"], view["why"], view["recomputed"]) for view in shop.status()["views"]}
    assert shown == {
        "v_AUTO": (FULL, code, code),
        "v_FULL": (FULL, POLICY, code),
        "wide": (INCREMENTAL, FEW_CHANGES, code),
    }


def test_the_code_is_told_wherever_the_view_is(shop: Database) -> None:
    sql, code = QUERIES["running"]
    told = f"windows over all rows are computed anew by every change of them ({code})"
    assert f"recomputed: {told}" in shop.explain(f"CREATE MATERIALIZED VIEW v AS {sql}")
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert f"recomputed: {told}" in shop.explain("EXPLAIN MATERIALIZED VIEW v")
    shop.put("t", {"k": 1, "g": 1, "x": 1})
    assert f"next epoch: FULL: {told}" in shop.explain("EXPLAIN MATERIALIZED VIEW v")
    shop.refresh()
    (decision,) = shop.decisions("v")
    assert (decision["way"], decision["why"], decision["reason"]) == (FULL, code, f"FULL: {told}")
    described = {row["col_name"]: row["data_type"] for row in shop.sql("DESCRIBE EXTENDED v").rows()}
    assert (described["# recomputed"], described["# decision"]) == (code, f"FULL: {told}")


def test_nothing_is_recomputed_where_nothing_has_changed(shop: Database) -> None:
    shop.sql("CREATE TABLE other (k BIGINT PRIMARY KEY)")
    shop.sql(f"CREATE MATERIALIZED VIEW v AS {QUERIES['running'][0]}")
    shop.put("other", {"k": 1})
    shop.refresh()
    (view,) = shop.status()["views"]
    assert (view["way"], view["why"]) == (INCREMENTAL, NO_CHANGES)


@pytest.mark.parametrize("query", QUERIES)
def test_incremental_refuses_it_in_every_statement(shop: Database, query: str) -> None:
    sql, code = QUERIES[query]
    strict = f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS {sql}"
    for statement in (strict, f"EXPLAIN {strict}"):
        with pytest.raises(UnsupportedSql, match="REFRESH POLICY AUTO") as caught:
            shop.sql(statement)
        assert caught.value.code == code
        assert caught.value.details["near"]
    assert shop.views() == []
    shop.sql("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS SELECT k, x FROM t")
    with pytest.raises(UnsupportedSql) as caught:
        shop.sql(f"ALTER MATERIALIZED VIEW v AS {sql}")
    assert caught.value.code == code
    shop.sql("ALTER MATERIALIZED VIEW v SET REFRESH POLICY AUTO")
    shop.sql(f"ALTER MATERIALIZED VIEW v AS {sql}")
    with pytest.raises(UnsupportedSql, match=r"View 'v' keeps policy AUTO\. In its query, line 1") as caught:
        shop.sql("ALTER MATERIALIZED VIEW v SET REFRESH POLICY INCREMENTAL")
    assert caught.value.code == code
    assert shop.status()["views"][0]["policy"] == "AUTO"


def test_a_view_that_reads_it_may_be_incremental(shop: Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW below AS {QUERIES['running'][0]}")
    shop.sql(
        "CREATE MATERIALIZED VIEW above REFRESH POLICY INCREMENTAL AS SELECT COUNT(*) AS n, MAX(s) AS m FROM below"
    )
    strict = "REFRESH EVERY 1 HOUR REFRESH POLICY INCREMENTAL"
    shop.sql(f"CREATE MATERIALIZED VIEW apart {strict} AS SELECT MAX(s) AS m FROM below")
    shop.put_batch("t", [{"k": k, "g": 1, "x": k} for k in range(5)])
    shop.refresh()
    assert list(shop.scan("above")) == [{"n": 5, "m": 10}]
    assert list(shop.scan("apart")) == [{"m": 10}]
    assert {view["name"]: view["recomputed"] for view in shop.status()["views"]} == {
        "below": WINDOW,
        "above": None,
        "apart": None,
    }


def test_views_that_keep_state_together_say_so(shop: Database) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW shares AS {QUERIES['shares'][0]}")
    shop.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(x) AS s FROM t GROUP BY g")
    shop.put("t", {"k": 1, "g": 1, "x": 1})
    shop.refresh()
    shown = {view["name"]: (view["way"], view["why"]) for view in shop.status()["views"]}
    assert shown == {"shares": (FULL, WINDOW), "sums": (FULL, TOGETHER)}
    assert shop.decisions("sums")[0]["reason"].startswith("FULL: it keeps state together with a view")
