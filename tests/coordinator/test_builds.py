"""Views that are filled while others come and go."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from viewkeeper.coordinator import builds, upkeep
from viewkeeper.coordinator.core import Outcome
from viewkeeper.database.connection import Database
from viewkeeper.log import retention
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.runtime import OpenStore, memory_store
from viewkeeper.settings import Settings

SECONDS = 20.0
LINKED = """
CREATE TABLE first (k BIGINT PRIMARY KEY, v INT);
CREATE TABLE second (k BIGINT PRIMARY KEY, v INT);
CREATE MATERIALIZED VIEW below AS SELECT v, COUNT(*) AS n FROM second GROUP BY v;
CREATE MATERIALIZED VIEW above AS SELECT f.k, b.n FROM first f JOIN below b ON f.v = b.v
"""
# Of eight pieces of each table and one of no rows: in the first table, between the two, in the second one, at its end.
PIECES = (1, 4, 9, 12, 16)


@pytest.mark.parametrize("pieces", PIECES)
def test_a_view_is_filled_whole_though_the_one_above_it_is_dropped_meanwhile(pieces: int) -> None:
    """They are filled together; with the upper one the table goes that was read first."""
    store, settings = memory_store(), Settings(executor="local", build_rows=7)
    db, other = Database(store, settings), Database(store, settings)
    db.sql(LINKED)
    for table in ("first", "second"):
        db.put_batch(table, [{"k": k, "v": k % 5} for k in range(50)])
    db.refresh()
    done: list[Outcome] = []

    def progress(rows: int, total: int, outcome: Outcome) -> None:
        done.append(outcome)
        if len(done) == pieces:
            other.sql("DROP MATERIALIZED VIEW above")

    db.refresh("below", full=True, progress=progress)
    assert len(done) >= pieces
    assert [view["name"] for view in db.status()["views"]] == ["below"]
    assert sorted((row["v"], row["n"]) for row in db.scan("below")) == [(v, 10) for v in range(5)]


def test_a_sweep_leaves_the_log_to_a_fill_that_began_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that fills holds the log while the one that sweeps is at the views, by the catalog of before."""
    store, settings = memory_store(), Settings(executor="local")
    db, other = Database(store, settings), Database(store, settings)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    creating = threading.Thread(target=other.sql, args=("CREATE MATERIALIZED VIEW w AS SELECT k FROM t",))
    is_held, is_swept, held = threading.Event(), threading.Event(), list[list[str]]()

    def at(point: str) -> None:
        if point == "build:held":
            is_held.set()
        if point == "build:begun":
            assert is_swept.wait(SECONDS)
            with store.base.read() as txn:
                held.append([one.consumer.name for one in retention.consumers(txn)])

    def begin_a_fill(*_: object) -> None:
        creating.start()
        assert is_held.wait(SECONDS)

    monkeypatch.setattr(upkeep, "begin", lambda coordinator: [])
    monkeypatch.setattr(upkeep, "note_names", begin_a_fill)
    with hooked(at):
        db._engine.coordinator.swept_version = -1
        upkeep.sweep(db._engine.coordinator)
        is_swept.set()
        creating.join(SECONDS)
    assert held == [["cadence/build-3", "cadence/continuous"]]


def test_a_thread_that_begins_a_fill_second_leaves_what_the_first_one_holds_of_the_log() -> None:
    """Linked views have a creator each, and each fills them all."""
    store, settings = memory_store(), Settings(executor="local")
    db = Database(store, settings)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    own = db._engine.coordinator

    def begin_again(point: str) -> None:
        if point != "build:begun" or held:
            return
        held.append(_held(store, "cadence/build-2"))
        db.put("t", {"k": 1})
        # As a thread that has waited for the turn meanwhile.
        builds._begin(own.beside(), "build-2")
        held.append(_held(store, "cadence/build-2"))

    held: list[int] = []
    with hooked(begin_again):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    assert held[0] == held[1]


@pytest.mark.parametrize("pieces", [1, 4, 7])
def test_a_fill_whose_log_was_purged_begins_anew(pieces: int) -> None:
    """It has lost its hold on the log: at its first piece, in its midst, before it follows the log."""
    store = memory_store()
    db = Database(store, Settings(executor="local", build_rows=7))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
    db.put_batch("t", [{"k": k, "v": k % 5} for k in range(42)])
    done: list[int] = []

    def progress(rows: int, total: int, outcome: Outcome) -> None:
        done.append(rows)
        if len(done) == pieces:
            with store.base.write() as txn:
                assert retention.release(txn, "cadence/build-2")
            db.put_batch("t", [{"k": k, "v": k % 5} for k in range(40, 50)])
            assert db._engine.coordinator.purge()

    db.sql("CREATE MATERIALIZED VIEW v AS SELECT v, COUNT(*) AS n FROM t GROUP BY v", progress=progress)
    assert done[pieces] == 0
    assert sorted((row["v"], row["n"]) for row in db.scan("v")) == [(v, 10) for v in range(5)]


def test_a_fill_can_be_left_behind_each_epoch_that_it_runs_or_waits_for() -> None:
    """Of those it brings up that its cadence reads, of its cadence, and of its own."""
    db = Database(memory_store(), Settings(executor="local", epoch_rows_max=10))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT); CREATE TABLE u (k BIGINT PRIMARY KEY)")
    db.sql("CREATE MATERIALIZED VIEW below REFRESH EVERY 1 HOUR AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
    db.sql("CREATE MATERIALIZED VIEW beside AS SELECT k FROM u")
    db.sql("CREATE MATERIALIZED VIEW v WITH NO DATA AS SELECT b.n, u.k FROM u JOIN below b ON b.v = u.k")
    for first in range(0, 60, 10):
        db.put_batch("t", [{"k": k, "v": k % 5} for k in range(first, first + 10)])
    own, view = db._engine.coordinator, max(db._engine.coordinator.catalog().views)
    left: list[str] = []

    def leave(outcome: Outcome) -> None:
        left.append(outcome.cadence)
        raise _LeftError

    def fill(rows: int, total: int, outcome: Outcome) -> None:
        if total == rows and not left:
            db.put_batch("u", [{"k": k} for k in range(5)])
            db.put_batch("t", [{"k": k, "v": k % 5} for k in range(60, 80)])

    attempts = 0
    while own.catalog().views[view].state == "BUILDING":
        attempts += 1
        with suppress(_LeftError):
            builds.build(own, view, fill, leave)
    assert len(left) == attempts - 1
    assert set(left) == {"every-3600", "continuous", own.catalog().views[view].cadence, f"build-{view}"}
    assert sorted((row["k"], row["n"]) for row in db.scan("v")) == [(k, 16) for k in range(5)]


class _LeftError(Exception):
    """Somebody wants a fill to end."""


def _held(store: OpenStore, name: str) -> int:
    with store.base.read() as txn:
        consumer = retention.find(txn, name)
    assert consumer is not None
    return consumer.position
