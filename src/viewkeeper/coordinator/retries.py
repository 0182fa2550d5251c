"""What the maintainer does about errors: one piece of work waits and is tried again, all others go on.

A full disk, a map without room, too many readers: all end some day, and what failed has left nothing half done, since
it was one transaction. So a piece of work that fails is tried again after a pause, which doubles from one failure to
the next up to a bound. What waits so is told to whoever asks for the store's status, and told no more once it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TypeVar

from viewkeeper.clock import Clock
from viewkeeper.errors import ViewkeeperError

T = TypeVar("T")

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 10.0
# Trying again cannot help: the store is closed, gone, or must be restored.
FINAL = frozenset({"STORE_CLOSED", "STORE_CORRUPT", "STORE_FORMAT_NEWER", "STORE_NOT_FOUND"})


@dataclass(frozen=True)
class Trouble:
    """Work that the maintainer could not do, and tries again.

    Args:
        task: what it is, for people.
        code: of the error.
        message: what happened, and what to do about it.
        since_seconds: when it failed first, in seconds since 1970.
        attempts: how often it has failed since.
        pause_seconds: how long it waits after the last failure.
    """

    task: str
    code: str
    message: str
    since_seconds: float
    attempts: int
    pause_seconds: float


class Retries:
    """The work of one maintainer that has failed; its threads may attempt different work at once.

    Args:
        clock: where time comes from.
        complain: called with an error when it is news.
        note: called with all troubles there are whenever that changes.

    Example:
        >>> from viewkeeper.clock import SimulatedClock
        >>> from viewkeeper.errors import StoreError
        >>> def write():
        ...     raise StoreError("DISK_FULL", "Make room.")
        >>> clock, tried = SimulatedClock(), Retries(SimulatedClock(), print)
        >>> tried.attempt("purging the log", write)
        [DISK_FULL] Make room.
        >>> tried.attempt("purging the log", write), tried.attempt("filling view v", lambda: 7)
        (None, 7)
    """

    def __init__(
        self,
        clock: Clock,
        complain: Callable[[ViewkeeperError], None] = lambda error: None,
        note: Callable[[Sequence[Trouble]], None] = lambda troubles: None,
    ) -> None:
        self._clock = clock
        self._complain = complain
        self._note = note
        self._troubles: dict[str, Trouble] = {}
        self._due: dict[str, float] = {}
        self._lock = RLock()

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What has failed and waits."""
        with self._lock:
            return tuple(self._troubles.values())

    def is_waiting(self, task: str) -> bool:
        """Return whether work has failed and is not to be tried again yet."""
        due = self._due.get(task)
        return due is not None and self._clock.monotonic_seconds() < due

    def attempt(self, task: str, work: Callable[[], T]) -> T | None:
        """Do ``work`` and return what it returns; None where it fails, or has failed and must wait.

        Args:
            task: what it is, for people; the same one each time.
            work: does it; whole or not at all.

        Raises:
            ViewkeeperError: what cannot end by itself, see ``FINAL``.
        """
        if self.is_waiting(task):
            return None
        try:
            done = work()
        except ViewkeeperError as error:
            if error.code in FINAL:
                raise
            self._failed(task, error)
            return None
        with self._lock:
            if self._troubles.pop(task, None) is not None:
                del self._due[task]
                self._note(self.troubles)
        return done

    def keep(self, tasks: Collection[str]) -> None:
        """Forget work that there is no more: its view was dropped.

        Args:
            tasks: the work that there is.
        """
        with self._lock:
            gone = self._troubles.keys() - set(tasks)
            for task in gone:
                del self._troubles[task], self._due[task]
            if gone:
                self._note(self.troubles)

    def _failed(self, task: str, error: ViewkeeperError) -> None:
        with self._lock:
            self._note_failure(task, error)

    def _note_failure(self, task: str, error: ViewkeeperError) -> None:
        before = self._troubles.get(task)
        pause = PAUSE_SECONDS_MIN if before is None else min(2 * before.pause_seconds, PAUSE_SECONDS_MAX)
        since = self._clock.now_seconds() if before is None else before.since_seconds
        attempts = 1 if before is None else before.attempts + 1
        self._troubles[task] = Trouble(task, error.code, error.message, since, attempts, pause)
        self._due[task] = self._clock.monotonic_seconds() + pause
        self._note(self.troubles)
        if before is None or (before.code, before.message) != (error.code, error.message):
            self._complain(error)
