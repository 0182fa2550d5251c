"""Transactions of a space in an LMDB environment.

Cost of the hot path, single get: begin a read transaction (LMDB renews the last one), read the header of the table of
names, look the name up in the table that belongs to it, get, abort.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self

import lmdb

from viewkeeper.adapters.lmdb.environment import Handle, Handles
from viewkeeper.adapters.lmdb.failures import translated
from viewkeeper.adapters.lmdb.names import HEADER, NAME_BYTES_MAX, Header, key_of, physical
from viewkeeper.adapters.lmdb.registry import REGISTRY
from viewkeeper.errors import InputError, StoreError, ViewkeeperError
from viewkeeper.store.counted_reads import CountedReads
from viewkeeper.store.key_errors import key_length_invalid, keys_not_ascending, store_closed, transaction_closed

if TYPE_CHECKING:
    from viewkeeper.adapters.lmdb.space import LmdbSpace

_value_of = itemgetter(1)

# Physical sub-databases are made so many at a time, so that other processes seldom meet a new one.
MADE_AT_ONCE = 16


class ClosedTable(dict[str, Any]):
    """The table of names of a transaction that is over: every look-up is an error."""

    def get(self, *_: object) -> Never:
        """Refuse."""
        raise transaction_closed()


CLOSED_TABLE: Handles = ClosedTable()


class LmdbReadTransaction(CountedReads):
    """One unchanging moment of an `LmdbSpace`."""

    __slots__ = ("_generation", "_get", "_shared", "_space", "_table", "_transaction")

    def __init__(self, space: LmdbSpace) -> None:
        self._space = space
        self._table = CLOSED_TABLE
        self._transaction: Any = None
        self._asked, self._supply = 0, None

    def __enter__(self) -> Self:
        shared = self._shared = self._space.shared()
        # Before it begins, so that nobody moves the map under it.
        shared.reading[id(self)] = (shared.clock.monotonic_seconds(), get_ident())
        try:
            self._transaction, self._table = shared.begin_read()
        except BaseException:
            shared.reading.pop(id(self), None)
            raise
        self._get = self._transaction.get
        self._generation = REGISTRY.generation
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        transaction = self._forget()
        if transaction is not None:
            transaction.abort()

    def _forget(self) -> Any:
        """End this object's part; return the LMDB transaction, None in a forked child, which must leave it alone."""
        transaction = self._transaction
        self._table = CLOSED_TABLE
        self._transaction = self._get = None
        if self._generation != REGISTRY.generation:
            REGISTRY.inherit(transaction)
            return None
        self._shared.reading.pop(id(self), None)
        return transaction

    def _failed(self, error: lmdb.Error) -> ViewkeeperError:
        """Return the store's error for an error of LMDB; whatever ended it, a closed store is closed."""
        return store_closed() if self._space.is_closed else translated(error, self._shared.path)

    def get(self, database: str, key: bytes) -> bytes | None:
        """Return the value at ``key``, None where it is absent."""
        handle = self._table.get(database)
        self._asked += 1
        if handle is None:
            return None
        try:
            found: bytes | None = self._get(key, None, handle)
        except lmdb.Error as error:
            if not key:
                return None
            raise self._failed(error) from error
        return found

    def multi_get(self, database: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys``, in order; fastest when they ascend."""
        handle = self._table.get(database)
        self._asked += len(keys)
        if handle is None:
            return [None] * len(keys)
        try:
            pairs = self._transaction.cursor(handle).getmulti(keys)
        except lmdb.BadValsizeError:  # an empty key, which nothing has
            self._asked -= len(keys)  # each counts itself
            return [self.get(database, key) for key in keys]
        except lmdb.Error as error:
            raise self._failed(error) from error
        if len(pairs) == len(keys):
            return list(map(_value_of, pairs))
        return list(map(dict(pairs).get, keys))

    def scan(
        self, database: str, start: bytes | None = None, stop: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop in ascending order, or descending where ``reverse``."""
        handle = self._table.get(database)
        if handle is None:
            return iter(())
        cursor = self._cursor(handle)
        if reverse:
            return self._descend(cursor, start, stop)
        return self._ascend(cursor, start, stop)

    def _ascend(self, cursor: Any, start: bytes | None, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a range in ascending order."""
        try:
            if start and not cursor.set_range(start):
                return
            if stop is None:
                yield from self._counted(cursor.iternext())
                return
            for pair in self._counted(cursor.iternext()):
                if pair[0] >= stop:
                    self._asked -= 1  # was taken and is not yielded
                    return
                yield pair
        except lmdb.Error as error:
            raise self._failed(error) from error

    def _descend(self, cursor: Any, start: bytes | None, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a range in descending order."""
        try:
            # The first pair is the last one before ``stop``; without a position iterprev begins at the very last.
            if stop is not None and (not stop or (cursor.set_range(stop) and not cursor.prev())):
                return
            if not start:
                yield from self._counted(cursor.iterprev())
                return
            for pair in self._counted(cursor.iterprev()):
                if pair[0] < start:
                    self._asked -= 1  # was taken and is not yielded
                    return
                yield pair
        except lmdb.Error as error:
            raise self._failed(error) from error

    def multi_scan(
        self, database: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[list[int], list[bytes]]:
        """Return for each prefix how many keys start with it, and the values of all of them, in order.

        Args:
            database: the sub-database.
            prefixes: what the keys start with.
            limits: per prefix how many keys are enough; None for all.
        """
        handle = self._table.get(database)
        self._asked += len(prefixes)
        if handle is None:
            return [0] * len(prefixes), []
        cursor = self._cursor(handle)
        lengths: list[int] = []
        values: list[bytes] = []
        try:
            for prefix, limit in zip(prefixes, repeat(None) if limits is None else limits, strict=False):
                before = len(values)
                if cursor.set_range(prefix):
                    for key, value in cursor.iternext() if limit is None else islice(cursor.iternext(), limit):
                        if not key.startswith(prefix):
                            break
                        values.append(value)
                lengths.append(len(values) - before)
        except lmdb.Error as error:
            raise self._failed(error) from error
        self._asked += len(values)
        return lengths, values

    def scan_keys(self, database: str, start: bytes | None = None, stop: bytes | None = None) -> Iterator[bytes]:
        """Yield only the keys, without reading values."""
        handle = self._table.get(database)
        if handle is None:
            return iter(())
        return self._ascend_keys(self._cursor(handle), start, stop)

    def _ascend_keys(self, cursor: Any, start: bytes | None, stop: bytes | None) -> Iterator[bytes]:
        """Yield the keys of a range in ascending order."""
        try:
            if start and not cursor.set_range(start):
                return
            for key in self._counted(cursor.iternext(True, False)):
                if stop is not None and key >= stop:
                    self._asked -= 1  # was taken and is not yielded
                    return
                yield key
        except lmdb.Error as error:
            raise self._failed(error) from error

    def count(self, database: str) -> int:
        """Return how many pairs the sub-database holds."""
        handle = self._table.get(database)
        if handle is None:
            return 0
        try:
            entries: int = self._transaction.stat(handle)["entries"]
        except lmdb.Error as error:
            raise self._failed(error) from error
        return entries

    def size_bytes(self, database: str) -> int:
        """Return how many bytes the sub-database takes, its pages' free space included."""
        handle = self._table.get(database)
        if handle is None:
            return 0
        try:
            stat = self._transaction.stat(handle)
        except lmdb.Error as error:
            raise self._failed(error) from error
        pages: int = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return pages * int(stat["psize"])

    def databases(self) -> list[str]:
        """Return the names of all sub-databases, sorted."""
        self._table.get("")
        return sorted(self._table)

    def place_of(self, database: str) -> tuple[int, Handle]:
        """Return the number of the last commit, and the handle of the sub-database, None where it is not there."""
        try:
            return self._transaction.id(), self._table.get(database)
        except lmdb.Error as error:
            raise self._failed(error) from error

    def _cursor(self, handle: Handle) -> Any:
        """Return a cursor of a sub-database."""
        try:
            return self._transaction.cursor(handle)
        except lmdb.Error as error:
            raise self._failed(error) from error


class LmdbWriteTransaction(LmdbReadTransaction):
    """The one write transaction of an `LmdbSpace`, among all processes."""

    __slots__ = ("_failure", "_header", "_made", "_renamed")

    def __enter__(self) -> Self:
        shared = self._shared = self._space.shared()
        # Before it begins, so that nobody closes the environment or moves the map under it.
        shared.writing[id(self)] = get_ident()
        try:
            self._transaction, self._header, self._table = shared.begin_write()
        except BaseException:
            shared.writing.pop(id(self), None)
            raise
        self._get = self._transaction.get
        self._generation = REGISTRY.generation
        self._failure: ViewkeeperError | None = None
        # The header of names once this transaction has changed it, and the handles that it made.
        self._renamed: Header | None = None
        self._made: dict[int, Handle] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        table, failure = self._table, self._failure
        transaction = self._forget()
        if transaction is None:
            return
        try:
            if kind is None and failure is None:
                self._commit(transaction, table)
            else:
                transaction.abort()
        except lmdb.Error as cause:
            transaction.abort()
            failure = self._failed(cause)
            raise failure from cause
        finally:
            self._shared.writing.pop(id(self), None)
            self._make_room(failure or error)
        if kind is None and failure is not None:
            raise failure

    def _commit(self, transaction: Any, table: Handles) -> None:
        """Commit, and let others find what this transaction has named."""
        shared, renamed = self._shared, self._renamed
        header = b""
        if renamed is not None:
            renamed.version += 1
            header = renamed.encode()
            transaction.put(HEADER, header, db=shared.names)
        transaction.commit()
        if renamed is not None:
            shared.handles.update(self._made)
            shared.keep_table(header, table)
        shared.committed()

    def _failed(self, error: lmdb.Error) -> ViewkeeperError:
        """Return the store's error for an error of LMDB, after which this transaction cannot be committed."""
        if self._failure is None:
            self._failure = super()._failed(error)
        return self._failure

    def _make_room(self, failure: BaseException | None) -> None:
        """Enlarge the map for the next attempt where that is what this one lacked."""
        if isinstance(failure, StoreError) and failure.code == "MAP_FULL":
            self._shared.grow()

    def _numbers(self) -> Header:
        """Return the header of names, to be changed, with a table of this transaction's own."""
        if self._renamed is None:
            self._renamed = Header.decode(self._header)
            self._table = dict(self._table)
        return self._renamed

    def _create(self, database: str) -> Handle:
        """Return the handle of a new sub-database."""
        if len(database.encode()) > NAME_BYTES_MAX:
            raise InputError(
                "NAME_TOO_LONG",
                f"A sub-database's name has at most {NAME_BYTES_MAX} bytes: {database[:40]!r}… has more.",
            )
        shared = self._shared
        header = self._numbers()
        try:
            if not header.free:
                environment = shared.live()
                room = shared.options.databases_max - header.made
                for number in range(header.made, header.made + max(1, min(MADE_AT_ONCE, room))):
                    self._made[number] = environment.open_db(physical(number), txn=self._transaction)
                    header.free.insert(0, number)
                header.made += len(header.free)
            number = header.free.pop()
            self._transaction.put(key_of(database), number.to_bytes(4, "little"), db=shared.names)
        except lmdb.Error as error:
            raise self._failed(error) from error
        handle = self._table[database] = self._made.get(number) or shared.handles[number]
        return handle

    def put(self, database: str, key: bytes, value: bytes) -> None:
        """Write ``value`` at ``key``, over what was there."""
        handle = self._table.get(database) or self._create(database)
        try:
            self._transaction.put(key, value, db=handle)
        except lmdb.BadValsizeError as error:  # refused before anything was written
            raise key_length_invalid() from error
        except lmdb.Error as error:
            raise self._failed(error) from error

    def multi_put(self, database: str, pairs: Iterable[tuple[bytes, bytes]], append: bool = False) -> None:
        """Write all pairs; ``append`` promises that their keys ascend and lie behind all that is there."""
        handle = self._table.get(database) or self._create(database)
        try:
            consumed, added = self._transaction.cursor(handle).putmulti(pairs, append=append)
        except lmdb.Error as error:
            raise self._failed(error) from error
        if consumed != added:
            self._failure = keys_not_ascending(database)
            raise self._failure

    def delete(self, database: str, key: bytes) -> bool:
        """Remove ``key``; return whether it was there."""
        handle = self._table.get(database)
        if handle is None or not key:
            return False
        try:
            there: bool = self._transaction.delete(key, db=handle)
        except lmdb.Error as error:
            raise self._failed(error) from error
        return there

    def multi_delete(self, database: str, keys: Iterable[bytes]) -> None:
        """Remove all ``keys``; absent ones do nothing."""
        handle = self._table.get(database)
        if handle is None:
            return
        try:
            # An empty key is nowhere, and LMDB refuses to look for it.
            deque(map(self._transaction.delete, filter(None, keys), repeat(b""), repeat(handle)), maxlen=0)
        except lmdb.Error as error:
            raise self._failed(error) from error

    def delete_range(self, database: str, start: bytes | None, stop: bytes | None, limit: int | None = None) -> int:
        """Remove the keys with start <= key < stop, at most ``limit``; return how many went."""
        handle = self._table.get(database)
        if handle is None:
            return 0
        try:
            if not start and stop is None and limit is None:
                went = self.count(database)
                self._transaction.drop(handle, delete=False)
                return went
            cursor = self._transaction.cursor(handle)
            more = cursor.set_range(start) if start else cursor.first()
            went = 0
            while more and went != limit and (stop is None or cursor.key() < stop):
                # Deleting leaves the cursor at the next key, if there is one.
                cursor.delete()
                went += 1
                more = bool(cursor.key())
        except lmdb.Error as error:
            raise self._failed(error) from error
        return went

    def drop(self, database: str) -> None:
        """Remove the sub-database with all that it holds; absent ones do nothing."""
        if self._table.get(database) is None:
            return
        try:
            self._transaction.drop(self._table[database], delete=False)
            number = self._unname(database)
        except lmdb.Error as error:
            raise self._failed(error) from error
        self._numbers().free.append(number)

    def rename(self, old: str, new: str) -> None:
        """Let the sub-database ``old`` be found as ``new``, in place of what was there, without copying it."""
        if old == new:
            return
        self.drop(new)
        handle = self._table.get(old)
        if handle is None:
            return
        try:
            number = self._unname(old)
            self._transaction.put(key_of(new), number.to_bytes(4, "little"), db=self._shared.names)
        except lmdb.Error as error:
            raise self._failed(error) from error
        self._table[new] = handle

    def _unname(self, database: str) -> int:
        """Remove a name from the table; return the number that it had."""
        self._numbers()
        del self._table[database]
        return int.from_bytes(self._transaction.pop(key_of(database), self._shared.names), "little")
