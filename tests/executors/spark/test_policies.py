"""Views that are stepped and views that are recomputed in one fused job: same rows, same state, one job an epoch."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.cadence import Opener
from tests.executors.spark.jobs import job_group, shape
from viewkeeper.clock import seeded
from viewkeeper.coordinator import upkeep
from viewkeeper.database import Database, connect
from viewkeeper.database.script import context_of
from viewkeeper.errors import ViewFailed
from viewkeeper.evaluation.verify import recompute_local
from viewkeeper.executors.spark import cargo, job
from viewkeeper.executors.spark.cargo import Cargo
from viewkeeper.executors.spark.packing import unpack_report
from viewkeeper.executors.spark.shares import comparisons_of, shares_of
from viewkeeper.executors.spark.task import run_level
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
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
    with connect(tmp_path / "shop.vk", executor="local", durability="none") as database:
        tables(database)
        for policy in POLICIES:
            for query, sql in QUERIES.items():
                text = sql.format(joined=f"joined_{policy}")
                database.sql(f"CREATE MATERIALIZED VIEW {query}_{policy} REFRESH POLICY {policy} AS {text}")
    with connect(tmp_path / "shop.vk", executor="spark", durability="none", spark=spark) as database:
        draw_ways(database._engine.coordinator.ways, seeded(1))
        of_fills = database.decisions()
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
        decisions = [decision for decision in database.decisions() if decision not in of_fills]
        assert {d["way"] for d in decisions if d["view"] == "sums_AUTO"} == {FULL, INCREMENTAL}
        assert {d["executor"] for d in decisions} == {"spark"}
        full = [d for d in decisions if (d["view"], d["way"]) == ("sums_FULL", FULL)]
        assert all(d["seconds"] > 0 and d["rows"] > 0 for d in full)
        database.sql("TRUNCATE TABLE orders")
        database.refresh()
        assert rows(database, "total_FULL") == rows(database, "total_INCREMENTAL") == ["{'s': None, 'high': None}"]
        for query in QUERIES:
            reports = [database.verify(f"{query}_AUTO"), recompute_local(context_of(database._engine), f"{query}_FULL")]
            assert all(report.ok for report in reports), reports


def test_an_epoch_is_one_job_whichever_way_its_views_go(spark: SparkSession, tmp_path: Path) -> None:
    with connect(tmp_path / "shop.vk", executor="spark", durability="none", spark=spark) as database:
        tables(database)
        for policy in ("INCREMENTAL", "FULL"):
            database.sql(f"CREATE MATERIALIZED VIEW joined_{policy} REFRESH POLICY {policy} AS {QUERIES['joined']}")
        database.put_batch("clients", [{"g": g, "name": f"client {g}"} for g in range(50)])
        database.put_batch("orders", [{"k": k, "g": k % 50, "x": k} for k in range(3_000)])
        with job_group(spark, "policies"):
            done = database.refresh()
        # The log, the join, and one stage more that compares what was recomputed with what is stored.
        assert (done.epochs, shape(spark, "policies")) == (1, [[2, 2, 2]])
        assert rows(database, "joined_FULL") == rows(database, "joined_INCREMENTAL")
        assert len(rows(database, "joined_FULL")) == 3_000
        (decision,) = database.decisions("joined_FULL")
        assert (decision["base_rows"], decision["rows"]) == (3_050, 3_050)


def test_a_full_refresh_collects_paths_and_counts_only(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    staged: list[int] = []
    frames = type(spark.range(1))
    plain, read = frames.collect, job.read_stage

    def counted(frame):
        found = plain(frame)
        collected.extend(len(row.payload) for row in found)
        return found

    def weighed(path: str) -> WriteSet:
        writes = read(path)
        staged.append(sum(len(piece.keys) for pieces in writes.tables.values() for piece in pieces))
        return writes

    with connect(tmp_path / "shop.vk", executor="spark", durability="none", spark=spark) as database:
        tables(database)
        database.sql(f"CREATE MATERIALIZED VIEW joined REFRESH POLICY FULL AS {QUERIES['joined']}")
        database.put_batch("clients", [{"g": g, "name": f"client {g}"} for g in range(50)])
        database.put_batch("orders", [{"k": k, "g": k % 50, "x": k} for k in range(20_000)])
        database.refresh()
        monkeypatch.setattr(frames, "collect", counted)
        monkeypatch.setattr(job, "read_stage", weighed)
        database.sql("UPDATE orders SET x = -1 WHERE k < 10; DELETE FROM orders WHERE k >= 19990")
        database.refresh()
        monkeypatch.undo()
        assert max(collected) < 1024
        # Of 40,000 rows and entries of state the driver reads those that differ: here and in the view.
        assert 20 <= sum(staged) < 100
        assert len(rows(database, "joined")) == 19_990
        assert database.verify("joined").ok


@pytest.mark.parametrize("are_files_gone", [False, True])
def test_what_others_have_published_meanwhile_is_not_compared(tmp_path: Path, are_files_gone: bool) -> None:
    path = tmp_path / "shop.vk"
    stage = path / "staging"
    with connect(path, executor="local", durability="none") as database:
        tables(database)
        database.sql(f"CREATE MATERIALIZED VIEW joined REFRESH POLICY FULL AS {QUERIES['joined']}")
        database.put_batch("clients", [{"g": g, "name": f"client {g}"} for g in range(50)])
        database.put_batch("orders", [{"k": k, "g": k % 50, "x": k} for k in range(3_000)])
        coordinator = database._engine.coordinator
        executor = coordinator.executor("local")
        plain = executor.run
        slow: list[tuple[Cargo, list[pa.RecordBatch]]] = []

        def overtake(plan: EpochPlan) -> EpochResult:
            """Let the tasks of the same epoch run to where they have made all rows, and then another one win."""
            with coordinator.base.read() as base, coordinator.views.read() as views:
                shares, comparisons = shares_of(base, views, plan, 1), comparisons_of(views, plan, 1)
            load = cargo.load(plan, shares, comparisons, Opener(str(path)), str(stage))
            batches: list[pa.RecordBatch] = []
            for level in range(load.levels):
                batches = list(run_level(load, level, iter(batches)))
            slow.append((load, batches))
            return plain(plan)

        executor.run = overtake
        coordinator.catch_up("continuous", coordinator.head())
        load, batches = slow[-1]
        assert any(stage.iterdir())
        if are_files_gone:
            upkeep.purge(coordinator)
            assert not any(stage.iterdir())
        left = list(run_level(load, load.levels, iter(batches)))
        reports = [unpack_report(payload.as_py()) for batch in left for payload in batch.column("payload")]
        (error,) = [pickle.loads(report.error) for report in reports if report.error is not None]
        assert error.code == "EPOCH_SUPERSEDED"
        # Nor does a task begin that comes so late.
        late = [unpack_report(p.as_py()) for b in run_level(load, 0, iter([])) for p in b.column("payload")]
        (error,) = [pickle.loads(report.error) for report in late if report.error is not None]
        assert error.code == "EPOCH_SUPERSEDED"


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
