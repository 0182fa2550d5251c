"""A view that could not be filled: its maker is told what there is and what to do, its readers that it has no rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from viewkeeper import connect
from viewkeeper.database import reading
from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError, StoreError, ViewFailed
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import ViewRecord, read_view
from viewkeeper.store.key_value import ReadTransaction

READS: dict[str, Callable[[Database], object]] = {
    "get": lambda db: db.get("latest", 1),
    "multi_get": lambda db: db.multi_get("latest", [1, 2]),
    "scan": lambda db: list(db.scan("latest")),
    "table": lambda db: db.table("latest").to_arrow(),
    "sql": lambda db: db.sql("SELECT * FROM latest"),
}


def test_reads_name_what_the_view_waits_for(tmp_path: Path) -> None:
    with connect(tmp_path / "store", executor="local") as db:
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, PRIMARY KEY (id))")
        db.put_batch("orders", [{"id": 1, "customer": 1}, {"id": 2, "customer": 1}])
        with pytest.raises(ViewFailed, match=r"KEY_NOT_UNIQUE at \{'customer': 1\}: declare a PRIMARY KEY"):
            db.sql("CREATE MATERIALIZED VIEW latest (PRIMARY KEY (customer)) AS SELECT customer, id FROM orders")
        for name, read in READS.items():
            with pytest.raises(InputError, match=r"VIEW_NOT_FILLED.*KEY_NOT_UNIQUE at \{'customer': 1\}"):
                print(name, read(db))
        with db.snapshot() as moment, pytest.raises(InputError, match=r"VIEW_NOT_FILLED.*KEY_NOT_UNIQUE"):
            moment.get("latest", 1)
        db.delete("orders", 2)
        db.refresh()
        assert db.get("latest", 1) == {"customer": 1, "id": 1}
        assert db.get("latest", 2) is None


BY_V = "CREATE MATERIALIZED VIEW w AS SELECT k, 100 DIV v AS q FROM t"


def break_row(db: Database) -> str:
    """Let a row be one that BY_V cannot compute, create it, and return what is told."""
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    with pytest.raises(ViewFailed) as caught:
        db.sql(BY_V)
    [view] = db.status()["views"]
    assert (view["state"], view["rows"]) == ("FAILED", 0)
    return caught.value.message


def test_a_view_created_over_a_wrong_row_is_there_and_goes_on_when_the_row_is_mended(db: Database) -> None:
    told = break_row(db)
    assert "These views are there, FAILED and without rows: 'w': DIVIDE_BY_ZERO at {'k': 2}" in told
    assert "They go on by themselves when the rows are mended" in told
    assert "last good epoch" not in told
    db.sql("UPDATE t SET v = 4 WHERE k = 2")
    db.refresh()
    assert db.get("w", 2) == {"k": 2, "q": 25}
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    with pytest.raises(ViewFailed, match="These views stay at their last good epoch: 'w'"):
        db.refresh()


def halved(v: int) -> int:
    return 100 // v


def thirded(v: int) -> int:
    return 300 // v


REFILLS: dict[str, Callable[[Database], object]] = {
    "RESUME": lambda db: db.sql("ALTER MATERIALIZED VIEW w RESUME"),
    "REFRESH": lambda db: db.sql("REFRESH MATERIALIZED VIEW w"),
    "REFRESH FULL": lambda db: db.sql("REFRESH MATERIALIZED VIEW w FULL"),
    "AS": lambda db: db.sql("ALTER MATERIALIZED VIEW w AS SELECT k, 50 DIV v AS q FROM t"),
    "TYPE": lambda db: db.sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT"),
    "function": lambda db: db.register_function("f", thirded, "INT", deterministic=True, or_replace=True),
}


@pytest.mark.parametrize("way", REFILLS)
def test_whoever_fills_a_view_anew_is_told_that_it_cannot_be_computed(db: Database, way: str) -> None:
    db.register_function("f", halved, "INT", deterministic=True)
    db.sql(BY_V if way != "function" else "CREATE MATERIALIZED VIEW w AS SELECT k, f(v) AS q FROM t")
    if way == "RESUME":
        db.sql("ALTER MATERIALIZED VIEW w SUSPEND")
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    with pytest.raises(ViewFailed, match=r"These views .*: 'w': .* at \{'k': 2\}"):
        REFILLS[way](db)
    assert [(view["name"], view["state"]) for view in db.status()["views"]] == [("w", "FAILED")]
    db.sql("UPDATE t SET v = 4 WHERE k = 2")
    db.refresh()
    assert db.get("w", 2) is not None


@pytest.mark.parametrize("way", ["RESUME", "REFRESH FULL"])
@pytest.mark.parametrize("failed_before", [False, True])
def test_a_view_filled_anew_over_a_wrong_row_stays_at_its_last_good_epoch(
    db: Database, way: str, failed_before: bool
) -> None:
    db.sql(BY_V)
    db.sql("INSERT INTO t VALUES (7, 10), (8, 20)")
    db.refresh()
    good = db.sql("SELECT * FROM w ORDER BY k").rows()
    db.sql("DELETE FROM t WHERE k = 7; UPDATE t SET v = 25 WHERE k = 8; UPDATE t SET v = 0 WHERE k = 2")
    if failed_before:
        with pytest.raises(ViewFailed):
            db.refresh()
    if way == "RESUME":
        db.sql("ALTER MATERIALIZED VIEW w SUSPEND")
    with pytest.raises(ViewFailed, match="These views stay at their last good epoch: 'w'"):
        REFILLS[way](db)
    assert db.sql("SELECT * FROM w ORDER BY k").rows() == good
    assert db.get("w", 7) == {"k": 7, "q": 10}
    db.sql("UPDATE t SET v = 4 WHERE k = 2")
    db.refresh()
    assert (db.get("w", 2), db.get("w", 7), db.get("w", 8)) == ({"k": 2, "q": 25}, None, {"k": 8, "q": 4})


def test_a_view_does_not_go_back_where_its_filling_goes_on_over_a_wrong_row(db: Database) -> None:
    def full_disk_behind_a_piece(name: str) -> None:
        if name == "publish:after":
            raise StoreError("STORE_FULL", "The disk is full: make room.")

    db.sql(f"{BY_V}; CREATE MATERIALIZED VIEW beside AS SELECT k FROM t")
    with hooked(full_disk_behind_a_piece), pytest.raises(StoreError, match="make room"):
        db.sql("REFRESH MATERIALIZED VIEW w FULL")
    db.sql("INSERT INTO t VALUES (7, 10); DELETE FROM t WHERE k = 1; REFRESH MATERIALIZED VIEW beside")
    good = [{"k": 2, "q": 5}, {"k": 7, "q": 10}]
    assert list(db.scan("w")) == good
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    with pytest.raises(ViewFailed, match="stay at their last good epoch: 'w'"):
        db.refresh()
    assert list(db.scan("w")) == good
    db.sql("UPDATE t SET v = 4 WHERE k = 2")
    db.refresh()
    assert list(db.scan("w")) == [{"k": 2, "q": 25}, {"k": 7, "q": 10}]


def same(v: int) -> int:
    return v


def ten_less(v: int) -> int:
    return v - 10


CHANGES: dict[str, Callable[[Database], object]] = {
    "query": lambda db: db.sql("ALTER MATERIALIZED VIEW below AS SELECT k, v - 10 AS n FROM t"),
    "function": lambda db: db.register_function("f", ten_less, "INT", deterministic=True, or_replace=True),
}


@pytest.mark.parametrize("cadence", ["", "REFRESH EVERY 1 HOUR "])
@pytest.mark.parametrize("what", CHANGES)
def test_a_reader_of_a_view_with_a_new_query_shows_no_old_rows(db: Database, cadence: str, what: str) -> None:
    db.register_function("f", same, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW below AS SELECT k, f(v) AS n FROM t")
    db.sql(f"CREATE MATERIALIZED VIEW w {cadence}AS SELECT k, 100 DIV n AS q FROM below")
    with pytest.raises(ViewFailed, match=r"without rows: 'w': DIVIDE_BY_ZERO at \{'k': 1\}"):
        CHANGES[what](db)
    assert db.get("below", 1) == {"k": 1, "n": 0}
    with pytest.raises(InputError, match="VIEW_NOT_FILLED"):
        db.get("w", 1)
    db.sql("UPDATE t SET v = 15 WHERE k = 1")
    db.refresh()
    assert db.sql("SELECT * FROM w ORDER BY k").rows() == [{"k": 1, "q": 20}, {"k": 2, "q": 10}]


def test_a_view_resumed_with_another_function_shows_no_rows_of_the_old_one(db: Database) -> None:
    db.register_function("f", halved, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, f(v) AS q FROM t; ALTER MATERIALIZED VIEW w SUSPEND")
    old = list(db.scan("w"))
    db.register_function("f", thirded, "INT", deterministic=True, or_replace=True)
    # What it shows while it stands still is of the function that it was filled by.
    assert list(db.scan("w")) == old
    db.sql("UPDATE t SET v = 0 WHERE k = 2")
    with pytest.raises(ViewFailed, match=r"without rows: 'w': .* at \{'k': 2\}"):
        db.sql("ALTER MATERIALIZED VIEW w RESUME")
    with pytest.raises(InputError, match="VIEW_NOT_FILLED"):
        db.get("w", 1)
    db.sql("UPDATE t SET v = 4 WHERE k = 2")
    db.refresh()
    assert db.get("w", 2) == {"k": 2, "q": 75}


def test_nor_does_one_that_reads_a_view_which_calls_it(db: Database) -> None:
    db.register_function("f", same, "INT", deterministic=True)
    db.sql("""
        CREATE MATERIALIZED VIEW below AS SELECT k, f(v) AS n FROM t;
        CREATE MATERIALIZED VIEW w AS SELECT k, 100 DIV n AS q FROM below;
        ALTER MATERIALIZED VIEW w SUSPEND
    """)
    db.register_function("f", ten_less, "INT", deterministic=True, or_replace=True)
    with pytest.raises(ViewFailed, match=r"without rows: 'w': DIVIDE_BY_ZERO at \{'k': 1\}"):
        db.sql("ALTER MATERIALIZED VIEW w RESUME")
    assert [row["views"] for row in db.sql("SHOW FUNCTIONS")] == ["below"]


@pytest.mark.parametrize(
    ("way_out", "rows"),
    [
        (["DROP MATERIALIZED VIEW w", BY_V.replace(" v ", " NULLIF(v, 0) ")], [10, None]),
        ([BY_V.replace("CREATE", "CREATE OR REPLACE").replace(" v ", " NULLIF(v, 0) ")], [10, None]),
    ],
)
def test_the_other_ways_out_that_the_error_names(db: Database, way_out: list[str], rows: list[int | None]) -> None:
    told = break_row(db)
    assert "CREATE OR REPLACE" in told
    assert "DROP MATERIALIZED VIEW" in told
    for statement in way_out:
        db.sql(statement)
    assert [row["q"] for row in db.scan("w")] == rows


def full_disk(name: str) -> None:
    """Raise what a full disk raises, where a new view would be published."""
    if name == "build:before-swap":
        raise StoreError("STORE_FULL", "The disk is full: make room.")


def test_a_view_whose_filling_was_cut_short_is_there_and_goes_on_by_refresh(db: Database) -> None:
    remedy = "REFRESH MATERIALIZED VIEW w goes on, DROP MATERIALIZED VIEW w gives it up"
    with (
        hooked(full_disk),
        pytest.raises(StoreError, match=rf"make room\. View 'w' is there now, BUILDING.*: {remedy}"),
    ):
        db.sql(BY_V)
    assert [view["state"] for view in db.status()["views"]] == ["BUILDING"]
    db.sql("REFRESH MATERIALIZED VIEW w")
    assert [row["q"] for row in db.scan("w")] == [10, 5]


def test_a_new_version_whose_filling_was_cut_short_leaves_the_old_one(db: Database) -> None:
    db.sql(BY_V)
    newer = BY_V.replace("CREATE", "CREATE OR REPLACE").replace("100", "1000")
    with (
        hooked(full_disk),
        pytest.raises(StoreError, match=r"View 'w' shows what it showed; REFRESH MATERIALIZED VIEW w"),
    ):
        db.sql(newer)
    assert [row["q"] for row in db.scan("w")] == [10, 5]
    db.sql("REFRESH MATERIALIZED VIEW w")
    assert [row["q"] for row in db.scan("w")] == [100, 50]


def test_a_read_off_the_quick_path_decodes_the_record_of_its_view_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql(BY_V)
    assert db.get("w", (1,)) == {"k": 1, "q": 10}  # which reads once how rows of the view are written
    decoded: list[int] = []

    def counted(txn: ReadTransaction, view: int) -> ViewRecord | None:
        decoded.append(view)
        return read_view(txn, view)

    monkeypatch.setattr(reading, "read_view", counted)
    assert db.get("w", (1,)) == {"k": 1, "q": 10}
    assert len(list(db.scan("w"))) == 2
    assert len(decoded) == 2
