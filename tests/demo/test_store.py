"""The demo's store goes on exactly where it was, and refuses what is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper.database import connect
from viewkeeper.demo.data import DemoData, load
from viewkeeper.demo.events import FlightEvents, final_flights
from viewkeeper.demo.store import (
    LastDay,
    apply,
    begin,
    check,
    location,
    note_last_day,
    open_demo,
    prepare,
    remove,
    stage_of,
)
from viewkeeper.demo.views import VIEWS
from viewkeeper.errors import ConflictError, InputError


@pytest.fixture(scope="module")
def data() -> DemoData:
    return load()


def play(path: Path, events: FlightEvents, days: int, stop: int | None = None) -> int:
    """Apply the stream from where the store is, up to ``stop``; return where it began."""
    with open_demo(path, executor="local") as db:
        stage = begin(db, events, days)
        for index, hour in events.transactions(stage.next_transaction):
            if index == stop:
                break
            apply(db, stage, index, hour)
        db.refresh()
    return stage.next_transaction


@pytest.mark.slow
def test_stops_and_goes_on_where_it_was(tmp_path: Path, data: DemoData) -> None:
    path, events = tmp_path / "flights.vk", FlightEvents(data, days=2)
    with open_demo(path, executor="local") as db:
        prepare(db, data)
        assert stage_of(db) is None
    assert play(path, events, 2, stop=7) == 0
    assert play(path, events, 2, stop=20) == 7
    with open_demo(path, executor="local") as db:
        prepare(db, data)  # all is there: nothing changes
    assert play(path, events, 2) == 20
    assert play(path, events, 2) == events.transaction_count
    with open_demo(path) as db:
        assert db.table("flights").to_arrow().equals(final_flights(data, days=2))
        assert set(db.views()) == {view.name for view in VIEWS}
        assert {name: db.table(name).to_arrow().num_rows for name in ("airlines", "planes")} == {
            "airlines": data.airlines.num_rows,
            "planes": data.planes.num_rows,
        }
        for view in VIEWS:
            kept = sorted(db.scan(view.name), key=repr)
            assert kept
            assert kept == sorted(db.sql(view.recomputation).rows(), key=repr)


@pytest.mark.slow
def test_more_days_go_on_from_fewer(tmp_path: Path, data: DemoData) -> None:
    path = tmp_path / "flights.vk"
    with open_demo(path, executor="local") as db:
        prepare(db, data)
    play(path, FlightEvents(data, days=1), 1)
    check(path, 3)
    began = play(path, FlightEvents(data, days=3), 3)
    assert began == 0  # the first day is played again, for its last hours lack flights of the second
    with open_demo(path) as db:
        assert db.table("flights").to_arrow().equals(final_flights(data, days=3))
    with pytest.raises(InputError) as failure:
        check(path, 2)
    assert failure.value.code == "DEMO_DAYS_FEWER"
    assert "--fresh" in failure.value.message


def test_the_last_days_measure_is_kept(tmp_path: Path, data: DemoData) -> None:
    with open_demo(tmp_path / "flights.vk", executor="local") as db:
        prepare(db, data)
        begin(db, FlightEvents(data, days=1), 1)
        measured = LastDay(2_900, 0.25, "local")
        note_last_day(db, measured)
        stage = stage_of(db)
        assert stage is not None
        assert stage.last_day == measured


def test_a_view_left_half_made_is_finished(tmp_path: Path, data: DemoData) -> None:
    with open_demo(tmp_path / "flights.vk", executor="local") as db:
        prepare(db, data)
        for view in reversed(VIEWS[-4:]):
            db.sql(f"DROP MATERIALIZED VIEW {view.name}")
        route = VIEWS[1].create_statement
        db.sql(f"DROP MATERIALIZED VIEW {VIEWS[1].name}")
        db.sql(route.replace(" AS\nSELECT", " WITH NO DATA AS\nSELECT"))
        prepare(db, data)
        assert {v["state"] for v in db.status()["views"]} == {"ACTIVE"}
        assert set(db.views()) == {view.name for view in VIEWS}


def test_refuses_and_never_removes_a_foreign_store(tmp_path: Path) -> None:
    path = tmp_path / "shop.vk"
    with connect(path) as db:
        db.sql("CREATE TABLE orders (k BIGINT, PRIMARY KEY (k))")
    for act in (lambda: check(path, 365), lambda: remove(path)):
        with pytest.raises(InputError) as failure:
            act()
        assert failure.value.code == "DEMO_STORE_FOREIGN"
        assert "orders" in failure.value.message
    with connect(path) as db:
        assert db.tables() == ["orders"]


@pytest.mark.slow
def test_a_fresh_start_removes_the_demos_store(tmp_path: Path, data: DemoData) -> None:
    path = tmp_path / "flights.vk"
    remove(path)  # absent: fine
    with open_demo(path, executor="local") as db:
        prepare(db, data)
        with db.maintain() as maintainer, pytest.raises(ConflictError) as failure:
            remove(path)
        assert failure.value.code == "STORE_IN_USE"
        assert maintainer.process_id is None
    remove(path)
    assert not path.exists()


def test_days_are_checked_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError) as failure:
        check(tmp_path / "flights.vk", 366)
    assert failure.value.code == "DEMO_DAYS_INVALID"


def test_location(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIEWKEEPER_STORE", raising=False)
    assert location(None) == Path("flights.vk")
    monkeypatch.setenv("VIEWKEEPER_STORE", "/data/other.vk")
    assert location(None) == Path("/data/other.vk")
    assert location(Path("mine.vk")) == Path("mine.vk")
