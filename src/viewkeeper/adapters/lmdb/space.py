"""A space in an LMDB environment."""

from __future__ import annotations

import os
from collections.abc import Callable

import lmdb

from viewkeeper.adapters.lmdb.environment import SharedEnvironment
from viewkeeper.adapters.lmdb.failures import translated
from viewkeeper.adapters.lmdb.options import DEFAULT_OPTIONS, EnvironmentOptions
from viewkeeper.adapters.lmdb.point_reads import point_get
from viewkeeper.adapters.lmdb.registry import REGISTRY
from viewkeeper.adapters.lmdb.transactions import LmdbReadTransaction, LmdbWriteTransaction
from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.store.key_errors import store_closed
from viewkeeper.store.key_value import PointGet, ReadTransaction


class LmdbSpace:
    """A space in one LMDB environment.

    Args:
        path: the environment's folder; it is made where its parent exists.
        options: how to open it.
        clock: where the ages of readers come from.

    Raises:
        StoreError: for what opening meets: no right to write, no address space, damage.
    """

    def __init__(self, path: str, options: EnvironmentOptions = DEFAULT_OPTIONS, clock: Clock = SYSTEM_CLOCK) -> None:
        self._shared: SharedEnvironment | None = REGISTRY.acquire(path, options, clock)

    def shared(self) -> SharedEnvironment:
        """Return the environment that this space uses.

        Raises:
            StoreError: STORE_CLOSED.
        """
        if self._shared is None:
            raise store_closed()
        return self._shared

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._shared is None

    def read(self) -> LmdbReadTransaction:
        """Open a read transaction; keep it short (100 ms), an open reader holds back reuse of space."""
        return LmdbReadTransaction(self)

    def point_get(self, database: str, is_current: Callable[[ReadTransaction], bool]) -> PointGet:
        """Return a get of single keys, each at the moment of its call."""
        return point_get(self, database, is_current)

    def write(self) -> LmdbWriteTransaction:
        """Open the write transaction; waits for its turn."""
        return LmdbWriteTransaction(self)

    def sync(self) -> None:
        """Force everything committed so far to disk."""
        self.shared().sync()

    def size_bytes(self) -> int:
        """Return the bytes in use: all pages of the file up to the last that was ever written."""
        shared = self.shared()
        environment = shared.live()
        try:
            size: int = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        except lmdb.Error as error:  # another thread has closed it meanwhile
            raise translated(error, shared.path) from error
        return size

    def release_memory(self) -> None:
        """Let go of memory of this process that only shows what is stored."""
        self.shared().release_memory()

    def readers(self) -> list[tuple[int, float]]:
        """Return (process id, age in seconds) of the open read transactions, the oldest first; clears dead ones.

        LMDB does not tell the age of those of other processes: it is -1.0.
        """
        shared = self.shared()
        environment = shared.live()
        try:
            environment.reader_check()
            lines = environment.readers().splitlines()
        except lmdb.Error as error:  # another thread has closed it meanwhile
            raise translated(error, shared.path) from error
        own, now = os.getpid(), shared.clock.monotonic_seconds()
        ages = sorted((now - since for since, _ in list(shared.reading.values())), reverse=True)
        slots = [(int(fields[2]), int(fields[0])) for fields in map(str.split, lines) if _is_reading(fields)]
        # Who reads an older state began earlier. Own transactions that come or go meanwhile are the youngest.
        states = sorted(state for state, process in slots if process == own)[: len(ages)]
        states += [max((state for state, _ in slots), default=0)] * (len(ages) - len(states))
        found = [(state, process, -1.0) for state, process in slots if process != own]
        found += [(state, own, age) for state, age in zip(states, ages, strict=True)]
        return [(process, age) for _, process, age in sorted(found, key=lambda each: each[0])]

    def close(self) -> None:
        """Let go of the environment; closing twice is fine."""
        shared, self._shared = self._shared, None
        if shared is not None:
            REGISTRY.release(shared)


def _is_reading(fields: list[str]) -> bool:
    """Return whether a line of LMDB's table of readers is a process with an open transaction: its id, thread, state."""
    return len(fields) == 3 and fields[0].isdigit() and fields[2] != "-"
