"""What the running maintainer shows: per cadence its last epoch, pace and lag, as a picture, as lines, or as JSON."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from viewkeeper.cli.output import counted, duration, json_text, say, table
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.errors import ViewkeeperError

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = ("cadence", "epoch", "position", "behind", "rows", "rows/s", "epoch time", "executor")
_RIGHT = (False, True, True, True, True, True, True, False)
_PACE_SECONDS = 10.0


@dataclass
class _Pace:
    """What a cadence has done lately."""

    last: Outcome
    rows: int = 0
    is_news: bool = True
    recent: deque[tuple[float, int]] = field(default_factory=deque)


class Board:
    """Collects what the maintainer reports, in its thread, for the thread that shows it.

    Args:
        coordinator: knows the log's end.
        store: the store as the user named it.
        as_json: print each epoch as a line of JSON, when it is reported.
    """

    def __init__(self, coordinator: Coordinator, store: str, as_json: bool = False) -> None:
        self.store = store
        self._coordinator = coordinator
        self._as_json = as_json
        self._lock = threading.Lock()
        self._paces: dict[str, _Pace] = {}
        self._epochs = 0
        self._rows = 0
        self._started = coordinator.clock.monotonic_seconds()

    def note_epoch(self, outcome: Outcome) -> None:
        """Take in a published epoch."""
        now = self._coordinator.clock.monotonic_seconds()
        with self._lock:
            pace = self._paces.setdefault(outcome.cadence, _Pace(outcome))
            pace.last, pace.is_news = outcome, True
            pace.rows += outcome.log_rows
            pace.recent.append((now, outcome.log_rows))
            self._epochs += 1
            self._rows += outcome.log_rows
        if self._as_json:
            print(json_text({**asdict(outcome), "behind": self._coordinator.head() - outcome.position}), flush=True)

    def note_error(self, error: ViewkeeperError) -> None:
        """Take in an error that the maintainer has survived."""
        say(f"{error} It is tried again by itself.")

    def picture(self, is_stopping: bool = False) -> RenderableType:
        """Return the board as it stands, to be drawn.

        Args:
            is_stopping: whether the end was asked for.
        """
        ending = "ending after the running epoch" if is_stopping else "Ctrl-C ends"
        title = f"Maintaining {self.store}: {self.summary()}; {ending}"
        head = self._coordinator.head()
        with self._lock:
            rows = [self._row(pace, head) for _, pace in sorted(self._paces.items())]
        return table(_COLUMNS, rows or [("nothing yet", "", head, "", "", "", "", "")], _RIGHT, title)

    def news(self) -> Iterator[str]:
        """Yield a line for each cadence that has published since the last call."""
        head = self._coordinator.head()
        with self._lock:
            fresh = [pace for _, pace in sorted(self._paces.items()) if pace.is_news]
            for pace in fresh:
                pace.is_news = False
            rows = [self._row(pace, head) for pace in fresh]
        for row in rows:
            yield " ".join(f"{name}={value}" for name, value in zip(_LINE_NAMES, row, strict=True))

    def summary(self) -> str:
        """Return what was done since the start."""
        seconds = self._coordinator.clock.monotonic_seconds() - self._started
        return f"{counted(self._epochs, 'epoch')}, {counted(self._rows, 'row')} in {duration(seconds)}"

    def _row(self, pace: _Pace, head: int) -> tuple[object, ...]:
        last = pace.last
        behind = max(head - last.position, 0)
        rate = f"{self._rate(pace):.0f}"
        return last.cadence, last.epoch, last.position, behind, pace.rows, rate, duration(last.seconds), last.executor

    def _rate(self, pace: _Pace) -> float:
        """Return rows per second over the last seconds; over the time there was where it is less."""
        now = self._coordinator.clock.monotonic_seconds()
        while pace.recent and pace.recent[0][0] < now - _PACE_SECONDS:
            pace.recent.popleft()
        over = min(_PACE_SECONDS, max(now - self._started, 0.001))
        return sum(rows for _, rows in pace.recent) / over


_LINE_NAMES = tuple(name.replace("/", "_per_").replace(" ", "_") for name in _COLUMNS)
