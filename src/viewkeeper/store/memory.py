"""The reference space: a dictionary of persistent sorted maps, the model that other spaces are compared with.

A sorted map is a list of *pages*, each a pair of parallel lists (keys, values) that nobody changes once it is made.
A commit makes new pages where something changed and shares all others, so an open reader keeps its moment for free and
a write of one key costs one page. A write transaction collects its changes in a dictionary per sub-database and folds
them into a map of its own when it must see them in order.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.store.counted_reads import CountedReads
from viewkeeper.store.key_errors import (
    check_key,
    keys_not_ascending,
    store_closed,
    transaction_closed,
    write_in_progress,
)
from viewkeeper.store.key_value import PointGet, ReadTransaction
from viewkeeper.zset.keys import after

PAGE_KEYS = 256

Page = tuple[list[bytes], list[bytes]]
Changes = dict[bytes, bytes | None]


class SortedMap:
    """An unchanging map from bytes to bytes in key order.

    Invariant: no page is empty, all pages but those being merged hold at most ``2 * PAGE_KEYS`` keys, and
    ``firsts[i]`` is the first key of ``pages[i]``.
    """

    __slots__ = ("count", "firsts", "pages")

    def __init__(self, pages: list[Page], count: int) -> None:
        self.pages = pages
        self.firsts = [keys[0] for keys, _ in pages]
        self.count = count

    def get(self, key: bytes) -> bytes | None:
        """Return the value at ``key``, None where it is absent."""
        number = bisect_right(self.firsts, key) - 1
        if number < 0:
            return None
        keys, values = self.pages[number]
        place = bisect_left(keys, key)
        return values[place] if place < len(keys) and keys[place] == key else None

    def slices(self, start: bytes | None, stop: bytes | None) -> Iterator[tuple[Page, int, int]]:
        """Yield (page, from, to) of each page that holds keys with start <= key < stop."""
        first = max(bisect_right(self.firsts, start) - 1, 0) if start else 0
        end = len(self.pages) if stop is None else bisect_left(self.firsts, stop)
        for number in range(first, end):
            keys = self.pages[number][0]
            low = bisect_left(keys, start) if start and number == first else 0
            high = bisect_left(keys, stop) if stop is not None and number == end - 1 else len(keys)
            if low < high:
                yield self.pages[number], low, high

    def scan(self, start: bytes | None, stop: bytes | None, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop in order, backwards where ``reverse``."""
        if reverse:
            for (keys, values), low, high in reversed(list(self.slices(start, stop))):
                yield from zip(reversed(keys[low:high]), reversed(values[low:high]), strict=True)
        else:
            for (keys, values), low, high in self.slices(start, stop):
                yield from zip(keys[low:high], values[low:high], strict=True)

    def with_changes(self, changes: Changes) -> SortedMap:
        """Return the map after ``changes``, where None as value removes the key."""
        if not changes:
            return self
        ordered = sorted(changes)
        pages: list[Page] = []
        count = self.count
        done = 0
        taken = 0
        while taken < len(ordered):
            number = max(bisect_right(self.firsts, ordered[taken]) - 1, 0)
            pages += self.pages[done:number]
            until = len(ordered)
            if number + 1 < len(self.firsts):
                until = bisect_left(ordered, self.firsts[number + 1], taken)
            old: Page = self.pages[number] if self.pages else ([], [])
            new = merged(old, ordered[taken:until], changes)
            count += len(new[0]) - len(old[0])
            pages += split(new)
            done, taken = number + 1, until
        pages += self.pages[done:]
        return SortedMap(pages, count)


EMPTY = SortedMap([], 0)


def merged(page: Page, ordered: list[bytes], changes: Changes) -> Page:
    """Return ``page`` after the changes at the keys ``ordered``."""
    if len(ordered) <= 8:  # the usual small write: edit a copy in place
        keys, values = page[0].copy(), page[1].copy()
        for key in ordered:
            place = bisect_left(keys, key)
            there = place < len(keys) and keys[place] == key
            value = changes[key]
            if value is None:
                if there:
                    del keys[place], values[place]
            elif there:
                values[place] = value
            else:
                keys.insert(place, key)
                values.insert(place, value)
        return keys, values
    union: Changes = dict(zip(*page, strict=True))
    union.update((key, changes[key]) for key in ordered)
    pairs = [(key, value) for key in sorted(union) if (value := union[key]) is not None]
    return [key for key, _ in pairs], [value for _, value in pairs]


def split(page: Page) -> list[Page]:
    """Return ``page`` as pages of legal size; none for an empty one."""
    keys, values = page
    if len(keys) <= 2 * PAGE_KEYS:
        return [page] if keys else []
    return [(keys[at : at + PAGE_KEYS], values[at : at + PAGE_KEYS]) for at in range(0, len(keys), PAGE_KEYS)]


class MemoryReadTransaction(CountedReads):
    """One moment of a `MemorySpace`."""

    def __init__(self, space: MemorySpace) -> None:
        self._space = space
        self._maps: dict[str, SortedMap] = {}
        self._open = False
        self._asked, self._supply = 0, None

    def __enter__(self) -> Self:
        self._maps = self._space.enter_reader(self)
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._maps = {}
        self._space.leave_reader(self)

    def _map(self, database: str) -> SortedMap:
        """Return the sub-database as this transaction sees it."""
        if not self._open:
            raise transaction_closed()
        return self._maps.get(database, EMPTY)

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return the value at ``key``, None where it is absent."""
        found = self._map(database)
        self._asked += 1
        return found.get(key)

    def multi_get(self, database: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys``, in order."""
        get = self._map(database).get
        self._asked += len(keys)
        return [get(key) for key in keys]

    def scan(
        self, database: str, start: bytes | None = None, stop: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop in ascending order, or descending where ``reverse``."""
        return self._counted(self._map(database).scan(start, stop, reverse))

    def multi_scan(
        self, database: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[list[int], list[bytes]]:
        """Return for each prefix how many keys start with it, and the values of all of them, in order.

        Args:
            database: the sub-database.
            prefixes: what the keys start with.
            limits: per prefix how many keys are enough; None for all.
        """
        ends = [None] * len(prefixes) if limits is None else limits
        found = [
            [value for _, value in islice(self.scan(database, prefix, after(prefix)), end)]
            for prefix, end in zip(prefixes, ends, strict=True)
        ]
        self._asked += len(prefixes)
        return [len(some) for some in found], [value for some in found for value in some]

    def scan_keys(self, database: str, start: bytes | None = None, stop: bytes | None = None) -> Iterator[bytes]:
        """Yield only the keys."""
        return (key for key, _ in self.scan(database, start, stop))

    def count(self, database: str) -> int:
        """Return how many pairs the sub-database holds."""
        return self._map(database).count

    def size_bytes(self, database: str) -> int:
        """Return the bytes of the sub-database's keys and values."""
        return sum(len(key) + len(value) for key, value in self._map(database).scan(None, None, False))

    def databases(self) -> list[str]:
        """Return the names of all sub-databases, sorted."""
        self._map("")
        return sorted(self._maps)


class MemoryWriteTransaction(MemoryReadTransaction):
    """The one write transaction of a `MemorySpace`."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._changes: dict[str, Changes] = {}

    def __enter__(self) -> Self:
        self._maps = self._space.enter_writer()
        self._changes = {}
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        maps = None
        try:
            if kind is None:
                for database in list(self._changes):
                    self._map(database)
                maps = self._maps
        finally:
            self._open = False
            self._maps, self._changes = {}, {}
            self._space.leave_writer(maps)

    def _map(self, database: str) -> SortedMap:
        """Return the sub-database with the changes made so far folded in."""
        found = super()._map(database)
        changes = self._changes.pop(database, None)
        if changes:
            found = self._maps[database] = found.with_changes(changes)
        return found

    def _pending(self, database: str) -> Changes:
        """Return the changes of a sub-database that are not folded in, creating it where it is absent."""
        pending = self._changes.get(database)
        if pending is None:
            if database not in self._maps:
                self._maps[database] = super()._map(database)
            pending = self._changes[database] = {}
        return pending

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return the value at ``key``, None where it is absent."""
        found = self._find(database, key)
        self._asked += 1
        return found

    def _find(self, database: str, key: bytes) -> bytes | None:
        """Return the value at ``key`` without folding in what is pending."""
        changes = self._changes.get(database)
        if changes and key in changes:
            return changes[key]
        return super()._map(database).get(key)

    def multi_get(self, database: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys``, in order."""
        found = [self._find(database, key) for key in keys]
        self._asked += len(keys)
        return found

    def put(self, database: str, key: bytes, value: bytes) -> None:
        """Write ``value`` at ``key``, over what was there."""
        check_key(key)
        self._pending(database)[key] = value

    def multi_put(self, database: str, pairs: Iterable[tuple[bytes, bytes]], append: bool = False) -> None:
        """Write all pairs; ``append`` promises that their keys ascend and lie behind all that is there."""
        last = next(self._map(database).scan(None, None, True), (b"", b""))[0] if append else b""
        written: Changes = {}
        for key, value in pairs:
            check_key(key)
            if append:
                if key <= last:
                    raise keys_not_ascending(database)
                last = key
            written[key] = value
        self._pending(database).update(written)

    def delete(self, database: str, key: bytes) -> bool:
        """Remove ``key``; return whether it was there."""
        if self._find(database, key) is None:
            return False
        self._pending(database)[key] = None
        return True

    def multi_delete(self, database: str, keys: Iterable[bytes]) -> None:
        """Remove all ``keys``; absent ones do nothing."""
        for key in keys:
            self.delete(database, key)

    def delete_range(self, database: str, start: bytes | None, stop: bytes | None, limit: int | None = None) -> int:
        """Remove the keys with start <= key < stop, at most ``limit``; return how many went."""
        doomed = [key for key, _ in islice(self._map(database).scan(start, stop, False), limit)]
        if doomed:
            self._pending(database).update(dict.fromkeys(doomed))
        return len(doomed)

    def drop(self, database: str) -> None:
        """Remove the sub-database with all that it holds; absent ones do nothing."""
        self._map(database)
        self._maps.pop(database, None)

    def rename(self, old: str, new: str) -> None:
        """Let the sub-database ``old`` be found as ``new``, in place of what was there."""
        self._map(old)
        if old == new:
            return
        self.drop(new)
        if old in self._maps:
            self._maps[new] = self._maps.pop(old)


class MemorySpace:
    """A space in this process's memory; it goes with the object.

    Args:
        clock: where the ages of readers come from.

    Example:
        >>> space = MemorySpace()
        >>> with space.write() as transaction:
        ...     transaction.put("t", b"k", b"v")
        >>> with space.read() as transaction:
        ...     transaction.get("t", b"k")
        b'v'
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._maps: dict[str, SortedMap] = {}
        self._writer, self._next_writer = threading.Lock(), threading.Lock()
        self._writing_thread = 0
        self._readers: dict[int, float] = {}
        self._closed = False

    def read(self) -> MemoryReadTransaction:
        """Open a read transaction."""
        return MemoryReadTransaction(self)

    def point_get(self, database: str, is_current: Callable[[ReadTransaction], bool]) -> PointGet:
        """Return a get of single keys, each at the moment of its call."""

        def get(key: bytes) -> bytes | None:
            with self.read() as txn:
                return txn.get(database, key) if is_current(txn) else None

        return get

    def write(self) -> MemoryWriteTransaction:
        """Open the write transaction; waits for its turn."""
        return MemoryWriteTransaction(self)

    def sync(self) -> None:
        """Do nothing: there is no disk."""
        self._check_open()

    def size_bytes(self) -> int:
        """Return the bytes of all keys and values."""
        self._check_open()
        pages = [page for found in self._maps.values() for page in found.pages]
        return sum(sum(map(len, keys)) + sum(map(len, values)) for keys, values in pages)

    def release_memory(self) -> None:
        """Do nothing: what is stored is in memory."""

    def readers(self) -> list[tuple[int, float]]:
        """Return (process id, age in seconds) of the open read transactions, the oldest first; the process is 0."""
        self._check_open()
        now = self._clock.monotonic_seconds()
        return [(0, now - since) for since in list(self._readers.values())]

    def close(self) -> None:
        """Forget everything; closing twice is fine."""
        self._closed = True
        self._maps = {}

    def enter_reader(self, reader: MemoryReadTransaction) -> dict[str, SortedMap]:
        """Register a reader and return the present state, which no commit changes."""
        self._check_open()
        self._readers[id(reader)] = self._clock.monotonic_seconds()
        return self._maps

    def leave_reader(self, reader: MemoryReadTransaction) -> None:
        """Forget a reader."""
        self._readers.pop(id(reader), None)

    def enter_writer(self) -> dict[str, SortedMap]:
        """Wait for the writer's turn and return a copy of the state to work on."""
        self._check_open()
        if self._writing_thread == threading.get_ident():
            raise write_in_progress()
        # Who waits is next: a thread that writes again and again would take the lock back before others wake up.
        with self._next_writer:
            self._writer.acquire()
        self._writing_thread = threading.get_ident()
        return dict(self._maps)

    def leave_writer(self, maps: dict[str, SortedMap] | None) -> None:
        """End the writer's turn, making ``maps`` the state, or leaving it where that is None."""
        if maps is not None and not self._closed:
            self._maps = maps
        self._writing_thread = 0
        self._writer.release()

    def _check_open(self) -> None:
        if self._closed:
            raise store_closed()
