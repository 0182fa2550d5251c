"""Connections that know a table as it was before another one altered it: they show it as it is, or say clearly why not.

Two of the changes keep the length of a stored row (DROP a column, ADD another of its type), so that only the row's
schema version tells a reader of before that it must not read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.database.reading import Names, Reader
from viewkeeper.errors import ConflictError, InputError
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.reader import head
from viewkeeper.pipeline.epoch import plan_epoch
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.store.model import Table
from viewkeeper.views.reads import StoredView

Connect = Callable[[], Database]
Row = dict[str, Any]

LAYOUTS = {"structs": "", "msgpack": ", s STRING DEFAULT 's'"}
CHANGES: dict[str, tuple[str, Callable[[int], Row]]] = {
    "renamed": ("ALTER TABLE t RENAME COLUMN b TO z", lambda v: {"a": v, "z": v + 1}),
    "dropped": ("ALTER TABLE t DROP COLUMN b", lambda v: {"a": v}),
    "added": ("ALTER TABLE t ADD COLUMN c INT DEFAULT 7", lambda v: {"a": v, "b": v + 1, "c": v + 2}),
    "wider": ("ALTER TABLE t ALTER COLUMN b TYPE BIGINT", lambda v: {"a": v, "b": v + (1 << 40)}),
    "as long": (
        "ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
        lambda v: {"a": v, "c": v + 2},
    ),
}
SHOWN_OF_OLD: dict[str, Row] = {
    "renamed": {"a": 10, "z": 11},
    "dropped": {"a": 10},
    "added": {"a": 10, "b": 11, "c": 7},
    "wider": {"a": 10, "b": 11},
    "as long": {"a": 10, "c": 7},
}


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    opened: list[Database] = []

    def one() -> Database:
        opened.append(vk.connect(tmp_path / "shop.vk", executor="local", durability="none"))
        return opened[-1]

    yield one
    for database in reversed(opened):
        database.close()


@pytest.fixture(params=LAYOUTS)
def db(connect: Connect, request: pytest.FixtureRequest) -> Database:
    db = connect()
    db.sql(f"CREATE TABLE t (k BIGINT, a INT, b INT{LAYOUTS[request.param]}, PRIMARY KEY (k))")
    db.sql("INSERT INTO t (k, a, b) VALUES (1, 10, 11), (2, 10, 11), (3, 10, 11)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, a FROM t")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT SUM(a) AS s, COUNT(*) AS n FROM t")
    return db


def bare(row: Row | None) -> Row | None:
    """Return a row without the text that only makes rows msgpack."""
    return None if row is None else {name: value for name, value in row.items() if name != "s"}


def alter(other: Database, change: str) -> None:
    """Change the table and write row 1 as it is then; rows 2 and 3 stay as they were stored."""
    statements, row = CHANGES[change]
    other.sql(statements)
    other.put("t", {"k": 1, **row(20)})


def expected(change: str) -> list[Row]:
    return [{"k": 1, **CHANGES[change][1](20)}] + [{"k": k, **SHOWN_OF_OLD[change]} for k in (2, 3)]


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_to_read_shows_the_table_as_it_is(db: Database, connect: Connect, change: str) -> None:
    for key in (1, 2, 1):
        assert bare(db.get("t", key)) == {"k": key, "a": 10, "b": 11}
    with db.snapshot() as before:
        assert before.get("t", 1) is not None
        alter(connect(), change)
        wanted = expected(change)
        assert [bare(db.get("t", key)) for key in (1, 2, 3, 1)] == [*wanted, wanted[0]]
        assert [bare(row) for row in db.multi_get("t", [1, 2, 3])] == wanted
        assert [bare(row) for row in db.scan("t")] == wanted
        assert [bare(row) for row in db.table("t").to_arrow().to_pylist()] == wanted
        assert [bare(row) for row in db.sql("SELECT * FROM t ORDER BY k").rows()] == wanted
        assert [bare(row) for row in before.scan("t")] == [{"k": k, "a": 10, "b": 11} for k in (1, 2, 3)]
        assert [bare(row) for row in before.multi_get("t", [1])] == [{"k": 1, "a": 10, "b": 11}]


@pytest.mark.parametrize("change", CHANGES)
def test_writes_are_made_for_the_table_as_it_is(db: Database, connect: Connect, change: str) -> None:
    db.put("t", {"k": 3, "a": 10, "b": 11})
    with db.transaction() as noted:
        noted.put("t", {"k": 4, "a": 30})
        noted.update("t", 1, {"a": 21})
        alter(connect(), change)
    new = CHANGES[change][1]
    db.put("t", {"k": 5, **new(50)})
    db.put_batch("t", [{"k": 6, **new(60)}, {"k": 7, **new(70)}])
    db.sql("UPDATE t SET a = a + 1 WHERE k = 2")
    rows = {row["k"]: bare(row) for row in db.scan("t")}
    assert rows[1] == {"k": 1, **new(20), "a": 21}
    assert rows[2] == {"k": 2, **SHOWN_OF_OLD[change], "a": 11}
    assert rows[4] is not None
    assert rows[4]["a"] == 30
    assert [rows[5], rows[6], rows[7]] == [{"k": k, **new(10 * k)} for k in (5, 6, 7)]
    if "b" not in new(0):
        with pytest.raises(InputError, match=r"UNKNOWN_COLUMN.*'b'"), db.transaction() as noted:
            noted.put("t", {"k": 8, "a": 1, "b": 2})
        assert db.get("t", 8) is None


class Interrupted(Names):
    """Names between whose answer and the reader's moment something happens, once."""

    def __init__(self, db: Database, happens: Callable[[], None]) -> None:
        super().__init__(db._engine)
        self._happens: list[Callable[[], None]] = [happens]

    def find_with_version(self, name: str) -> tuple[Table | StoredView, int]:
        found = super().find_with_version(name)
        if self._happens:
            self._happens.pop()()
        return found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", ["get", "multi_get", "scan", "arrow"])
def test_a_change_between_name_and_moment(db: Database, connect: Connect, change: str, read: str) -> None:
    other = connect()
    with Reader(db._engine, Interrupted(db, lambda: alter(other, change))) as reader:
        if read == "get":
            found = [reader.get("t", 1)]
        elif read == "multi_get":
            found = reader.multi_get("t", [1])
        elif read == "scan":
            found = list(reader.scan("t", None, None, None, False, 1))
        else:
            found = reader.arrow("t").to_pylist()[:1]
    assert [bare(row) for row in found] == expected(change)[:1]


def long_scan(db: Database) -> Iterator[list[Row]]:
    """Read the table in short transactions, as queries over large tables do, under the catalog of the beginning."""
    base = db._engine.store.base
    table = db._engine.coordinator.catalog().table("t")
    with base.read() as txn:
        position = head(txn)
    for batch in scan_as_of(base, table, position, batch_rows=2):
        yield [bare(row) or {} for row in batch.to_pylist()]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("count", [1, 400])
def test_a_long_scan_that_meets_newer_rows_says_so(db: Database, connect: Connect, change: str, count: int) -> None:
    """The log's pieces hold rows as stored where they are few, Arrow batches where they are many."""
    other = connect()
    old = [{"k": k, "a": 10, "b": 11} for k in (1, 2, 3)]
    scan = long_scan(db)
    assert next(scan) == old[:2]
    statements, new = CHANGES[change]
    other.sql(statements)
    other.put_batch("t", [{"k": k, **new(20)} for k in range(3, 3 + count)])
    if change == "renamed":
        assert list(scan) == [old[2:]]
        return
    with pytest.raises(ConflictError, match=r"TABLE_CHANGED.*'t'.*run it again"):
        list(scan)
    assert len([row for batch in long_scan(db) for row in batch]) == 2 + count


def test_a_long_scan_of_rows_that_stay_goes_on(db: Database, connect: Connect) -> None:
    other = connect()
    scan = long_scan(db)
    assert len(next(scan)) == 2
    other.sql("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    assert list(scan) == [[{"k": 3, "a": 10, "b": 11}]]


def check_views(db: Database) -> None:
    db.refresh()
    rows = list(db.scan("t"))
    assert list(db.scan("v")) == [{"k": row["k"], "a": row["a"]} for row in rows]
    assert list(db.scan("n")) == [{"s": sum(row["a"] for row in rows), "n": len(rows)}]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["publish:before", "publish:after"])
def test_an_epoch_of_another_process_during_the_change(db: Database, connect: Connect, change: str, where: str) -> None:
    other, maintainer = connect(), connect()
    coordinator = maintainer._engine.coordinator
    waiting = [lambda: alter(other, change)]

    def hook(name: str) -> None:
        if name == where and waiting:
            waiting.pop()()

    db.put("t", {"k": 9, "a": 90, "b": 91})
    with hooked(hook):
        coordinator.catch_up("continuous", coordinator.head())
    assert not waiting
    check_views(db)
    assert db.get("v", 1) == {"k": 1, "a": 20}


@pytest.mark.parametrize("change", CHANGES)
def test_an_epoch_that_is_planned_under_a_catalog_of_before(db: Database, connect: Connect, change: str) -> None:
    """The DDL lies behind what is published, so nothing but the rows' version tells that the catalog is too old."""
    other, maintainer = connect(), connect()
    coordinator = maintainer._engine.coordinator
    members = coordinator.members(coordinator.catalog(), "continuous")
    assert members is not None
    alter(other, change)
    other.refresh()
    other.put("t", {"k": 2, **CHANGES[change][1](30)})
    with coordinator.base.read() as base, coordinator.views.read() as views:
        plan = plan_epoch(base, views, members, 1000)
    assert plan is not None
    with pytest.raises(ConflictError, match="EPOCH_SUPERSEDED"):
        coordinator.run(plan, coordinator.clock.monotonic_seconds())
    coordinator.catch_up("continuous", coordinator.head())
    assert [row["a"] for row in db.scan("v")] == [20, 30, 10]
    check_views(db)


@pytest.mark.parametrize("change", CHANGES)
def test_a_view_that_is_filled_meanwhile(connect: Connect, tmp_path: Path, change: str) -> None:
    """The fill reads tables as of its beginning, in pieces; each piece may meet rows of a newer version."""
    other = connect()
    other.sql("CREATE TABLE t (k BIGINT, a INT, b INT, PRIMARY KEY (k))")
    other.put_batch("t", [{"k": k, "a": 10, "b": 11} for k in range(1, 60)])
    pieces = [0]

    def hook(name: str) -> None:
        pieces[0] += name == "publish:before"
        if name == "publish:before" and pieces[0] == 3:
            alter(other, change)
            other.put_batch("t", [{"k": k, **CHANGES[change][1](20)} for k in range(30, 70)])

    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none", build_rows=10) as db:
        with hooked(hook):
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, a FROM t")
            db.sql("CREATE MATERIALIZED VIEW n AS SELECT SUM(a) AS s, COUNT(*) AS n FROM t")
        assert pieces[0] > 3
        check_views(db)
