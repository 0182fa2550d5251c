"""DROP, SUSPEND and RENAME do all or nothing: nothing is left behind, also by whoever dies between two steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.database import definitions
from viewkeeper.database.connection import Database
from viewkeeper.errors import ConflictError, InputError
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.reader import head
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.store import changes
from viewkeeper.testing.faults import At
from viewkeeper.views import catalog as catalogs

HISTORY = {changes.LOG, changes.LOG_ROWS, changes.DDL, changes.META, catalogs.DATABASE}
Entries = dict[tuple[str, str], list[bytes]]


class Died(Exception):
    """What a process that dies does, in one that goes on."""


@pytest.fixture(params=["folder", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A store with a table ``u`` and two views of it."""
    if request.param == "memory":
        opened = Database(memory_store(), Settings(executor="local"))
    else:
        opened = vk.connect(tmp_path / "shop.vk", executor="local", durability="none")
    # However busy the machine is, no epoch takes so long that what it took is noted beside what is compared here.
    opened._engine.coordinator.ways.quick_seconds = float("inf")
    with opened as database:
        database.sql("CREATE TABLE u (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO u VALUES (1, 10), (2, 20)")
        database.sql("CREATE MATERIALIZED VIEW other AS SELECT k, v FROM u")
        database.sql("CREATE MATERIALIZED VIEW moving AS SELECT SUM(v) AS s FROM u")
        yield database


def entries(db: Database) -> Entries:
    """Return the keys of all that is stored but the catalog and the log, by space and sub-database."""
    found: Entries = {}
    for name, space in (("base", db._engine.store.base), ("views", db._engine.store.views)):
        with space.read() as txn:
            found |= {(name, d): list(txn.scan_keys(d)) for d in txn.databases() if d not in HISTORY and txn.count(d)}
    return found


def cut_off(db: Database, sql: str, where: str, then: Callable[..., object] | None = None) -> None:
    """Run a statement that dies in the function ``where``, after it has done what ``then`` does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(definitions, where, dying(then))
        with pytest.raises(Died):
            db.sql(sql)


def dying(then: Callable[..., object] | None = None) -> Callable[..., None]:
    """Return a function that dies, after it has done what ``then`` does."""

    def die(*arguments: Any, **named: Any) -> None:
        if then is not None:
            then(*arguments, **named)
        raise Died

    return die


def fill_table(db: Database) -> None:
    """Make a table with so many rows that some of its keys are sampled."""
    db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k))")
    db.put_batch("t", [{"k": k, "v": 5} for k in range(2000)])


def make_readers(db: Database) -> None:
    """Make views of ``t`` and on them in every state, and two that are being replaced: one leaves ``t``, one comes."""
    for sql in (
        "CREATE MATERIALIZED VIEW direct AS SELECT k, v FROM t WHERE k < 5",
        "CREATE MATERIALIZED VIEW above AS SELECT v, COUNT(*) AS n FROM direct GROUP BY v",
        "CREATE MATERIALIZED VIEW joined REFRESH ON DEMAND AS SELECT a.v, u.k FROM above a JOIN u ON u.k = a.n",
        "CREATE MATERIALIZED VIEW failed AS SELECT k, 100 DIV v AS q FROM t WHERE k < 3",
        "CREATE MATERIALIZED VIEW leaving AS SELECT MAX(v) AS m FROM t",
        "CREATE MATERIALIZED VIEW still AS SELECT MIN(v) AS m FROM t",
        "ALTER MATERIALIZED VIEW still SUSPEND",
        "CREATE MATERIALIZED VIEW waiting WITH NO DATA AS SELECT v FROM direct",
    ):
        db.sql(sql)
    with hooked(At("publish:before", 1, dying(), times=2)):
        for sql in ("leaving AS SELECT MAX(v) AS m FROM u", "moving AS SELECT SUM(v) AS s FROM t"):
            with pytest.raises(Died):
                db.sql(f"ALTER MATERIALIZED VIEW {sql}")
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    coordinator = db._engine.coordinator
    coordinator.catch_up("continuous", coordinator.head())
    states = {view["name"]: view["state"] for view in db.status()["views"]}
    assert (states["failed"], states["waiting"], states["still"]) == ("FAILED", "BUILDING", "SUSPENDED")
    assert (len(states), len(coordinator.catalog().views)) == (9, 11)


def check_others(db: Database) -> None:
    db.put("u", {"k": 3, "v": 30})
    db.refresh()
    assert sorted(db.views()) == ["moving", "other"]
    assert [row["v"] for row in db.scan("other")] == [10, 20, 30]
    assert list(db.scan("moving")) == [{"s": 60}]
    assert {view["state"] for view in db.status()["views"]} == {"ACTIVE"}


def test_drop_table_leaves_nothing_but_catalog_and_log(db: Database) -> None:
    before = entries(db)
    fill_table(db)
    made = {name for name, keys in entries(db).items() if keys != before.get(name)}
    assert ("base", "samples") in made
    assert len(made) == 2
    db.sql("DROP TABLE t")
    assert entries(db) == before
    fill_table(db)
    db.sql("DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS t")
    assert entries(db) == before


def test_readers_of_a_table_that_is_dropped(db: Database) -> None:
    """A moment of before shows it to the end; a scan in short transactions says that it is gone."""
    fill_table(db)
    table, base = db._engine.coordinator.catalog().table("t"), db._engine.store.base
    with base.read() as txn:
        position = head(txn)
    scan = scan_as_of(base, table, position, batch_rows=1000)
    with db.snapshot() as moment:
        assert moment.get("t", 1) == {"k": 1, "v": 5}
        assert next(scan).num_rows == 1000
        db.sql("DROP TABLE t")
        assert len(list(moment.scan("t"))) == 2000
    with pytest.raises(ConflictError, match=r"TABLE_CHANGED.*'t' was dropped"):
        next(scan)
    for name in ("t", "T"):
        with pytest.raises(InputError, match="NOT_FOUND"):
            db.get(name, 1)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_drop_that_is_cut_off_has_dropped_nothing(db: Database, is_late: bool) -> None:
    fill_table(db)
    db.sql("CREATE MATERIALIZED VIEW direct AS SELECT k, v FROM t WHERE k < 5")
    before = entries(db)
    cut_off(db, "DROP TABLE t CASCADE", "drop_rows", definitions.drop_rows if is_late else None)
    assert entries(db) == before
    db.put("t", {"k": 1, "v": 6})
    db.refresh()
    assert db.get("t", 1999) == {"k": 1999, "v": 5}
    assert db.get("direct", 1) == {"k": 1, "v": 6}


def test_cascade_drops_what_reads_the_table_in_one_step_and_nothing_else(db: Database) -> None:
    before = entries(db)
    fill_table(db)
    make_readers(db)
    coordinator = db._engine.coordinator
    version = coordinator.catalog().version
    with pytest.raises(InputError, match="TABLE_IN_USE") as refused:
        db.sql("DROP TABLE t")
    told = refused.value.message.partition("Views read table 't': ")[2].partition(". Drop them first")[0]
    # Also a view whose new version, which is being filled, reads it.
    assert sorted(told.split(", ")) == ["above", "direct", "failed", "joined", "leaving", "moving", "still", "waiting"]
    assert coordinator.catalog().version == version
    db.sql("DROP TABLE t CASCADE")
    assert coordinator.catalog().version == version + 1
    assert sorted(view.name for view in coordinator.catalog().views.values()) == ["moving", "other"]
    assert entries(db) == before
    check_others(db)


def doubled(v: int) -> int:
    return 2 * v


def tripled(v: int) -> int:
    return 3 * v


@pytest.mark.parametrize("sql", ["DROP MATERIALIZED VIEW called", "DROP TABLE t CASCADE"])
def test_a_replaced_function_goes_with_the_last_view_that_calls_it(db: Database, sql: str) -> None:
    """Both versions of the view go: the one that serves by the old function, and the one that is being filled."""
    before = entries(db)
    db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 5)")
    db.register_function("f", doubled, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW called AS SELECT k, f(v) AS v FROM t")
    with hooked(At("publish:before", 1, dying())), pytest.raises(Died):
        db.register_function("f", tripled, "INT", deterministic=True, or_replace=True)
    coordinator = db._engine.coordinator
    assert len(coordinator.catalog().functions) == 2
    db.sql(sql)
    assert len(coordinator.catalog().functions) == 1
    db.sql("DROP TABLE IF EXISTS t; DROP FUNCTION f")
    assert entries(db) == before


def test_who_dies_after_the_step_of_cascade_leaves_state_to_the_next(db: Database) -> None:
    before = entries(db)
    fill_table(db)
    make_readers(db)
    cut_off(db, "DROP TABLE t CASCADE", "remove_state")
    assert sorted(db.views()) == ["moving", "other"]
    db.refresh()
    assert entries(db) == before
    check_others(db)


def test_who_dies_while_a_view_is_dropped_leaves_its_state_to_the_next(db: Database) -> None:
    before = entries(db)
    for sql in ("ON DEMAND AS SELECT MAX(v) AS m FROM u", "EVERY 1 HOUR AS SELECT v, COUNT(*) AS n FROM u GROUP BY v"):
        db.sql(f"CREATE MATERIALIZED VIEW gone REFRESH {sql}")
        cut_off(db, "DROP MATERIALIZED VIEW gone", "remove_state")
        with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
            list(db.scan("gone"))
        assert entries(db) != before
        db.refresh()
        assert entries(db) == before
    check_others(db)


def test_who_dies_while_a_view_is_suspended_leaves_its_state_to_the_next(db: Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW still REFRESH ON DEMAND AS SELECT v, COUNT(*) AS n FROM u GROUP BY v")
    db.put("u", {"k": 3, "v": 30})
    db.refresh()
    shown = list(db.scan("still"))
    left: list[tuple[Any, ...]] = []
    cut_off(db, "ALTER MATERIALIZED VIEW still SUSPEND", "remove_state", lambda *arguments, **_: left.append(arguments))
    before = entries(db)
    db.put("u", {"k": 4, "v": 40})
    db.refresh()
    assert list(db.scan("still")) == shown
    swept = entries(db)
    assert set(swept) < set(before)
    definitions.remove_state(*left[0], keep_rows=True)
    assert entries(db) == swept
    db.sql("ALTER MATERIALIZED VIEW still RESUME")
    assert [row["v"] for row in db.scan("still")] == [10, 20, 30, 40]


def test_who_dies_while_a_view_is_renamed_leaves_it_to_the_next_to_tell_others(db: Database) -> None:
    assert db.get("other", 1) == {"k": 1, "v": 10}
    cut_off(db, "ALTER MATERIALIZED VIEW other RENAME TO another", "note_names")
    db.refresh()
    with pytest.raises(InputError, match="TABLE_OR_VIEW_NOT_FOUND"):
        db.get("other", 1)
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT k, v + 1 AS v FROM u")
    assert (db.get("other", 1), db.get("another", 1)) == ({"k": 1, "v": 11}, {"k": 1, "v": 10})
