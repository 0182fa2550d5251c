"""How far the writer may run ahead of the views, and how it all goes: shared by the demo's three threads.

    writer ──committed──▶ Pace ◀──refreshed── refresher
                           │
                           ▼ progress()
                         screen

The window (rows committed that the views do not show yet) follows the speed of the epochs: two epochs' worth, one being
refreshed and one being written meanwhile, each aimed at the same number of seconds. So views stay that fresh whatever
the machine and the executor, and an epoch is as large, hence as efficient, as that allows. Below its least window an
executor's start of an epoch would cost more than its rows do: on a slow machine views show rows later instead.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import date

from viewkeeper.clock import SYSTEM_CLOCK, Clock

EPOCH_SECONDS_AIM = 2.0
WINDOW_ROWS_MIN = {"local": 1_500, "spark": 50_000}
WINDOW_ROWS_MAX = 160_000
_GROWTH_MAX = 3.0
_SPEED_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """How the demo goes at one moment.

    Args:
        day: the simulated date up to which the views have read; None before the first epoch.
        events: events that the views show.
        injected: of these, those that are not in the data.
        changes_per_second: rows put or deleted that the views took in lately, a second.
        behind_seconds: age of the oldest committed transaction that the views do not show; 0 without one.
        behind_transactions: how many they do not show.
        behind_rows: rows of these.
        executor: what ran the last epoch; empty before the first.
        epochs: epochs so far by executor.
        rows: rows put or deleted so far by executor.
        is_held: whether the writer waits for Spark.
    """

    day: date | None = None
    events: int = 0
    injected: int = 0
    changes_per_second: float = 0.0
    behind_seconds: float = 0.0
    behind_transactions: int = 0
    behind_rows: int = 0
    executor: str = ""
    epochs: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    is_held: bool = False


@dataclass(frozen=True)
class _Refresh:
    began_seconds: float
    ended_seconds: float
    rows: int


@dataclass(frozen=True)
class Committed:
    """A transaction that was committed.

    Args:
        position: its sequence number.
        rows: rows that it changed.
        events: events that it stands for.
        injected: of these, those that are not in the data.
        day: its simulated date.
    """

    position: int
    rows: int
    events: int
    injected: int
    day: date


class Pace:
    """Paces the writer by the refresher, and counts.

    Args:
        events: events that the views show already.
        injected: of these, those that are not in the data.
        held_after: the writer waits after so many transactions until ``open_up``: the rest is for Spark, which starts.
        clock: where time comes from.
    """

    def __init__(self, events: int, injected: int, held_after: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Committed, float]] = deque()
        self._waiting_rows = 0
        self._window_rows = float(WINDOW_ROWS_MIN["local"])
        self._transactions = 0
        self._held_after: int | None = held_after
        self._is_written = False
        self._is_over = False
        self._events, self._injected = events, injected
        self._day: date | None = None
        self._executor = ""
        self._epochs: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._recent: deque[_Refresh] = deque()

    @property
    def window_rows(self) -> int:
        """How many rows may wait."""
        return int(self._window_rows)

    # ---- the writer ----

    def wait_for_room(self) -> bool:
        """Wait until another transaction may be committed; False where the demo is over."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            return not self._is_over

    def _has_room(self) -> bool:
        return self._is_over or (not self._is_held() and self._waiting_rows < self._window_rows)

    def _is_held(self) -> bool:
        return self._held_after is not None and self._transactions >= self._held_after

    def committed(self, transaction: Committed) -> None:
        """Take note of a commit."""
        with self._changed:
            self._waiting.append((transaction, self._clock.monotonic_seconds()))
            self._waiting_rows += transaction.rows
            self._transactions += 1
            self._changed.notify_all()

    def written(self) -> None:
        """Take note that all transactions are committed."""
        with self._changed:
            self._is_written = True
            self._changed.notify_all()

    # ---- the refresher ----

    def wait_for_work(self) -> bool:
        """Wait until some transaction waits; False where nothing is left to do, or the demo is over."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._is_written or self._is_over)
            return bool(self._waiting) and not self._is_over

    def open_up(self) -> None:
        """Let the writer go on beyond the transactions held for Spark."""
        with self._changed:
            self._held_after = None
            self._changed.notify_all()

    def refreshed(self, position: int, seconds: float, epochs: int, executor: str) -> None:
        """Take note of a refresh, and set the window by its speed.

        Args:
            position: what the views show now.
            seconds: how long it took.
            epochs: epochs that it ran.
            executor: what ran them.
        """
        with self._changed:
            rows = self._take(position)
            self._changed.notify_all()
            if not epochs:
                return
            now = self._clock.monotonic_seconds()
            self._recent.append(_Refresh(now - seconds, now, rows))
            while self._recent[0].ended_seconds < now - _SPEED_SECONDS:
                self._recent.popleft()
            self._window_rows = self._window(rows, seconds, executor)
            self._executor = executor
            self._epochs[executor] = self._epochs.get(executor, 0) + epochs
            self._rows[executor] = self._rows.get(executor, 0) + rows

    def _window(self, rows: int, seconds: float, executor: str) -> float:
        least = WINDOW_ROWS_MIN.get(executor, WINDOW_ROWS_MIN["spark"])
        if executor != self._executor:  # its first epoch: what it prepares is not its speed
            return max(self._window_rows, least)
        aim = min(2 * rows * EPOCH_SECONDS_AIM / max(seconds, 0.001), self._window_rows * _GROWTH_MAX)
        return min(max(aim, least), WINDOW_ROWS_MAX)

    def _take(self, position: int) -> int:
        rows = 0
        while self._waiting and self._waiting[0][0].position <= position:
            transaction, _ = self._waiting.popleft()
            rows += transaction.rows
            self._events += transaction.events
            self._injected += transaction.injected
            self._day = transaction.day
        self._waiting_rows -= rows
        return rows

    # ---- all ----

    def end(self) -> None:
        """Let nobody wait any more: the demo is over, or broken."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether ``end`` was called."""
        return self._is_over

    def progress(self) -> Progress:
        """Return how it goes."""
        with self._changed:
            now = self._clock.monotonic_seconds()
            behind = now - self._waiting[0][1] if self._waiting else 0.0
            return Progress(
                day=self._day,
                events=self._events,
                injected=self._injected,
                changes_per_second=self._speed(now),
                behind_seconds=behind,
                behind_transactions=len(self._waiting),
                behind_rows=self._waiting_rows,
                executor=self._executor,
                epochs=dict(self._epochs),
                rows=dict(self._rows),
                is_held=self._is_held(),
            )

    def _speed(self, now: float) -> float:
        if not self._recent:
            return 0.0
        return sum(r.rows for r in self._recent) / max(now - self._recent[0].began_seconds, 0.001)
