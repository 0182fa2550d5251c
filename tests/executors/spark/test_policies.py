"""Views that are stepped and views that are recomputed in one fused job: same rows, same state, one job an epoch."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from viewkeeper.clock import seeded
from viewkeeper.database import Database, connect
from viewkeeper.errors import ViewFailed
from viewkeeper.pipeline.policy import FULL, INCREMENTAL
from viewkeeper.testing.ways import draw_ways

pytestmark = pytest.mark.spark

QUERIES = {
    "sums": "SELECT g, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS low FROM orders GROUP BY g",
    "joined": "SELECT o.k, o.x, c.name FROM orders o JOIN clients c ON o.g = c.g",
    "lonely": "SELECT c.g, o.k FROM clients c LEFT JOIN orders o ON o.g = c.g AND o.x > 4",
    "total": "SELECT SUM(x) AS s, MAX(x) AS high FROM orders WHERE x > 3",
    "quotient": "SELECT k, 10 DIV x AS q FROM orders",
    "names": "SELECT name, COUNT(*) AS n, MIN(x) AS low FROM {joined} GROUP BY name",
}
POLICIES = ("AUTO", "INCREMENTAL", "FULL")


def tables(database: Database) -> None:
    database.sql("CREATE TABLE orders (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
    database.sql("CREATE TABLE clients (g BIGINT, name STRING, PRIMARY KEY (g))")


def rows(database: Database, name: str) -> list[str]:
    return sorted(map(str, database.scan(name)))


def test_each_policy_shows_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    with connect(tmp_path / "shop.vk", executor="spark", durability="none", spark=spark) as database:
        draw_ways(database._engine.coordinator.ways, seeded(1))
        tables(database)
        for policy in POLICIES:
            for query, sql in QUERIES.items():
                text = sql.format(joined=f"joined_{policy}")
                database.sql(f"CREATE MATERIALIZED VIEW {query}_{policy} REFRESH POLICY {policy} AS {text}")
        chance = Random(3)
        failed = 0
        for number in range(10):
            with database.transaction() as tx:
                for _ in range(30):
                    key = chance.randrange(60)
                    if chance.random() < 0.2:
                        tx.delete("orders", {"k": key})
                    else:
                        low = 0 if number % 3 == 1 else 1
                        tx.put("orders", {"k": key, "g": chance.randrange(5), "x": chance.randrange(low, 9)})
                tx.put("clients", {"g": chance.randrange(5), "name": chance.choice("abc")})
            try:
                database.refresh()
            except ViewFailed:
                failed += 1
            for query in QUERIES:
                shown = [rows(database, f"{query}_{policy}") for policy in POLICIES]
                assert shown[0] == shown[1] == shown[2], (number, query)
        assert 0 < failed < 10
        assert {d["way"] for d in database.decisions("sums_AUTO")} == {FULL, INCREMENTAL}
        assert {d["executor"] for d in database.decisions()} == {"spark"}
        assert all(d["seconds"] > 0 and d["rows"] > 0 for d in database.decisions("sums_FULL") if d["way"] == FULL)
        database.sql("TRUNCATE TABLE orders")
        database.refresh()
        assert rows(database, "total_FULL") == rows(database, "total_INCREMENTAL") == ["{'s': None, 'high': None}"]
        for query in QUERIES:
            for policy in ("AUTO", "FULL"):
                report = database.verify(f"{query}_{policy}")
                assert report.ok, str(report)


def test_an_epoch_is_one_job_whichever_way_its_views_go(spark: SparkSession, tmp_path: Path) -> None:
    with connect(tmp_path / "shop.vk", executor="spark", durability="none", spark=spark) as database:
        tables(database)
        for policy in ("INCREMENTAL", "FULL"):
            database.sql(f"CREATE MATERIALIZED VIEW joined_{policy} REFRESH POLICY {policy} AS {QUERIES['joined']}")
        database.put_batch("clients", [{"g": g, "name": f"client {g}"} for g in range(50)])
        database.put_batch("orders", [{"k": k, "g": k % 50, "x": k} for k in range(3_000)])
        spark.sparkContext.setJobGroup("policies", "one epoch")
        done = database.refresh()
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("policies")
        assert (done.epochs, len(jobs)) == (1, 1)
        assert rows(database, "joined_FULL") == rows(database, "joined_INCREMENTAL")
        assert len(rows(database, "joined_FULL")) == 3_000
        (decision,) = database.decisions("joined_FULL")
        assert (decision["base_rows"], decision["rows"]) == (3_050, 3_050)


def test_what_only_spark_evaluates_is_recomputed_by_it(spark: SparkSession, tmp_path: Path) -> None:
    with connect(tmp_path / "shop.vk", durability="none", spark=spark) as database:
        tables(database)
        for policy in ("INCREMENTAL", "FULL"):
            sql = "SELECT g, soundex(name) AS s FROM clients"
            database.sql(f"CREATE MATERIALIZED VIEW sounds_{policy} REFRESH POLICY {policy} AS {sql}")
        database.put_batch("clients", [{"g": g, "name": name} for g, name in enumerate(("Robert", "Rupert", None))])
        database.refresh()
        database.sql("UPDATE clients SET name = 'Honey' WHERE g = 1; DELETE FROM clients WHERE g = 0")
        database.refresh()
        assert rows(database, "sounds_FULL") == rows(database, "sounds_INCREMENTAL")
        assert rows(database, "sounds_FULL") == ["{'g': 1, 's': 'H500'}", "{'g': 2, 's': None}"]
