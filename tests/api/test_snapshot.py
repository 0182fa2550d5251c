"""A snapshot shows one moment, its tables, views and columns included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from viewkeeper.adapters.lmdb.folder import open_folder
from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.clock import SimulatedClock
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, StoreError
from viewkeeper.runtime import OpenStore, options_of
from viewkeeper.settings import Settings


def test_snapshot_keeps_views_and_columns_that_are_changed_meanwhile(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t; CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    with db.snapshot() as s:
        db.put("t", {"k": 3, "v": 30})
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, v, v * 2 AS z FROM t")
        db.sql("ALTER TABLE t ADD COLUMN q INT DEFAULT 5; DROP MATERIALIZED VIEW w")
        db.sql("CREATE MATERIALIZED VIEW x AS SELECT k FROM t")
        assert list(s.scan("v")) == list(s.scan("t")) == [{"k": 1, "v": 10}, {"k": 2, "v": 20}]
        assert s.get("v", 2) == {"k": 2, "v": 20}
        assert list(s.scan("w")) == [{"k": 1}, {"k": 2}]
        assert s.position_of("v") <= s.position
        with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
            list(s.scan("x"))
    with pytest.raises(StoreError, match="SNAPSHOT_ENDED"):
        s.get("v", 1)


LIMIT_SECONDS = 5.0
Readers = list[tuple[int, float]]


@contextmanager
def timed(path: Path) -> Iterator[tuple[Database, SimulatedClock]]:
    """Open a store of two rows whose snapshots may stay open for a while by a clock that only the test moves."""
    settings, clock = (
        Settings(executor="local", durability="none", snapshot_timeout_seconds=LIMIT_SECONDS),
        SimulatedClock(7),
    )
    folder = open_folder(path, options=options_of(settings), clock=clock)
    store = OpenStore(folder.path, folder.base, folder.views, ProcessLock(folder.lock_path), None, folder.close)
    with Database(store, settings, clock=clock) as db:
        db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 10), (2, 20)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, v FROM t")
        yield db, clock


def test_a_snapshot_ends_by_itself_when_its_time_is_over(tmp_path: Path) -> None:
    with timed(tmp_path / "shop.vk") as (db, clock), db.snapshot() as s:
        rows = s.scan("t")
        clock.sleep(LIMIT_SECONDS)
        assert next(rows) == s.get("t", 1) == {"k": 1, "v": 10}
        assert db.status()["oldest_reader"] is not None
        clock.sleep(0.01)
        reads = (
            lambda: next(rows),  # also a scan that goes on
            lambda: s.get("t", 1),
            lambda: s.multi_get("v", [1]),
            lambda: list(s.scan("v")),
            lambda: s.to_arrow("v"),
            lambda: s.position_of("v"),
        )
        for read in reads:
            with pytest.raises(StoreError, match=r"SNAPSHOT_ENDED.*5 s.*snapshot_timeout_seconds"):
                read()
        # It holds back no space any more, though the program has not closed it; another one is of the present.
        assert db.status()["oldest_reader"] is None
        db.put("t", {"k": 3, "v": 30})
        with db.snapshot() as another:
            assert another.get("t", 3) == {"k": 3, "v": 30}


def test_status_names_the_oldest_reader(tmp_path: Path) -> None:
    with timed(tmp_path / "shop.vk") as (db, clock):
        assert db.status()["oldest_reader"] is None
        with db.snapshot():
            clock.sleep(3)
            with db.snapshot():
                clock.sleep(1)
                assert db.status()["oldest_reader"] == {"process_id": os.getpid(), "age_seconds": 4.0}
        assert db.status()["oldest_reader"] is None


@pytest.mark.parametrize(
    ("base", "views", "oldest"),
    [
        ([(77, -1.0), (5, 4.0)], [(5, 4.0)], (77, -1.0)),
        ([(5, 4.0), (77, -1.0)], [(5, 4.0)], (5, 4.0)),
        ([(5, 1.0)], [(5, 2.0)], (5, 2.0)),
        ([], [(77, -1.0)], (77, -1.0)),
    ],
)
def test_another_process_is_named_where_it_reads_the_oldest_state(
    db: Database, monkeypatch: pytest.MonkeyPatch, base: Readers, views: Readers, oldest: tuple[int, float]
) -> None:
    """How old it is cannot be known, but which is the oldest can: see tests/adapters/lmdb/test_processes.py."""
    store = db._engine.store
    monkeypatch.setattr(store.base, "readers", lambda: base)
    monkeypatch.setattr(store.views, "readers", lambda: views)
    assert tuple(db.status()["oldest_reader"].values()) == oldest
