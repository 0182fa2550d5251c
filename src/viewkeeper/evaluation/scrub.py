"""The background scrub: one view in turn, a range of its keys at a time, is compared with its query.

It works while a maintainer has nothing else to do, in steps of a few milliseconds, and neither waits for nor holds up
any epoch: it reads what is published, and base tables as of the view's position. What it finds is kept beside what is
published, where ``status`` looks for it; nothing is put right without being asked for.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.errors import ConflictError, FunctionUnavailable, InputError, StoreError, ViewFailed
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.samples import NotSampled, Sample, TooManyRows, open_sample
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.pipeline.scrubs import RIGHT, SKIPPED, WRONG, ScrubRecord, delete_scrub, read_scrubs, write_scrub
from viewkeeper.views.catalog import read_catalog
from viewkeeper.views.planning import Planner

HELD_SECONDS_MAX = 600.0
"""How long the log is held for one range; what is not read by then is given up."""

# Base rows that are kept, for each row of the view that is compared.
_BASE_ROWS = 10
# By how much a range is made smaller that needs more.
_SMALLER = 8


class Scrub:
    """Compares views in turn, step by step; for one thread.

    Args:
        context: the store.
        interval_seconds: how long it waits from one view to the next; 0: for ever.
        rows_max: how many rows of a view it compares at a time; ten times as many base rows are kept for that.
        clock: where time comes from.

    Example:
        >>> from viewkeeper.clock import SimulatedClock
        >>> from viewkeeper.store.memory import MemorySpace
        >>> context, clock = EvaluationContext(MemorySpace(), MemorySpace()), SimulatedClock()
        >>> Scrub(context, 3600.0, clock=clock).step()
        False
    """

    def __init__(
        self,
        context: EvaluationContext,
        interval_seconds: float,
        rows_max: int = 10_000,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        # Plans of its own: those of the maintainer are its threads'.
        self._context = replace(context, planner=Planner())
        self._interval_seconds = interval_seconds
        self._rows_max = rows_max
        self._clock = clock
        self._due_seconds: float | None = None
        self._running: _Running | None = None
        # Views of which the usual range needs too many base rows, with what did better.
        self._smaller: dict[int, int] = {}

    def step(self, is_idle: bool = True) -> bool:
        """Do a little of what is due; return whether there was anything.

        Args:
            is_idle: whether there is time; otherwise only what has waited too long is given up.

        Raises:
            ViewFailed: ``VIEW_WRONG``: what has just been found.
            StoreError: the store cannot be read or written.
        """
        if not self._interval_seconds:
            return False
        running = self._running
        if running is not None and self._clock.now_seconds() > running.began_seconds + HELD_SECONDS_MAX:
            self._end(running, SKIPPED, f"its base tables were not read within {HELD_SECONDS_MAX:.0f} s")
            return False
        if running is not None and is_idle:
            self._work(running)
            return True
        if running is not None or not is_idle or not self._is_due():
            return False
        last = self._next_view()
        self._due_seconds = self._clock.now_seconds() + self._interval_seconds
        if last is None:
            return False
        rows_max = self._smaller.get(last.view, self._rows_max)
        self._running = _Running(last, rows_max, self._clock.now_seconds())
        self._work(self._running)
        return True

    def close(self) -> None:
        """Give up what is running, and let go of the log."""
        running, self._running = self._running, None
        if running is not None:
            running.opened.close()

    def _is_due(self) -> bool:
        if self._due_seconds is None:
            with self._context.views.read() as txn:
                last = [record.at_seconds for record in read_scrubs(txn).values()]
            self._due_seconds = max(last, default=self._clock.now_seconds()) + self._interval_seconds
        return self._clock.now_seconds() >= self._due_seconds

    def _next_view(self) -> ScrubRecord | None:
        """Return the last scrub of the view whose turn it is, and forget views that are no more."""
        with self._context.base.read() as base:
            there = set(read_catalog(base).views)
        with self._context.views.read() as txn:
            known = read_scrubs(txn)
        gone = known.keys() - there
        if gone:
            with self._context.views.write() as writing:
                for view in gone:
                    delete_scrub(writing, view)
        records = [known.get(view, ScrubRecord(view, -1.0, "")) for view in there]
        return min(records, key=lambda record: (record.at_seconds, record.view), default=None)

    def _work(self, running: _Running) -> None:
        """Do the next piece of work on a range; end it where that was the last."""
        last = running.last
        try:
            if running.sample is None:
                running.sample = open_sample(
                    self._context, last.view, last.start or None, running.rows_max, _BASE_ROWS * self._rows_max,
                    running.opened,
                )  # fmt: skip
            elif not running.sample.advance():
                finding = running.sample.finding()
                self._end(running, WRONG if finding else RIGHT, finding)
        except TooManyRows as error:
            if running.rows_max == 1:
                self._end(running, SKIPPED, str(error))
            else:
                self.close()
                rows_max = self._smaller[last.view] = max(running.rows_max // _SMALLER, 1)
                self._running = _Running(last, rows_max, running.began_seconds)
        except (NotSampled, NotPortable, ConflictError, FunctionUnavailable, InputError) as error:
            self._end(running, SKIPPED, getattr(error, "message", str(error)))
        except StoreError as error:
            self.close()
            if error.code != "ROW_UNREADABLE" or running.sample is not None:
                raise
            self._end(running, WRONG, "some of its rows cannot be read")

    def _end(self, running: _Running, result: str, note: str) -> None:
        """Keep what came of a range.

        Raises:
            ViewFailed: ``VIEW_WRONG`` where it is wrong.
        """
        self.close()
        now, last, sample = self._clock.now_seconds(), running.last, running.sample
        if result == SKIPPED:
            # What was wrong and could not be looked at now is wrong still.
            record = (
                replace(last, at_seconds=now) if last.result == WRONG else ScrubRecord(last.view, now, result, note)
            )
        elif sample is None:
            record = ScrubRecord(last.view, now, result, note)
        else:
            behind = sample.behind or b""
            record = ScrubRecord(last.view, now, result, note, sample.rows, sample.position, behind)
        if result == WRONG:
            # It is looked at again, to see whether it has been put right.
            since = last.since_seconds if last.result == WRONG else now
            record = replace(record, start=last.start, since_seconds=since, checks=last.checks + 1)
        with self._context.base.read() as base:
            view = read_catalog(base).views.get(last.view)
        if view is None:
            return
        with self._context.views.write() as txn:
            write_scrub(txn, record)
        if result == WRONG and last.result != WRONG:
            raise ViewFailed("VIEW_WRONG", view_wrong(view.name, record))


def view_wrong(name: str, record: ScrubRecord) -> str:
    """Return what is wrong with a view, and what to do, for people."""
    there = "" if record.position < 0 else f" at position {record.position}"
    return (
        f"View {name!r} is not what its query gives{there}: {record.note}. VERIFY MATERIALIZED VIEW {name} tells all "
        f"that is wrong, VERIFY MATERIALIZED VIEW {name} REPAIR puts it right."
    )


@dataclass
class _Running:
    """A range that is compared.

    Args:
        last: the view's last scrub.
        rows_max: how many rows of the view the range has.
        began_seconds: when it was begun.
        opened: holds the log.
        sample: the range, once its stored rows are read.
    """

    last: ScrubRecord
    rows_max: int
    began_seconds: float
    opened: ExitStack = field(default_factory=ExitStack)
    sample: Sample | None = None
