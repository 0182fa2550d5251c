"""The live screen and the plain lines, drawn into a recorded console from real views."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date

import pytest
from rich.console import Console

from viewkeeper.clock import SimulatedClock
from viewkeeper.database import Database
from viewkeeper.demo.data import load
from viewkeeper.demo.events import FlightEvents
from viewkeeper.demo.pace import Committed, Pace, Progress
from viewkeeper.demo.screen import LiveScreen, PlainScreen, facts, make_screen, minutes_text, sample
from viewkeeper.demo.store import apply, begin, open_demo, prepare

# What all tests of this file look at is made once, by one worker.
pytestmark = pytest.mark.xdist_group("demo-screen")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    data = load()
    events = FlightEvents(data, days=1)
    with open_demo(tmp_path_factory.mktemp("demo") / "flights.vk", executor="local") as db:
        prepare(db, data)
        stage = begin(db, events, 1)
        for index, hour in events.transactions():
            apply(db, stage, index, hour)
        db.refresh()
        yield db


def pace_with(clock: SimulatedClock, executor: str = "local") -> Pace:
    pace = Pace(events=0, injected=0, held_after=9, clock=clock)
    pace.committed(Committed(1, 900, 1_000, 4, date(2013, 1, 1)))
    clock.sleep(0.5)
    pace.refreshed(1, 0.5, 1, executor)
    return pace


def test_the_sample_is_of_one_moment_and_small(db: Database) -> None:
    rows = sample(db)
    assert [row["airline"] for row in rows.carriers[:2]] == ["United Air Lines Inc.", "JetBlue Airways"]
    assert len(rows.carriers) == 5
    assert {row["origin"] for row in rows.airports} == {"EWR", "JFK", "LGA"}
    assert sum(int(row["flights"]) for row in rows.airports) == sum(1 for _ in db.scan("flights"))
    assert [row["flight_date"] for row in rows.days] == [date(2013, 1, 1)]


def test_the_live_screen_shows_bar_facts_and_rows(db: Database) -> None:
    clock = SimulatedClock()
    console = Console(file=io.StringIO(), force_terminal=True, width=160, record=True)
    screen = LiveScreen(console, db, 2_000, clock)
    screen.say("First live rows 1.0 s after the start.")
    screen.look(pace_with(clock))
    screen.close()
    text = console.export_text()
    assert "2013-01-01" in text
    assert "50%" in text
    assert "1,000 of 2,000 events (4 injected)" in text
    assert "last epoch by local" in text
    assert "United Air Lines Inc." in text
    assert "Newark" in text
    assert "delay_by_airport (a view on delay_by_route)" in text


def test_the_live_screen_draws_only_when_it_is_time(db: Database) -> None:
    clock = SimulatedClock()
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    screen = LiveScreen(console, db, 2_000, clock)
    pace = pace_with(clock)
    screen.look(pace)
    drawn = len(console.file.getvalue())  # type: ignore[attr-defined]
    for _ in range(20):
        screen.look(pace)
    assert len(console.file.getvalue()) == drawn  # type: ignore[attr-defined]
    clock.sleep(1.0)
    screen.look(pace)
    assert len(console.file.getvalue()) > drawn  # type: ignore[attr-defined]
    screen.close()


def test_plain_lines_come_every_few_seconds_and_fewer_where_nothing_moves(db: Database) -> None:
    clock = SimulatedClock()
    console = Console(file=io.StringIO(), width=80)
    screen = PlainScreen(console, db, 2_000, clock)
    screen.look(Pace(0, 0, 9, clock))  # nothing to show yet
    pace = pace_with(clock)
    for _ in range(100):
        screen.look(pace)
        clock.sleep(0.2)
    pace.committed(Committed(2, 10, 10, 0, date(2013, 1, 2)))
    pace.refreshed(2, 0.1, 1, "spark")
    screen.look(pace)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert lines[0].startswith("2013-01-01 · 1,000 of 2,000 events (4 injected)")
    assert "United Air Lines Inc.: 164 flights" in lines[0]
    assert lines[2].startswith("2013-01-02 · 1,010 of 2,000 events")
    assert "1 local, 1 spark" in lines[2]


def test_the_screen_follows_the_console(db: Database) -> None:
    pipe, terminal = Console(file=io.StringIO()), Console(file=io.StringIO(), force_terminal=True)
    assert isinstance(make_screen(pipe, False, db, 1), PlainScreen)
    assert isinstance(make_screen(terminal, False, db, 1), LiveScreen)
    assert isinstance(make_screen(terminal, True, db, 1), PlainScreen)


def test_facts_tell_that_spark_is_awaited() -> None:
    assert "waits for Spark" in facts(Progress(is_held=True), 10)
    assert "waits for Spark" not in facts(Progress(), 10)


def test_minutes() -> None:
    assert [minutes_text(v) for v in (None, 1301, 3.14159, -2.0)] == ["–", "1,301 min", "3.1 min", "-2.0 min"]
