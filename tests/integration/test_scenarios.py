"""One situation each: cadences apart, rows that cannot be computed, deposed coordinators, consumers left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.integration.nursery import Nursery, nursery
from tests.integration.proof import Proof
from tests.integration.roles import LOCAL, rows_of
from viewkeeper.database.engine import Engine
from viewkeeper.errors import ConflictError, StoreError, ViewFailed, ViewkeeperError
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.position import Position
from viewkeeper.pipeline.epoch import plan_epoch
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.publish import publish
from viewkeeper.pipeline.records import read_cadence, write_cadence
from viewkeeper.runtime import memory_store, open_store
from viewkeeper.settings import Settings
from viewkeeper.testing.auditor import apply
from viewkeeper.testing.faults import At


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture
def db() -> Iterator[vk.Database]:
    with vk.Database(memory_store(), Settings(executor="local", epoch_rows_max=20)) as made:
        made.sql("CREATE TABLE t (id BIGINT, g INT, v BIGINT, x INT, PRIMARY KEY (id))")
        yield made


def views_of(db: vk.Database) -> dict[str, dict[str, object]]:
    return {view["name"]: view for view in db.status()["views"]}


# ---- cadences ----


def test_a_writer_far_ahead_during_an_epoch(tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(2)
        before = proof.db.status()["position"]
        # While the first epoch is between computed and published, the log grows by many epochs.
        with hooked(At("publish:before", 1, lambda: proof.write(60))):
            proof.db.refresh("grouped")
        assert views_of(proof.db)["grouped"]["position"] == before
        proof.check()
        proof.check_fresh()


@pytest.mark.slow
def test_a_join_on_demand_a_hundred_epochs_behind(tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(3)
        proof.db.refresh()
        behind = views_of(proof.db)["regions"]["position"]
        for _ in range(100):
            proof.write(1)
            assert proof.db.refresh("joined").epochs == 1
        proof.check()
        assert views_of(proof.db)["regions"]["position"] == behind
        # A view on a view across both: what it reads decides how far it may go.
        query = "SELECT SUM(n) AS n, MAX(most) AS most FROM regions"
        proof.db.sql(f"CREATE MATERIALIZED VIEW above REFRESH CONTINUOUS AS {query}")
        proof.check()
        proof.write(4)
        proof.db.refresh("joined")
        proof.check()
        proof.check_fresh()


# ---- errors of expressions (O17, O23) ----


def test_a_view_that_fails_recovers_by_itself_and_holds_nobody_up(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW share AS SELECT id, 10 / x AS share FROM t")
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM share")
    db.sql("CREATE MATERIALIZED VIEW good AS SELECT COUNT(*) AS n FROM t")
    db.put("t", {"id": 1, "g": 1, "v": 1, "x": 2})
    db.refresh()
    db.put("t", {"id": 2, "g": 1, "v": 1, "x": 0})  # O17: the write succeeds
    with pytest.raises(ViewFailed) as raised:
        db.refresh()
    assert set(raised.value.details["views"]) == {"share", "above"}  # type: ignore[arg-type]
    shown = views_of(db)
    assert [shown[name]["state"] for name in ("share", "above", "good")] == ["FAILED", "FAILED", "ACTIVE"]
    assert shown["share"]["failures"] == [{"reason": "DIVIDE_BY_ZERO", "key": {"id": 2}}]
    assert list(db.scan("share")) == [{"id": 1, "share": 5.0}]
    assert list(db.scan("above")) == [{"n": 1}]
    assert list(db.scan("good")) == [{"n": 2}]
    position = db.put("t", {"id": 3, "g": 1, "v": 1, "x": 5})
    with pytest.raises(ViewFailed):
        db.wait_for(position, "share")
    db.delete("t", 2)
    db.refresh()
    assert list(db.scan("share")) == [{"id": 1, "share": 5.0}, {"id": 3, "share": 2.0}]
    assert {view["state"] for view in db.status()["views"]} == {"ACTIVE"}


def test_an_error_that_comes_and_goes_within_an_epoch_is_none(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW share AS SELECT id, 10 / x AS share FROM t")
    db.put("t", {"id": 1, "g": 1, "v": 1, "x": 0})
    db.put("t", {"id": 1, "g": 1, "v": 1, "x": 4})
    db.put("t", {"id": 2, "g": 1, "v": 1, "x": 0})
    db.delete("t", 2)
    assert db.refresh().epochs == 1
    assert list(db.scan("share")) == [{"id": 1, "share": 2.5}]


def test_an_error_of_one_row_of_a_join_goes_with_either_side(db: vk.Database) -> None:
    db.sql("CREATE TABLE u (id BIGINT, d INT, PRIMARY KEY (id))")
    db.sql("CREATE MATERIALIZED VIEW j AS SELECT t.id, t.v / u.d AS q FROM t JOIN u ON t.g = u.id")
    db.put("t", {"id": 1, "g": 7, "v": 6, "x": 1})
    db.put("u", {"id": 7, "d": 0})
    with pytest.raises(ViewFailed):
        db.refresh()
    db.delete("u", 7)
    db.refresh()
    assert list(db.scan("j")) == []
    db.put("u", {"id": 7, "d": 0})
    with pytest.raises(ViewFailed):
        db.refresh()
    with db.transaction() as tx:  # both sides at once
        tx.update("u", 7, {"d": 3})
        tx.put("t", {"id": 2, "g": 7, "v": 3, "x": 1})
    db.refresh()
    assert [row["q"] for row in db.scan("j")] == [2.0, 1.0]


def test_sums_overflow_and_come_back_and_averages_are_of_what_is_there(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(v) AS total FROM t GROUP BY g")
    db.sql("CREATE MATERIALIZED VIEW means AS SELECT g, AVG(x) AS mean FROM t GROUP BY g")
    largest = 9_223_372_036_854_775_807
    db.put("t", {"id": 1, "g": 1, "v": largest, "x": 5})
    db.refresh()
    db.put("t", {"id": 2, "g": 1, "v": largest, "x": None})
    with pytest.raises(ViewFailed):
        db.refresh()
    assert views_of(db)["sums"]["state"] == "FAILED"
    assert views_of(db)["means"]["state"] == "ACTIVE"
    assert db.get("sums", 1) == {"g": 1, "total": largest}
    db.delete("t", 2)
    db.refresh()
    assert db.get("sums", 1) == {"g": 1, "total": largest}
    db.update("t", 1, {"x": 4})
    db.refresh()
    assert db.get("means", 1) == {"g": 1, "mean": 4.0}


def test_a_view_that_fails_at_its_birth_shows_no_part(db: vk.Database) -> None:
    db.put_batch("t", [{"id": n, "g": 1, "v": 1, "x": n % 50} for n in range(200)])
    small = vk.Database(db._engine.store, Settings(executor="local", build_rows=30))
    with pytest.raises(ViewFailed):
        small.sql("CREATE MATERIALIZED VIEW share AS SELECT id, 10 / x AS share FROM t")
    assert views_of(db)["share"]["failure_count"] == 4
    assert views_of(db)["share"]["rows"] == 0
    db.sql("DELETE FROM t WHERE x = 0")
    db.refresh()
    assert views_of(db)["share"]["rows"] == 196


# ---- changes of one key (O21, O25) ----


def test_large_values_that_stay_are_kept_and_null_is_null(db: vk.Database) -> None:
    db.sql("CREATE TABLE large (id BIGINT, body STRING, n INT, PRIMARY KEY (id))")
    db.sql("CREATE MATERIALIZED VIEW seen AS SELECT id, body, n FROM large")
    body = "x" * 1_000_000
    db.put("large", {"id": 1, "body": body, "n": 1})
    db.refresh()
    db.update("large", 1, {"n": 2})
    db.refresh()
    assert db.get("seen", 1) == {"id": 1, "body": body, "n": 2}
    with db.transaction() as tx:
        tx.put("large", {"id": 2, "body": body, "n": 1})
        tx.update("large", 2, {"n": 2})
    db.refresh()
    assert db.get("seen", 2) == {"id": 2, "body": body, "n": 2}
    db.update("large", 1, {"body": None})
    db.refresh()
    assert db.get("seen", 1) == {"id": 1, "body": None, "n": 2}


def test_several_changes_of_one_key_in_one_epoch(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW rows_of_t AS SELECT id, v FROM t")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY g")
    db.put("t", {"id": 1, "g": 1, "v": 1, "x": 1})
    db.refresh()
    with db.transaction() as tx:
        for value in (2, 3):
            tx.put("t", {"id": 1, "g": 1, "v": value, "x": 1})
            tx.put("t", {"id": 2, "g": 1, "v": value, "x": 1})
        tx.put("t", {"id": 3, "g": 2, "v": 9, "x": 1})
        tx.delete("t", 3)
    db.put("t", {"id": 1, "g": 1, "v": 4, "x": 1})
    db.refresh()
    assert list(db.scan("rows_of_t")) == [{"id": 1, "v": 4}, {"id": 2, "v": 3}]
    assert list(db.scan("sums")) == [{"g": 1, "total": 7, "n": 2}]


# ---- fences and bounds ----


def test_the_late_epoch_of_a_deposed_coordinator_is_refused(tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof, closing(open_store(proof.path, Settings.of(LOCAL))) as store:
        deposed = Engine(store, Settings.of(LOCAL)).coordinator
        proof.write(5)
        members = deposed.members(deposed.catalog(), "continuous")
        assert members is not None
        with store.base.read() as base, store.views.read() as views:
            plan = plan_epoch(base, views, members, 10**6)
        assert plan is not None
        late = deposed.executor("local").run(plan)
        proof.db.refresh()
        for again in (plan, replace(plan, number=plan.number - 1)):
            with pytest.raises(ConflictError, match="EPOCH_SUPERSEDED"):
                publish(store.views, again, late.writes, "local", deposed.clock)
        # Its range is purged: that must not look like no changes.
        with pytest.raises(ConflictError, match="EPOCH_SUPERSEDED"):
            deposed.executor("local").run(plan)
        proof.check_fresh()
        # An epoch that was planned before its views changed is void as well.
        proof.write(1)
        members = deposed.members(deposed.catalog(), "continuous")
        assert members is not None
        with store.base.read() as base, store.views.read() as views:
            plan = plan_epoch(base, views, members, 10**6)
        assert plan is not None
        proof.db.sql("DROP MATERIALIZED VIEW bag")
        with pytest.raises(ConflictError, match="EPOCH_SUPERSEDED"):
            deposed.run(plan, 0.0)
        proof.check_fresh()


def test_no_reading_transaction_spans_two_chunks(db: vk.Database) -> None:
    store = db._engine.store
    db.put_batch("t", [{"id": n, "g": 1, "v": 1, "x": 1} for n in range(500)])
    position = db.status()["position"]
    table = db._engine.coordinator.catalog().table("t")
    rows = 0
    for number, batch in enumerate(scan_as_of(store.base, table, position, batch_rows=50)):
        assert store.base.readers() == []
        rows += batch.num_rows
        db.put("t", {"id": 1000 - number, "g": 2, "v": 2, "x": 2})
    assert rows == 500


# ---- consumers left behind ----


def test_a_consumer_that_holds_back_too_much_is_left_behind_and_resumes(tmp_path: Path) -> None:
    with Proof(tmp_path / "store", log_held_bytes_max=20_000) as proof:
        proof.write(3)
        proof.db.refresh()
        shown = list(proof.db.scan("regions"))
        while views_of(proof.db)["regions"]["state"] == "ACTIVE":
            assert proof.numbers[0] < 600, "nothing is left behind"
            proof.write(20)
            proof.db.refresh("grouped", "mirrored")
        proof.check()
        regions = views_of(proof.db)["regions"]
        assert regions["state"] == "NEEDS_REBUILD"
        assert "20000 bytes" in str(regions["reason"])
        assert list(proof.db.scan("regions")) == shown
        held = {consumer["consumer"] for consumer in proof.db.status()["log"]}
        assert not any("on-demand" in name for name in held)
        with pytest.raises(ConflictError) as raised:
            proof.db.refresh("regions")
        assert raised.value.code == "NEEDS_REBUILD"
        position = Position(proof.db.status()["position"])
        with pytest.raises(ConflictError) as raised:
            proof.db.wait_for(position, "regions")
        assert raised.value.code == "NEEDS_REBUILD"
        proof.db.sql("ALTER MATERIALIZED VIEW regions RESUME")
        proof.check_fresh()


def test_a_suspended_view_holds_nothing_and_resumes(tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(3)
        proof.db.refresh()
        proof.db.sql("ALTER MATERIALIZED VIEW regions SUSPEND")
        shown = list(proof.db.scan("regions"))
        proof.write(10)
        proof.db.refresh()
        proof.check()
        assert list(proof.db.scan("regions")) == shown
        with pytest.raises(ViewkeeperError) as raised:
            proof.db.wait_for(Position(proof.db.status()["position"]), "regions")
        assert raised.value.code == "VIEW_SUSPENDED"
        proof.db.sql("ALTER MATERIALIZED VIEW regions RESUME")
        proof.check_fresh()


def test_a_position_beyond_the_log_means_rebuild(tmp_path: Path) -> None:
    """As after a power cut that took the log's end and not the views: seen before anybody writes."""
    with Proof(tmp_path / "store") as proof:
        proof.write(3)
        proof.db.refresh()
        with closing(open_store(proof.path, Settings.of(LOCAL))) as store, store.views.write() as txn:
            record = read_cadence(txn, "continuous")
            assert record is not None
            write_cadence(txn, replace(record, position=record.position + 2))
        proof.restart()
        states = {view["name"]: view["state"] for view in proof.db.status()["views"]}
        assert states["mirrored"] == "ACTIVE"
        assert {states[name] for name in ("grouped", "joined", "bag", "pairs")} == {"NEEDS_REBUILD"}
        proof.write(5)
        for name, state in states.items():
            if state == "NEEDS_REBUILD":
                proof.db.sql(f"ALTER MATERIALIZED VIEW {name} RESUME")
        proof.check_fresh()


# ---- a full disk ----


@pytest.mark.slow
def test_a_full_disk_during_publish(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(3)
        proof.db.sql("DROP MATERIALIZED VIEW pairs")  # of 20,000 rows, it would be very large
        child = children.start("fill_disk", path=proof.path, room_bytes=200_000, of_views=True)
        assert child.rest() == ["ready", "DISK_FULL"]
        assert child.wait() == 0
        child.close()
        operations = [("put", "orders", row) for row in rows_of(20_000)]
        proof.auditor.committed(proof.db.status()["position"], lambda tables: apply(tables, operations))
        proof.restart()
        proof.check_fresh()


@pytest.mark.slow
def test_a_full_disk_during_a_write(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(3)
        child = children.start("fill_disk", path=proof.path, room_bytes=200_000, of_views=False)
        assert child.rest() == ["ready", "DISK_FULL"]
        assert child.wait() == 0
        child.close()
        proof.restart()
        proof.write(3)
        proof.check_fresh()


def test_a_full_disk_in_this_process_is_survived_without_a_restart(tmp_path: Path) -> None:
    import resource

    with Proof(tmp_path / "store") as proof:
        proof.write(2)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = max(path.stat().st_size for path in Path(proof.path).glob("*/data.mdb"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, hard))
        try:
            with pytest.raises(StoreError) as raised:
                proof.db.put_batch("orders", rows_of(20_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert raised.value.code == "DISK_FULL"
        proof.write(2)
        proof.check_fresh()
