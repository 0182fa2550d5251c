"""Turns: the threads of one process that run epochs side by side run no two of one cadence at once.

The store's fences make that safe in any case: of two that run one epoch, one publishes and the other has worked in
vain. Here the other waits instead, and finds the epoch published.

Nobody waits for a turn in a circle: only builds wait for others while they have their own, first for those of other
builds, then for those of the cadences that they join or borrow from; and of those that swap (``of_all``), which have
several, there is one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any

# No cadence's name has a space.
_SWAP = "a swap"


@dataclass
class _Turn:
    """A cadence's turn: who has it may take it again, and it is forgotten when nobody has or wants it."""

    # RLock is a function.
    lock: Any = field(default_factory=RLock)
    wanted: int = 0


class Turns:
    """Whose turn it is, among the coordinators of one process.

    Example:
        >>> turns = Turns()
        >>> with turns.of("continuous"), turns.large(True):
        ...     turns.large_running
        1
        >>> turns.large_running
        0
    """

    def __init__(self) -> None:
        self._counting = Lock()
        self._turns: dict[str, _Turn] = {}
        self._large = 0

    @contextmanager
    def of(self, cadence: str) -> Iterator[None]:
        """Have the turn of ``cadence`` inside the block, and wait for it before.

        Args:
            cadence: its name.
        """
        with self._counting:
            turn = self._turns.setdefault(cadence, _Turn())
            turn.wanted += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._counting:
                turn.wanted -= 1
                if not turn.wanted:
                    del self._turns[cadence]

    @contextmanager
    def of_all(self, builds: Iterable[str], targets: Iterable[str]) -> Iterator[None]:
        """Have the turns of builds and of the cadences that they join; others that want several wait.

        Args:
            builds: names of build cadences.
            targets: names of the others.
        """
        with ExitStack() as stack:
            for cadence in (_SWAP, *sorted(set(builds)), *sorted(set(targets))):
                stack.enter_context(self.of(cadence))
            yield

    @property
    def large_running(self) -> int:
        """How many epochs run that take a good part of the memory that there is."""
        return self._large

    @contextmanager
    def large(self, is_large: bool) -> Iterator[None]:
        """Count the block among the large epochs that run, if it is one.

        Args:
            is_large: whether it is.
        """
        with self._counting:
            self._large += is_large
        try:
            yield
        finally:
            with self._counting:
                self._large -= is_large
