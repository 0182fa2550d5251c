"""OR REPLACE and ALTER … AS of views that others read: all are filled beside what they show and swapped together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import CadenceRecord, write_cadence


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT, g STRING, v INT, PRIMARY KEY (k))")
        db.sql("INSERT INTO t VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 3)")
        db.sql("CREATE MATERIALIZED VIEW base AS SELECT k, g, v, v + 1 AS w FROM t")
        db.sql("CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(w) AS s FROM base GROUP BY g")
        db.sql("CREATE MATERIALIZED VIEW later REFRESH EVERY 1 HOUR AS SELECT k, w, s FROM base JOIN sums USING (g)")
        db.sql("CREATE MATERIALIZED VIEW asked REFRESH ON DEMAND AS SELECT MAX(s) AS m FROM later")
        yield db


def rows(db: Database, sql: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.sql(sql).rows())


def check(db: Database, scale: int) -> None:
    db.refresh()
    w = f"v * {scale}" if scale > 1 else "v + 1"
    base = f"(SELECT k, g, {w} AS w FROM t)"
    sums = f"(SELECT g, SUM(w) AS s FROM {base} b GROUP BY g)"
    later = f"(SELECT k, w, s FROM {base} b JOIN {sums} q USING (g))"
    assert rows(db, "SELECT k, g, w FROM base") == rows(db, f"SELECT * FROM {base} b")
    assert rows(db, "SELECT g, s FROM sums") == rows(db, f"SELECT * FROM {sums} b")
    assert rows(db, "SELECT k, w, s FROM later") == rows(db, f"SELECT * FROM {later} b")
    assert rows(db, "SELECT m FROM asked") == rows(db, f"SELECT MAX(s) FROM {later} b")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER MATERIALIZED VIEW base AS SELECT w, g, k FROM (SELECT k, g, v * 10 AS w FROM t) q",
        "CREATE OR REPLACE MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w, 'new' AS extra FROM t WHERE v > -1",
    ],
)
def test_readers_of_every_cadence_follow_the_new_query(db: Database, statement: str) -> None:
    check(db, 1)
    db.sql("INSERT INTO t VALUES (4, 'y', 4)")
    db.sql(statement)
    assert rows(db, "SELECT m FROM asked") == [(70,)]
    check(db, 10)
    db.sql("INSERT INTO t VALUES (5, 'z', 50); UPDATE t SET v = 7, g = 'z' WHERE k = 1; DELETE FROM t WHERE k = 2")
    check(db, 10)
    views = db.status()["views"]
    assert {v["name"]: v["state"] for v in views} == dict.fromkeys(("base", "sums", "later", "asked"), "ACTIVE")
    cadences = {v["name"]: v["cadence"] for v in views}
    assert (cadences["base"], cadences["sums"], cadences["later"]) == ("continuous", "continuous", "every-3600")
    db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 3 AS w FROM t")
    check(db, 3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k, g, v FROM t", r"'sums' uses column 'w' \(int\) of 'base', which it would lack"),
        ("SELECT k, v + 1 AS w FROM t", r"'sums' uses column 'g' \(string\) of 'base', which it would lack"),
        (
            "SELECT k, g, CAST(v AS BIGINT) AS w FROM t",
            r"'sums' uses column 'w' \(int\) of 'base', which would be bigint",
        ),
        (
            "SELECT CAST(k AS INT) AS k, g, v AS w FROM t",
            r"'later' uses column 'k' \(bigint\) of 'base', which would be int",
        ),
    ],
)
def test_what_readers_use_must_stay(db: Database, query: str, message: str) -> None:
    with pytest.raises(InputError, match=f"VIEW_IN_USE.*{message}"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW base AS {query}")
    check(db, 1)


def test_a_view_does_not_come_to_read_itself(db: Database) -> None:
    with pytest.raises(InputError, match=r"VIEW_READS_ITSELF"):
        db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v, CAST(s AS INT) AS w FROM t JOIN sums USING (g)")


def test_the_refresh_clause_stays_under_readers(db: Database) -> None:
    with pytest.raises(InputError, match=r"VIEW_IN_USE.*REFRESH would change"):
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW base REFRESH ON DEMAND AS SELECT k, g, v, v AS w FROM t")


def test_a_reader_that_stands_still_must_go_on_first(db: Database) -> None:
    db.sql("ALTER MATERIALIZED VIEW asked SUSPEND")
    with pytest.raises(InputError, match=r"VIEW_NOT_ACTIVE.*'asked'"):
        db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w FROM t")
    db.sql("ALTER MATERIALIZED VIEW asked RESUME")
    db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w FROM t")
    check(db, 10)


class Died(Exception):
    """What a process that dies does, in one that goes on."""


def test_a_view_above_two_cadences_keeps_waiting_for_both(db: Database) -> None:
    """CONTINUOUS over EVERY over CONTINUOUS: where the new versions go, too, no cadence comes to wait for itself."""
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n, MAX(w) AS most FROM later")

    def cadences() -> dict[str, str]:
        return {view["name"]: view["cadence"] for view in db.status()["views"]}

    assert cadences()["above"].startswith("continuous-")
    for scale in (10, 100):
        db.sql(f"ALTER MATERIALIZED VIEW base AS SELECT k, g, v * {scale} AS w FROM t")
        assert cadences()["above"].startswith("continuous-")
        db.sql(f"INSERT INTO t VALUES ({scale}, 'z', 5)")
        check(db, scale)
        assert rows(db, "SELECT n, most FROM above") == rows(db, f"SELECT COUNT(*), MAX(v) * {scale} FROM t")


@pytest.mark.parametrize("where", ["build:before-swap", "build:after-swap", "publish:before-commit", "publish:after"])
def test_a_replacement_that_was_cut_off_is_completed_as_a_whole(db: Database, where: str) -> None:
    def die(name: str) -> None:
        if name == where:
            raise Died

    db.sql("INSERT INTO t VALUES (4, 'y', 4)")
    with hooked(die), pytest.raises(Died):
        db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w FROM t")
    shown = db.status()["views"]
    assert {view["name"] for view in shown if view["state"] == "ACTIVE"} == {"base", "sums", "later", "asked"}
    check(db, 10)
    assert len(db.status()["views"]) == 4
    assert all(not cadence["name"].startswith("build-") for cadence in db.status()["cadences"])


def test_a_reader_that_is_dropped_while_it_is_refilled_does_not_hold_up_the_others(db: Database) -> None:
    def drop(name: str) -> None:
        if name == "build:before-swap" and "asked" in db.views():
            db.sql("DROP MATERIALIZED VIEW asked")

    with hooked(drop):
        db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w FROM t")
    db.refresh()
    assert rows(db, "SELECT g, s FROM sums") == [("x", 30), ("y", 30)]
    assert {view["name"]: view["state"] for view in db.status()["views"]} == dict.fromkeys(
        ("base", "sums", "later"), "ACTIVE"
    )


def test_a_second_replacement_takes_the_place_of_one_that_was_cut_off(db: Database) -> None:
    def die(name: str) -> None:
        if name == "publish:after":
            raise Died

    with hooked(die), pytest.raises(Died):
        db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 10 AS w FROM t")
    db.sql("ALTER MATERIALIZED VIEW base AS SELECT k, g, v * 3 AS w FROM t")
    check(db, 3)
    assert len(db.status()["views"]) == 4


def test_a_view_that_was_filled_to_the_middle_of_a_swap_is_suspended_as_a_whole(db: Database) -> None:
    def die(name: str) -> None:
        if name == "build:after-swap":
            raise Died

    db.sql("CREATE MATERIALIZED VIEW alone REFRESH EVERY 2 HOURS AS SELECT g, MAX(v) AS m FROM t GROUP BY g")
    with hooked(die), pytest.raises(Died):
        db.sql("REFRESH MATERIALIZED VIEW alone FULL")
    db.sql("INSERT INTO t VALUES (4, 'y', 4); ALTER MATERIALIZED VIEW alone SUSPEND")
    assert [view["state"] for view in db.status()["views"] if view["name"] == "alone"] == ["SUSPENDED"]
    assert "every-7200" not in [cadence["name"] for cadence in db.status()["cadences"]]
    db.sql("ALTER MATERIALIZED VIEW alone RESUME")
    assert rows(db, "SELECT * FROM alone") == [("x", 2), ("y", 4)]


def test_a_cadence_that_nobody_is_left_in_keeps_no_view_from_joining(db: Database) -> None:
    with db._engine.store.views.write() as txn:
        write_cadence(txn, CadenceRecord("every-7200", 3, 2))
    db.sql("CREATE MATERIALIZED VIEW alone REFRESH EVERY 2 HOURS AS SELECT g, MAX(v) AS m FROM t GROUP BY g")
    assert rows(db, "SELECT * FROM alone") == [("x", 2), ("y", 3)]
