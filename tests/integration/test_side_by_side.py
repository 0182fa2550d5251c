"""Cadences, fills and requests go on beside each other: whatever of them hangs, the quick views stay fresh.

What hangs is a function of the test's own, called on some row: it says that it has been called, and waits to be let go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.cli.maintaining import MaintainingThread
from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.coordinator.core import Outcome
from viewkeeper.database.engine import Engine
from viewkeeper.errors import ViewkeeperError
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings

pytestmark = pytest.mark.slow

SECONDS = 120.0
LOCAL = {"executor": "local", "durability": "none"}


def until(condition: Callable[[], bool]) -> None:
    end = SYSTEM_CLOCK.monotonic_seconds() + SECONDS
    while not condition():
        assert SYSTEM_CLOCK.monotonic_seconds() < end
        SYSTEM_CLOCK.sleep(0.01)


class _Gate:
    """A function that waits, called ``held``, by two files that processes share; the one tells by whom it is called."""

    def __init__(self, folder: Path) -> None:
        self.arrived, self.open = folder / "arrived", folder / "open"

    def register(self, db: vk.Database) -> None:
        arrived, opened = str(self.arrived), str(self.open)

        def held(value: int) -> int:
            import sys
            from pathlib import Path

            from viewkeeper.clock import SYSTEM_CLOCK

            if value == 13 and not Path(opened).exists():
                Path(arrived).write_text("spark" if "pyspark.worker" in sys.modules else "local", encoding="utf-8")
                while not Path(opened).exists():
                    SYSTEM_CLOCK.sleep(0.005)
            return value

        db.register_function("held", held, "INT", deterministic=True)

    def wait(self) -> None:
        until(self.arrived.exists)

    @property
    def caller(self) -> str:
        """By which executor it was called."""
        return self.arrived.read_text(encoding="utf-8")

    def close(self) -> None:
        """Let the next call wait."""
        self.arrived.unlink()
        self.open.unlink()


TABLES = """
CREATE TABLE quickly (k BIGINT PRIMARY KEY, v INT);
CREATE TABLE slowly (k BIGINT PRIMARY KEY, v INT);
CREATE MATERIALIZED VIEW quick AS SELECT v, COUNT(*) AS n FROM quickly GROUP BY v;
CREATE MATERIALIZED VIEW often REFRESH EVERY 0.05 SECONDS AS SELECT COUNT(*) AS n FROM quickly;
CREATE MATERIALIZED VIEW asked REFRESH ON DEMAND AS SELECT MAX(k) AS k FROM quickly
"""


def stay_fresh(db: vk.Database, first: int) -> None:
    """Write, and see views of three cadences show it, one of them by a request."""
    for key in range(first, first + 10):
        position = db.put("quickly", {"k": key, "v": 0})
        db.wait_for(position, "quick", "often", timeout_seconds=SECONDS)
    assert db.get("quick", 0) == {"v": 0, "n": first + 10}
    db.refresh("asked")
    assert list(db.scan("asked")) == [{"k": first + 9}]


def is_behind(db: vk.Database, view: str, position: vk.Position) -> bool:
    (found,) = (v for v in db.status()["views"] if v["name"] == view)
    return bool(found["position"] < position.sequence_number)


def test_quick_views_stay_fresh_beside_an_epoch_that_hangs(tmp_path: Path) -> None:
    gate = _Gate(tmp_path)
    with vk.connect(str(tmp_path / "store"), **LOCAL) as db:
        gate.register(db)
        db.sql(TABLES)
        db.sql("CREATE MATERIALIZED VIEW slow REFRESH EVERY 0.05 SECONDS AS SELECT k, held(v) AS v FROM slowly")
        with db.maintain():
            position = db.put("slowly", {"k": 1, "v": 13})
            gate.wait()
            stay_fresh(db, 0)
            # A view of another cadence is made meanwhile, and dropped again.
            db.sql("CREATE MATERIALIZED VIEW more AS SELECT k FROM quickly")
            assert len(list(db.scan("more"))) == 10
            stay_fresh(db, 10)
            assert len(list(db.scan("more"))) == 20
            db.sql("DROP MATERIALIZED VIEW more")
            assert is_behind(db, "slow", position)
            gate.open.touch()
            db.wait_for(position, "slow", timeout_seconds=SECONDS)
        assert list(db.scan("slow")) == [{"k": 1, "v": 13}]


def test_quick_views_stay_fresh_beside_a_fill_that_hangs(tmp_path: Path) -> None:
    gate, path = _Gate(tmp_path), str(tmp_path / "store")
    with vk.connect(path, **LOCAL) as db:
        gate.register(db)
        db.sql(TABLES)
        db.put_batch("slowly", [{"k": k, "v": k} for k in range(20)])
        with db.maintain():
            made = threading.Thread(target=_create, args=(path,))
            made.start()
            gate.wait()
            stay_fresh(db, 0)
            # The same base table's other views, too, and one that takes its place in the same cadence.
            db.sql("CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM slowly")
            db.wait_for(db.put("slowly", {"k": 20, "v": 20}), "beside", timeout_seconds=SECONDS)
            assert list(db.scan("beside")) == [{"n": 21}]
            assert "filled" not in {v["name"] for v in db.status()["views"] if v["state"] == "ACTIVE"}
            gate.open.touch()
            made.join(SECONDS)
            db.wait_for(db.put("slowly", {"k": 21, "v": 21}), timeout_seconds=SECONDS)
        assert sorted(row["k"] for row in db.scan("filled")) == list(range(22))


def _create(path: str) -> None:
    with vk.connect(path, **LOCAL) as other:
        other.sql("CREATE MATERIALIZED VIEW filled AS SELECT k, held(v) AS v FROM slowly")


@pytest.mark.spark
def test_quick_views_stay_fresh_beside_an_epoch_and_a_fill_by_spark_that_hang(tmp_path: Path) -> None:
    gate, path = _Gate(tmp_path), str(tmp_path / "store")
    settings: dict[str, Any] = {"durability": "none", "local_rows_max": 50}
    with vk.connect(path, **settings) as db:
        gate.register(db)
        db.sql(TABLES)
        db.sql("CREATE MATERIALIZED VIEW slow REFRESH EVERY 0.5 SECONDS AS SELECT k, held(v) AS v FROM slowly")
        with db.maintain():
            position = db.put_batch("slowly", [{"k": k, "v": k} for k in range(100)])
            gate.wait()
            stay_fresh(db, 0)
            assert is_behind(db, "slow", position)
            gate.open.touch()
            db.wait_for(position, "slow", timeout_seconds=SECONDS)
            # Its status may tell of a later epoch already, of no rows.
            assert gate.caller == "spark"
            assert len(list(db.scan("slow"))) == 100
            gate.close()
            made = threading.Thread(target=_create, args=(path,))
            made.start()
            gate.wait()
            stay_fresh(db, 10)
            assert "filled" not in {v["name"] for v in db.status()["views"] if v["state"] == "ACTIVE"}
            gate.open.touch()
            made.join(SECONDS)
        assert gate.caller == "spark"
        assert sorted(row["k"] for row in db.scan("filled")) == list(range(100))


QUERIES = {
    "counts": "SELECT v, COUNT(*) AS n, SUM(k) AS s FROM quickly GROUP BY v",
    "joined": "SELECT q.k, s.v FROM quickly q JOIN slowly s ON q.k = s.k",
    "most": "SELECT v, MAX(k) AS k FROM slowly GROUP BY v",
    "above": "SELECT COUNT(*) AS n, SUM(n) AS s FROM counts",
    "ranked": "SELECT k, v, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k DESC) AS r FROM quickly",
}
CADENCES = ("CONTINUOUS", "EVERY 0.01 SECONDS", "EVERY 0.03 SECONDS", "ON DEMAND")
EXPECTED = {
    "VIEW_EXISTS", "VIEW_NOT_FOUND", "VIEW_IN_USE", "VIEW_SUSPENDED", "VIEW_NOT_ACTIVE", "TABLE_OR_VIEW_NOT_FOUND",
    "VIEW_CHANGED", "VIEW_BUILDING", "VIEW_NOT_FILLED", "NEEDS_REBUILD", "NOT_A_VIEW",
}  # fmt: skip


def assert_right(db: vk.Database, name: str) -> None:
    shown = sorted(tuple(row.values()) for row in db.scan(name))
    assert shown == sorted(tuple(row.values()) for row in db.sql(QUERIES[name]).rows()), name


@pytest.mark.parametrize("seed", range(2))
def test_views_come_and_go_while_everything_goes_on_side_by_side(tmp_path: Path, seed: int) -> None:
    """Three connections change tables and views at once, beside a maintainer; afterwards every view is right."""
    path, chance = str(tmp_path / "store"), Random(seed)
    outcomes: list[Outcome] = []
    complaints: list[ViewkeeperError] = []
    settings = Settings.of({**LOCAL, "epoch_rows_max": 40, "build_rows": 30})
    with vk.connect(path, **LOCAL) as db:
        db.sql("CREATE TABLE quickly (k BIGINT PRIMARY KEY, v INT); CREATE TABLE slowly (k BIGINT PRIMARY KEY, v INT)")
        store = open_store(path, settings, create=False)
        assert store.lock is not None
        store.lock.acquire()
        thread = MaintainingThread(Engine(store, settings).coordinator, outcomes.append, complaints.append)
        with thread:
            seeds = [chance.randrange(1 << 30) for _ in range(3)]
            workers = [_Worker(path, each) for each in seeds]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(SECONDS)
            assert [worker.unexpected for worker in workers] == [[], [], []]
            assert not thread.wait(0), "it goes on"
        store.lock.release()
        store.close()
        db.refresh()
        views = db.status()["views"]
        assert len(views) >= 2
        for view in views:
            if view["state"] == "ACTIVE":
                assert_right(db, view["name"])
        assert {error.code for error in complaints} <= EXPECTED
        assert {outcome.cadence for outcome in outcomes} >= {"continuous"}


class _Worker(threading.Thread):
    """A connection that changes tables and views at random."""

    def __init__(self, path: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._chance = Random(seed)
        self.unexpected: list[str] = []

    def run(self) -> None:
        with vk.connect(self._path, **LOCAL) as db:
            for _ in range(60):
                try:
                    self._act(db)
                except ViewkeeperError as error:
                    if error.code not in EXPECTED:
                        self.unexpected.append(str(error))

    def _act(self, db: vk.Database) -> None:
        chance = self._chance
        name = chance.choice(list(QUERIES))
        create = f"MATERIALIZED VIEW {name} REFRESH {chance.choice(CADENCES)} AS {QUERIES[name]}"
        statements = [
            f"CREATE {create}",
            f"CREATE OR REPLACE {create}",
            f"DROP MATERIALIZED VIEW {name}",
            f"ALTER MATERIALIZED VIEW {name} SUSPEND",
            f"ALTER MATERIALIZED VIEW {name} RESUME",
            f"REFRESH MATERIALIZED VIEW {name}",
            f"REFRESH MATERIALIZED VIEW {name} FULL",
        ]
        number = chance.randrange(24)
        if number < len(statements):
            db.sql(statements[number])
        elif number < 10:
            db.sql(statements[0])
        else:
            rows = [{"k": chance.randrange(200), "v": chance.randrange(5)} for _ in range(chance.randrange(1, 30))]
            position = db.put_batch(chance.choice(("quickly", "slowly")), rows)
            if chance.random() < 0.3:
                db.wait_for(position, timeout_seconds=SECONDS)
