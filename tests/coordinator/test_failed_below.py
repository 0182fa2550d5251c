"""Views over a FAILED one of another cadence: they follow it in epochs of any size, and show no more than it does."""

from __future__ import annotations

from random import Random

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import ViewFailed
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import CadenceRecord, read_cadences
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

SETUP = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v INT);
CREATE TABLE u (k BIGINT PRIMARY KEY);
CREATE MATERIALIZED VIEW below REFRESH EVERY 1 HOUR AS SELECT k, 10 / v AS q FROM t;
CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM below;
CREATE MATERIALIZED VIEW top AS SELECT n + 1 AS m FROM above;
CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM u
"""


def shown(db: Database) -> dict[str, tuple[object, str, tuple[str, ...]]]:
    """Return what views show, their states and why they fail."""
    views = {view["name"]: view for view in db.status()["views"]}
    rows = {name: next(iter(db.scan(name))) for name in ("above", "top", "beside")}
    reasons = {name: tuple(failure["reason"] for failure in views[name]["failures"]) for name in rows}
    return {name: (*row.values(), views[name]["state"], reasons[name]) for name, row in rows.items()}


def cadences(db: Database) -> list[CadenceRecord]:
    with db._engine.store.views.read() as txn:
        return read_cadences(txn)


def test_a_view_over_a_failed_one_follows_in_small_epochs_and_is_never_ahead() -> None:
    store = memory_store()
    db, other = (Database(store, Settings(executor="local", epoch_rows_max=rows)) for rows in (11, 1_000))
    db.sql(SETUP)
    db.put_batch("t", [{"k": k, "v": 1} for k in range(5)])
    db.refresh()
    for first in range(10, 60, 10):
        db.put_batch("t", [{"k": k, "v": k - 45} for k in range(first, first + 10)])
        db.put("u", {"k": first})
    assert other._engine.coordinator.epoch("every-3600") is not None
    own, sizes, seen = db._engine.coordinator, list[int](), list[object]()
    while (outcome := own.epoch("continuous")) is not None:
        sizes.append(outcome.log_rows)
        now = shown(db)
        assert now["beside"] == (len(seen) + 1, "ACTIVE", ())
        seen.append((now["above"], now["top"]))
    assert max(sizes) <= 11
    waiting = ((5, "FAILED", ("READS_FAILED_VIEW",)), (6, "FAILED", ("READS_FAILED_VIEW",)))
    failing = ((5, "FAILED", ("DIVIDE_BY_ZERO",)), (6, "FAILED", ("DIVIDE_BY_ZERO",)))
    assert seen == [*[waiting] * 3, *[failing] * 2]
    db.put("t", {"k": 45, "v": 1})
    db.refresh()
    assert shown(db) == {"above": (55, "ACTIVE", ()), "top": (56, "ACTIVE", ()), "beside": (5, "ACTIVE", ())}


def test_a_view_is_refreshed_to_a_position_that_the_failed_one_has_passed() -> None:
    """As where somebody asks for it while a maintainer goes on with the other."""
    db = Database(memory_store(), Settings(executor="local"))
    db.sql(SETUP.replace("CREATE MATERIALIZED VIEW above AS", "CREATE MATERIALIZED VIEW above REFRESH ON DEMAND AS"))
    db.put_batch("t", [{"k": k, "v": 1} for k in range(5)])
    db.refresh()
    coordinator = db._engine.coordinator
    asked = db.put("t", {"k": 5, "v": 1}).sequence_number
    db.put("t", {"k": 6, "v": 0})
    assert coordinator.epoch("every-3600") is not None
    (above,) = (view["cadence"] for view in db.status()["views"] if view["name"] == "above")
    coordinator.catch_up(above, asked)
    record = coordinator.record(above)
    assert record is not None
    assert record.position == asked
    assert shown(db)["above"] == (5, "FAILED", ("READS_FAILED_VIEW",))
    db.put("t", {"k": 6, "v": 1})
    db.refresh()
    assert shown(db)["above"] == (7, "ACTIVE", ())


def test_a_view_that_joins_is_not_ahead_of_one_that_fails_meanwhile() -> None:
    """While it waits for the cadence below, another process runs an epoch of that beyond, to where it fails."""
    store = memory_store()
    db, other = (Database(store, Settings(executor="local")) for _ in range(2))
    db.sql(SETUP.partition("CREATE MATERIALIZED VIEW above")[0])
    db.put_batch("t", [{"k": k, "v": 1} for k in range(5)])
    db.refresh()
    db.put("t", {"k": 5, "v": 1})
    values = [1, 0]

    def at(point: str) -> None:
        record = next((r for r in cadences(db) if r.name.startswith("build-")), None)
        if point == "publish:before" and record is not None and record.build is None and values:
            other.put("t", {"k": 8 - len(values), "v": values.pop(0)})
            if not values:
                assert other._engine.coordinator.epoch("every-3600") is not None

    with hooked(at), pytest.raises(ViewFailed, match="READS_FAILED_VIEW"):
        db.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM below")
    assert not values
    positions = {view["name"]: (view["state"], view["position"]) for view in db.status()["views"]}
    assert positions["above"] == ("FAILED", -1)
    db.put("t", {"k": 7, "v": 1})
    db.refresh()
    assert list(db.scan("above")) == [{"n": 8}]


CHAIN = """
CREATE TABLE t (k BIGINT PRIMARY KEY, v INT);
CREATE MATERIALIZED VIEW a REFRESH EVERY 1 HOUR AS SELECT k, 10 div v AS q FROM t;
CREATE MATERIALIZED VIEW b AS SELECT COUNT(*) AS n, SUM(q) AS s FROM a;
CREATE MATERIALIZED VIEW c REFRESH EVERY 2 HOURS AS SELECT n + 1 AS n FROM b;
CREATE MATERIALIZED VIEW d AS SELECT n, s + 1 AS s FROM b
"""


class _Chain:
    """Views over each other in three cadences, and what the table held at each position."""

    def __init__(self) -> None:
        store = memory_store()
        self.dbs = [Database(store, Settings(executor="local", epoch_rows_max=rows)) for rows in (1, 3, 1_000)]
        self.db = self.dbs[0]
        self.db.sql(CHAIN)
        self.history: dict[int, dict[int, int]] = {0: {}}

    def put(self, key: int, value: int) -> None:
        now = {**self.history[max(self.history)], key: value}
        self.history[self.db.put("t", {"k": key, "v": value}).sequence_number] = now

    def shows_one_moment(self) -> bool:
        """Return whether each view shows what it should at its position, and none is ahead of what it reads."""
        positions = {view["name"]: view["position"] for view in self.db.status()["views"]}
        a, b, c, d = (-1 if positions[name] is None else positions[name] for name in "abcd")
        return a >= b >= max(c, d) and all(
            self._is_right(name, at) for name, at in zip("abcd", (a, b, c, d), strict=True)
        )

    def _is_right(self, name: str, position: int) -> bool:
        if position < 0:
            return True
        held = self.history[max(at for at in self.history if at <= position)]
        quotients = {key: 10 // value for key, value in held.items()}
        total = sum(quotients.values()) if held else None
        wanted = {
            "a": [{"k": key, "q": quotient} for key, quotient in sorted(quotients.items())],
            "b": [{"n": len(held), "s": total}],
            "c": [{"n": len(held) + 1}],
            "d": [{"n": len(held), "s": None if total is None else total + 1}],
        }
        return sorted(self.db.scan(name), key=lambda row: row.get("k", 0)) == wanted[name]


@pytest.mark.parametrize("seed", range(6))
def test_histories_of_views_over_failed_ones(seed: int) -> None:
    chance, chain = Random(seed), _Chain()
    cadences = sorted({view["cadence"] for view in chain.db.status()["views"]})
    for _ in range(50):
        if chance.random() < 0.5:
            chain.put(chance.randrange(6), chance.choice([0, 1, 1, 2, 2, 3, 5]))
        else:
            chance.choice(chain.dbs)._engine.coordinator.epoch(chance.choice(cadences))
            assert chain.shows_one_moment()
    for key in range(6):
        chain.put(key, 1)
    chain.db.refresh()
    assert chain.shows_one_moment()
    assert list(chain.db.scan("c")) == [{"n": 7}]
