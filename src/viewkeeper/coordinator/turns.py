"""Turns: the threads of one process that run epochs side by side run no two of one cadence at once.

The store's fences make that safe in any case: of two that run one epoch, one publishes and the other has worked in
vain. Here the other waits instead, and finds the epoch published.

What memory there is they share: an epoch that needs a good part of it is planned for what the others leave, at least
for a sixteenth, so that none waits for one that takes a minute.

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

# What of the memory an epoch may take in any case.
LEAST_PART = 1 / 16
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
        >>> with turns.of("continuous"), turns.part(0.75) as is_granted:
        ...     is_granted, turns.free_part
        (True, 0.25)
        >>> turns.free_part
        1.0
    """

    def __init__(self) -> None:
        self._counting = Lock()
        self._turns: dict[str, _Turn] = {}
        self._taken = 0.0

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
    def free_part(self) -> float:
        """Which part of the memory for epochs the next one may take."""
        return min(max(1.0 - self._taken, LEAST_PART), 1.0)

    @contextmanager
    def part(self, part: float) -> Iterator[bool]:
        """Have a part of the memory inside the block.

        Args:
            part: which, at most what ``free_part`` was.

        Yields:
            Whether it was granted: others may have taken it meanwhile.
        """
        with self._counting:
            is_granted = part <= self.free_part
            taken = part if is_granted else 0.0
            self._taken += taken
        try:
            yield is_granted
        finally:
            with self._counting:
                self._taken -= taken
