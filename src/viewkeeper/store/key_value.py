"""The raw port: an ordered key-value *space* with transactions. LMDB and memory implement it, nothing else knows them.

A store has two spaces so that publishing never blocks a client's write: *base* (tables, log, catalog) and *views*
(views, arrangements, change logs, epochs). Sub-databases are named by text, created by the first write, and absent
ones read as empty. Keys are bytes of 1 to 511, values bytes of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

MAX_KEY_BYTES = 511

PointGet = Callable[[bytes], "bytes | None"]


class ReadTransaction(Protocol):
    """One unchanging moment of a space."""

    @property
    def reads(self) -> int:
        """How much was read so far: the unit in which the work of an epoch is bounded, the same number in every store.

        Each key that ``get`` and ``multi_get`` were asked for counts one, there or not, as often as it was asked for;
        each prefix that ``multi_scan`` was asked for, and each value that it returned; each pair or key that a scan has
        yielded, and none that it would have yielded had it not been left. What the store knows without reading pairs
        counts nothing (``count``, ``size_bytes``, ``databases``), nor does what a write looks for. The number only
        grows, and stays when the transaction is over.
        """

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return the value at ``key``, None where it is absent."""

    def multi_get(self, database: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys``, in order; fastest when they ascend."""

    def scan(
        self, database: str, start: bytes | None = None, stop: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop in ascending order, or descending where ``reverse``."""

    def multi_scan(
        self, database: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[list[int], list[bytes]]:
        """Return for each prefix how many keys start with it, and the values of all of them, in order.

        Args:
            database: the sub-database.
            prefixes: bytes of at least one each; fastest when they ascend.
            limits: per prefix how many keys are enough; None for all.
        """

    def scan_keys(self, database: str, start: bytes | None = None, stop: bytes | None = None) -> Iterator[bytes]:
        """Yield only the keys, without reading values."""

    def count(self, database: str) -> int:
        """Return how many pairs the sub-database holds."""

    def size_bytes(self, database: str) -> int:
        """Return how many bytes the sub-database takes, its pages' free space included."""

    def databases(self) -> list[str]:
        """Return the names of all sub-databases, sorted."""


class WriteTransaction(ReadTransaction, Protocol):
    """All or nothing: what is written becomes visible to others when the block is left without an exception.

    Reads inside see the transaction's own writes.
    """

    def put(self, database: str, key: bytes, value: bytes) -> None:
        """Write ``value`` at ``key``, over what was there."""

    def multi_put(self, database: str, pairs: Iterable[tuple[bytes, bytes]], append: bool = False) -> None:
        """Write all pairs; ``append`` promises that their keys ascend and lie behind all that is there."""

    def delete(self, database: str, key: bytes) -> bool:
        """Remove ``key``; return whether it was there."""

    def multi_delete(self, database: str, keys: Iterable[bytes]) -> None:
        """Remove all ``keys``; absent ones do nothing."""

    def delete_range(self, database: str, start: bytes | None, stop: bytes | None, limit: int | None = None) -> int:
        """Remove the keys with start <= key < stop, at most ``limit``; return how many went."""

    def drop(self, database: str) -> None:
        """Remove the sub-database with all that it holds; absent ones do nothing."""

    def rename(self, old: str, new: str) -> None:
        """Let the sub-database ``old`` be found as ``new``, in place of what was there, without copying it."""


class Space(Protocol):
    """One environment of a store: many readers, one writer at a time, across processes."""

    def read(self) -> AbstractContextManager[ReadTransaction]:
        """Open a read transaction; keep it short (100 ms), an open reader holds back reuse of space."""

    def point_get(self, database: str, is_current: Callable[[ReadTransaction], bool]) -> PointGet:
        """Return a get of single keys, each at the moment of its call, for those who get many.

        It answers None where the key is absent, and where ``is_current`` is false at that moment. It is of no
        transaction that anybody holds: nothing counts it.

        Args:
            database: the sub-database.
            is_current: a condition on what the moment holds, and on nothing else: it is asked anew after commits only.
        """

    def write(self) -> AbstractContextManager[WriteTransaction]:
        """Open the write transaction; waits for its turn."""

    def sync(self) -> None:
        """Force everything committed so far to disk."""

    def size_bytes(self) -> int:
        """Return the bytes in use."""

    def release_memory(self) -> None:
        """Let go of memory of this process that only shows what is stored; it takes it again where it reads again."""

    def readers(self) -> list[tuple[int, float]]:
        """Return (process id, age in seconds, -1.0 where unknown) of open reads, the oldest first; clears dead ones."""
