"""Plays the stream while the views follow: one thread writes, one refreshes, the caller's looks on.

The first epochs run in process, so that rows show within seconds; Spark starts meanwhile and takes over when it is
ready. Whatever the machine, two thirds of the stream wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.database import Database
from viewkeeper.demo.events import INJECTED_KINDS, FlightEvents
from viewkeeper.demo.pace import Pace
from viewkeeper.demo.store import LastDay, Stage, apply, note_last_day, open_demo, stage_of
from viewkeeper.demo.threads import SparkStart, Worker
from viewkeeper.errors import ViewkeeperError

Look = Callable[[Pace], None]

_HELD_FOR_SPARK = 2 / 3


@dataclass(frozen=True)
class Play:
    """What is played where.

    Args:
        path: the store's folder.
        local: a connection that refreshes in process; it stays warm for the last day.
        events: the stream.
        stage: how far it has got.
        spark: Spark, starting.
    """

    path: Path
    local: Database
    events: FlightEvents
    stage: Stage
    spark: SparkStart

    def until_last_day(self, look: Look) -> Pace:
        """Play all transactions before the last day, the views following.

        Args:
            look: called again and again meanwhile; it paces itself.

        Returns:
            How it went.
        """
        first, last = self.stage.next_transaction, max(self.stage.next_transaction, self.events.last_day_index)
        pace = self._pace(first, int((last - first) * (1 - _HELD_FOR_SPARK)))
        if first == last:
            return pace

        def ended(error: BaseException | None) -> None:
            if error is not None:
                pace.end()

        workers = (
            Worker("writer", lambda: self._write(pace, first, last), ended),
            Worker("refresher", lambda: self._refresh(pace), ended),
        )
        self.spark.call_when_ready(pace.open_up)
        for worker in workers:
            worker.start()
        try:
            while any(worker.is_alive() for worker in workers):
                look(pace)
        except BaseException:
            self._break_off(pace, workers)
            raise
        for worker in workers:
            worker.finish()
        look(pace)
        return pace

    def _pace(self, first: int, held_after: int) -> Pace:
        counts = self.events.counts_before(first)
        injected = sum(counts[kind] for kind in INJECTED_KINDS)
        return Pace(sum(counts.values()), injected, held_after)

    def _break_off(self, pace: Pace, workers: tuple[Worker, ...]) -> None:
        pace.end()
        self.spark.cancel_jobs()
        for worker in workers:
            worker.join()

    def _write(self, pace: Pace, first: int, last: int) -> None:
        with open_demo(self.path) as db:
            for index, hour in self.events.transactions(first):
                if index >= last or not pace.wait_for_room():
                    break
                pace.committed(apply(db, self.stage, index, hour))
        pace.written()

    def _refresh(self, pace: Pace) -> None:
        with ExitStack() as opened:
            db = self.local
            is_bulk = False
            while pace.wait_for_work():
                session = None if is_bulk else self.spark.session_if_ready()
                if session is not None:
                    db = opened.enter_context(open_demo(self.path, executor="spark", spark=session))
                    is_bulk = True
                _refresh_once(db, pace)

    def last_day(self) -> LastDay:
        """Apply what is left of the stream, and bring it into all views by one refresh: few rows, hence in process."""
        stage = stage_of(self.local) or self.stage
        # After a stop between applying and refreshing, all of the last day still waits.
        rows = sum(hour.row_count for _, hour in self.events.transactions(self.events.last_day_index))
        for index, hour in self.events.transactions(stage.next_transaction):
            apply(self.local, stage, index, hour)
        done = self.local.refresh()
        measured = LastDay(rows, done.seconds, done.executor)
        note_last_day(self.local, measured)
        return measured


def _refresh_once(db: Database, pace: Pace) -> None:
    try:
        done = db.refresh()
    except ViewkeeperError:
        if pace.is_over:  # its jobs were cancelled
            return
        raise
    pace.refreshed(done.position.sequence_number, done.seconds, done.epochs, done.executor)
