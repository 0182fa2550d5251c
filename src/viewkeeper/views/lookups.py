"""Published state as operators look it up: the views space, read in short transactions.

A cadence's state changes only when the cadence itself publishes, and a task checks that its epoch is still the next one
(``pipeline/epoch.py``); so reads of one epoch may use several short transactions and still see one state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.closing import Closing
from viewkeeper.store.key_value import ReadTransaction, Space

MAX_READ_SECONDS = 0.1
# Few enough that the open read transaction is renewed in time.
_PREFIXES_A_READ = 4_096

Fence = Callable[[ReadTransaction], None]


class SpaceLookups(Closing):
    """Lookups over a space; use as a context manager.

    Args:
        space: the views space.
        fence: called with each new read transaction; raises where the epoch is no longer the next one.
        clock: tells how old the open read transaction is.
    """

    def __init__(self, space: Space, fence: Fence | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._space = space
        self._fence = fence
        self._clock = clock
        self._open = ExitStack()
        self._transaction: ReadTransaction | None = None
        self._since = 0.0
        self._reads_before = 0

    def close(self) -> None:
        """End the reading transaction; the next read begins another."""
        self._open.close()
        self._reads_before = self.reads
        self._transaction = None

    @property
    def reads(self) -> int:
        """How much all its transactions have read, the fence's questions included."""
        return self._reads_before + (0 if self._transaction is None else self._transaction.reads)

    def _read(self) -> ReadTransaction:
        now = self._clock.monotonic_seconds()
        if self._transaction is None or now - self._since > MAX_READ_SECONDS:
            self.close()
            transaction = self._open.enter_context(self._space.read())
            if self._fence is not None:
                self._fence(transaction)
            # Only now: behind a fence that has fallen, a second look must not find a transaction that seems good.
            self._transaction, self._since = transaction, now
        return self._transaction

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""
        return self._read().multi_get(state, keys)

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop, in order."""
        yield from self._read().scan(state, start or None, stop, reverse)

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        """Return for all pairs under the ``prefixes``: index of the prefix, value; ``limits`` cut each prefix's."""
        lengths: list[int] = []
        values: list[bytes] = []
        for start in range(0, len(prefixes), _PREFIXES_A_READ):
            stop = start + _PREFIXES_A_READ
            some_limits = None if limits is None else limits[start:stop]
            some_lengths, some = self._multi_scan(state, prefixes[start:stop], some_limits)
            lengths += some_lengths
            values += some
        return np.repeat(np.arange(len(prefixes)), np.array(lengths, np.int64)), values

    def _multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None
    ) -> tuple[list[int], list[bytes]]:
        return self._read().multi_scan(state, prefixes, limits)
