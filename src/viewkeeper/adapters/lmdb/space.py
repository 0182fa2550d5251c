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
        """Return (process id, age in seconds) of the open read transactions; clears dead ones.

        LMDB does not tell the age of those of other processes: it is -1.0.
        """
        shared = self.shared()
        environment = shared.live()
        try:
            environment.reader_check()
            lines = environment.readers().splitlines()
        except lmdb.Error as error:  # another thread has closed it meanwhile
            raise translated(error, shared.path) from error
        now = shared.clock.monotonic_seconds()
        own = os.getpid()
        found = [(own, now - since) for since, _ in list(shared.reading.values())]
        for line in lines:
            fields = line.split()
            if len(fields) == 3 and fields[0].isdigit() and fields[2] != "-" and int(fields[0]) != own:
                found.append((int(fields[0]), -1.0))
        return found

    def close(self) -> None:
        """Let go of the environment; closing twice is fine."""
        shared, self._shared = self._shared, None
        if shared is not None:
            REGISTRY.release(shared)
