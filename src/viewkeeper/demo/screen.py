"""What the demo shows: a live screen in a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.database import Database
from viewkeeper.demo.pace import Pace
from viewkeeper.demo.pace import Progress as Pacing

Row = dict[str, Any]

_LIVE_SECONDS = 0.5
_PLAIN_SECONDS = 3.0
_PLAIN_STILL_SECONDS = 15.0
_ROWS_SHOWN = 5
_WIDE = 120


@dataclass(frozen=True)
class Sample:
    """Some rows of the views, all of one moment.

    Args:
        carriers: the carriers with most flights.
        airports: all three airports.
        days: the latest days.
    """

    carriers: Sequence[Row] = ()
    airports: Sequence[Row] = ()
    days: Sequence[Row] = ()


def sample(db: Database) -> Sample:
    """Read some rows of three views at one moment: a few dozen rows, by key order."""
    with db.snapshot() as moment:
        carriers = sorted(moment.scan("delay_by_carrier"), key=lambda row: -int(row["flights"]))
        airports = list(moment.scan("delay_by_airport"))
        days = list(moment.scan("worst_delay_by_day", reverse=True, limit=_ROWS_SHOWN + 1))
    # The latest day's flights have not left yet: show what is known.
    known = [row for row in days if row["departure_delay_worst"] is not None]
    return Sample(carriers[:_ROWS_SHOWN], airports, known[:_ROWS_SHOWN])


class Screen(Protocol):
    """Where the demo shows what it does."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def show(self, what: RenderableType) -> None:
        """Print something that stays, a table for example."""

    def look(self, pace: Pace) -> None:
        """Show how it goes when it is time to; called in a loop."""

    def close(self) -> None:
        """End the live part."""


class PlainScreen:
    """Lines only: for pipes, logs and CI.

    Args:
        console: where to print.
        db: a connection to read rows from.
        events: how many events the demo has.
        clock: paces the lines.
    """

    def __init__(self, console: Console, db: Database, events: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._console = console
        self._db = db
        self._events = events
        self._clock = clock
        self._shown_seconds = -math.inf
        self._shown_events = -1

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, soft_wrap=True, highlight=False)

    def show(self, what: RenderableType) -> None:
        """Print something."""
        self._console.print(what)

    def look(self, pace: Pace) -> None:
        """Print a line when it is time to: the first as soon as the views have rows."""
        now = self._clock.monotonic_seconds()
        progress = pace.progress()
        pause = _PLAIN_SECONDS if progress.events != self._shown_events else _PLAIN_STILL_SECONDS
        if now < self._shown_seconds + pause or progress.day is None:
            return
        self._shown_seconds, self._shown_events = now, progress.events
        rows = sample(self._db)
        carrier = f" · {carrier_text(rows.carriers[0])}" if rows.carriers else ""
        self.say(f"{facts(progress, self._events)}{carrier}")

    def close(self) -> None:
        """Nothing is live."""


class LiveScreen:
    """A progress bar, a line of facts and some rows, redrawn in place.

    Args:
        console: a terminal.
        db: a connection to read rows from.
        events: how many events the demo has.
        clock: paces the redrawing.
    """

    def __init__(self, console: Console, db: Database, events: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._console = console
        self._db = db
        self._events = events
        self._clock = clock
        self._due_seconds = 0.0
        self._bar = Progress(
            TextColumn("[bold]{task.description}"), BarColumn(None), TaskProgressColumn(), TimeElapsedColumn(),
            console=console, expand=True,
        )  # fmt: skip
        self._task = self._bar.add_task("waiting", total=events)
        self._live: Live | None = None

    def say(self, text: str) -> None:
        """Print a line, above what is live."""
        self._console.print(text, highlight=False)

    def show(self, what: RenderableType) -> None:
        """Print something, above what is live."""
        self._console.print(what)

    def look(self, pace: Pace) -> None:
        """Redraw when it is time to."""
        now = self._clock.monotonic_seconds()
        if now < self._due_seconds:
            return
        self._due_seconds = now + _LIVE_SECONDS
        progress = pace.progress()
        drawn = self._drawn(progress, sample(self._db))
        if self._live is None:
            # Redrawn by us alone: rich's own thread would draw ten times a second.
            self._live = Live(drawn, console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(drawn, refresh=True)

    def _drawn(self, progress: Pacing, rows: Sample) -> RenderableType:
        day = "2013-01-01" if progress.day is None else progress.day.isoformat()
        self._bar.update(self._task, completed=progress.events, description=day)
        return Group(self._bar, Text(facts(progress, self._events)), tables(rows, self._console.width))

    def close(self) -> None:
        """Leave the last picture and end the live part."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def make_screen(console: Console, plain: bool, db: Database, events: int) -> Screen:
    """Return the screen for ``console``: live in a terminal, unless ``plain`` is wanted."""
    if plain or not console.is_terminal:
        return PlainScreen(console, db, events)
    return LiveScreen(console, db, events)


def facts(progress: Pacing, events: int) -> str:
    """Return date, events, speed, freshness and executor in one line."""
    day = "" if progress.day is None else f"{progress.day} · "
    parts = [
        f"{day}{progress.events:,} of {events:,} events ({progress.injected:,} injected)",
        f"{progress.changes_per_second:,.0f} changes/s",
        f"views {progress.behind_seconds:.1f} s behind ({progress.behind_transactions} transactions)",
    ]
    if progress.executor:
        parts.append(f"last epoch by {progress.executor}; {counts_text(progress.epochs)}")
    if progress.is_held:
        parts.append("the rest waits for Spark, which starts")
    return " · ".join(parts)


def counts_text(counts: dict[str, int]) -> str:
    """Return counts by name, such as ``12 local, 30 spark``."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def carrier_text(row: Row) -> str:
    """Return a carrier's row as a phrase."""
    return f"{row['airline']}: {row['flights']:,} flights, {minutes_text(row['arrival_delay'])} late"


def minutes_text(value: float | int | None) -> str:
    """Return minutes with one decimal where they have any; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.1f} min" if isinstance(value, float) else f"{value:,} min"


def tables(rows: Sample, width: int) -> RenderableType:
    """Return rows of three views side by side, of two in a terminal too narrow for that."""
    carriers, airports, days = _tables(rows)
    return Columns([carriers, airports, days] if width >= _WIDE else [carriers, airports])


def _tables(rows: Sample) -> tuple[Table, Table, Table]:
    return (
        _table("delay_by_carrier", rows.carriers, {
            "airline": lambda r: r["airline"],
            "flights": lambda r: f"{r['flights']:,}",
            "cancelled": lambda r: f"{r['cancelled']:,}",
            "late": lambda r: minutes_text(r["arrival_delay"]),
        }),
        _table("delay_by_airport (a view on delay_by_route)", rows.airports, {
            "airport": lambda r: r["airport"],
            "routes": lambda r: f"{r['routes']:,}",
            "flights": lambda r: f"{r['flights']:,}",
            "late": lambda r: minutes_text(r["arrival_delay"]),
        }),
        _table("worst_delay_by_day", rows.days, {
            "day": lambda r: r["flight_date"].isoformat(),
            "flights": lambda r: f"{r['flights']:,}",
            "worst": lambda r: minutes_text(r["departure_delay_worst"]),
        }),
    )  # fmt: skip


def _table(title: str, rows: Sequence[Row], columns: dict[str, Callable[[Row], str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table
