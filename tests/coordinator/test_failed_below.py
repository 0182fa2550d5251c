"""Views over a FAILED one of another cadence: they follow it in epochs of any size, and show no more than it does."""

from __future__ import annotations

from viewkeeper.database.connection import Database
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
