"""Views that are being filled while a newer version of them is asked for: that one counts, at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from viewkeeper.coordinator import work
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.coordinator.lanes import SideBySide
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.coordinator.requests import Request
from viewkeeper.database.connection import Database
from viewkeeper.errors import ConflictError
from viewkeeper.log import retention
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import read_cadences
from viewkeeper.runtime import OpenStore, memory_store
from viewkeeper.settings import Settings

SECONDS = 60.0
OLD = "SELECT v, COUNT(*) AS n FROM t GROUP BY v"
NEW = "SELECT v, COUNT(*) AS n FROM t WHERE k < 20 GROUP BY v"
STATEMENTS = (f"CREATE OR REPLACE MATERIALIZED VIEW v AS {NEW}", f"ALTER MATERIALIZED VIEW v AS {NEW}")


@pytest.fixture
def store() -> OpenStore:
    return memory_store()


@pytest.fixture
def db(store: OpenStore) -> Iterator[Database]:
    db = connected(store)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
    db.put_batch("t", [{"k": k, "v": k % 5} for k in range(40)])
    return db


def connected(store: OpenStore) -> Database:
    return Database(store, Settings(executor="local", build_rows=7))


def only_the_new_one_is_there(store: OpenStore, db: Database) -> None:
    (view,) = db._engine.coordinator.catalog().views.values()
    assert (view.name, view.state, view.sql) == ("v", "ACTIVE", NEW)
    assert sorted((row["v"], row["n"]) for row in db.scan("v")) == [(v, 4) for v in range(5)]
    with store.views.read() as txn, store.base.read() as base:
        names = [name for name in txn.databases() if name != "published"]
        assert names
        assert all(name.startswith("continuous/") for name in names)
        assert [record.name for record in read_cadences(txn)] == ["continuous"]
        assert [held.consumer.name for held in retention.consumers(base)] == ["cadence/continuous"]


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_who_fills_an_older_version_is_told(store: OpenStore, db: Database, statement: str, is_there: bool) -> None:
    other = connected(store)
    seen: list[tuple[str, ...]] = []

    def progress(rows: int, total: int, outcome: Outcome) -> None:
        if len(seen) == 1:
            other.sql(statement)
        with store.views.read() as txn:
            seen.append(tuple(record.name for record in read_cadences(txn)))

    if is_there:
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT v, k AS n FROM t")
    with pytest.raises(ConflictError) as caught:
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {OLD}", progress=progress)
    assert caught.value.code == "VIEW_CHANGED"
    assert seen[-1] == ("continuous",)
    only_the_new_one_is_there(store, db)


def test_who_comes_to_fill_an_older_version_is_told(
    store: OpenStore, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer one is asked for between the statement and its filling, as where a maintainer answers late."""
    other = connected(store)
    perform = work.perform

    def late(coordinator: Coordinator, request: Request, *rest: Any) -> list[Outcome]:
        with monkeypatch.context() as patch:
            patch.setattr(work, "perform", perform)
            other.sql(STATEMENTS[0])
        return perform(coordinator, request, *rest)

    monkeypatch.setattr(work, "perform", late)
    with pytest.raises(ConflictError) as caught:
        db.sql(f"CREATE MATERIALIZED VIEW v AS {OLD}")
    assert caught.value.code == "VIEW_CHANGED"
    only_the_new_one_is_there(store, db)


def test_a_maintainer_that_fills_an_older_version_fills_the_newer_beside_it(store: OpenStore, db: Database) -> None:
    """The older one hangs, as in a function of its own, until the newer one serves."""
    other = connected(store)
    db.sql(f"CREATE MATERIALIZED VIEW v WITH NO DATA AS {OLD}")
    (old,) = db._engine.coordinator.catalog().views
    hangs, let_go, is_over = threading.Event(), threading.Event(), threading.Event()

    def at(point: str) -> None:
        if point == "publish:before" and f"in build-{old}" in threading.current_thread().name and not hangs.is_set():
            hangs.set()
            assert let_go.wait(SECONDS)

    def maintain() -> None:
        own = connected(store)._engine.coordinator
        with hooked(at):
            Maintainer(own, lanes=SideBySide(own)).run(is_over.is_set)

    thread = threading.Thread(target=maintain)
    thread.start()
    try:
        assert hangs.wait(SECONDS)
        other.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH NO DATA AS {NEW}")
        while other.status()["views"][0]["state"] != "ACTIVE":
            other._engine.clock.sleep(0.001)
        assert not let_go.is_set()
    finally:
        let_go.set()
        is_over.set()
        thread.join(SECONDS)
    only_the_new_one_is_there(store, db)


def test_a_view_that_is_renamed_while_a_newer_version_is_filled_keeps_its_new_name(db: Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {OLD}")
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH NO DATA AS {NEW}")
    db.sql("ALTER MATERIALIZED VIEW v RENAME TO w; CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    db.refresh()
    assert sorted(view["name"] for view in db.status()["views"]) == ["v", "w"]
    assert len(list(db.scan("v"))) == 40
    assert sorted((row["v"], row["n"]) for row in db.scan("w")) == [(v, 4) for v in range(5)]
