"""One LMDB environment, shared by all spaces of a process that use its folder (see `registry`).

Handles of sub-databases are opened in write transactions only: LMDB admits one opener at a time, which the write lock
guarantees, and py-lmdb drops handles that a read transaction has opened. They are numbered (see `names`), made several
at a time and never deleted, so a process rarely meets one that it has not opened yet, and no reader loses one.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from typing import Any

import lmdb

from viewkeeper.adapters.lmdb.failures import from_errno, translated
from viewkeeper.adapters.lmdb.mapped import mapped_at, release_pages
from viewkeeper.adapters.lmdb.names import HEADER, NAMES, Header, physical
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import Clock
from viewkeeper.errors import StoreError, ViewkeeperError
from viewkeeper.store.key_errors import store_closed

Handle = Any
Handles = dict[str, Handle]

# Tables of names that are kept: readers of an older moment still find theirs.
TABLES_KEPT = 16
# How long readers may hold up a close, or a map that another process has grown: those of ours take 100 ms at most.
# What rests longer is ended: a snapshot that somebody holds, a scan that nobody reads on.
READERS_SECONDS_MAX = 1.0
_POLL_SECONDS = 0.001


class SharedEnvironment:
    """An open environment with its handles; transactions use the public attributes directly, for speed.

    Args:
        path: the environment's folder, which exists.
        options: how to open it.
        clock: where the ages of read transactions come from.
    """

    def __init__(self, path: str, options: EnvironmentOptions, clock: Clock) -> None:
        self.path = path
        self.options = options
        self.clock = clock
        self.users = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything that belongs to an open environment."""
        self.environment: lmdb.Environment | None = None
        self.names: Handle = None
        self.handles: dict[int, Handle] = {}
        self.tables: dict[bytes, Handles] = {}
        # Whoever has a transaction open or is about to begin it: since when a reader; of which thread.
        self.reading: dict[object, tuple[float, int]] = {}
        self.writing: dict[object, int] = {}
        # Readers that have no transaction yet, since they wait for a larger map.
        self._stalled: set[object] = set()
        self._adoptions = 0
        # Where the file is mapped, once somebody has asked; moving the map forgets it.
        self._addresses: range | None = None
        self._lock = threading.RLock()
        self._unsynced = threading.Event()
        self._closing = threading.Event()
        self._syncer: threading.Thread | None = None

    def live(self) -> lmdb.Environment:
        """Return the open environment, opening it where it is not.

        Raises:
            StoreError: STORE_CLOSED after the last user has closed it, or what opening meets.
        """
        with self._lock:
            if self.environment is None:
                if self.users == 0:
                    raise store_closed()
                self.environment = self._open()
            return self.environment

    def begin_read(self) -> tuple[Any, Handles]:
        """Begin a read transaction; return it with the table of names of its moment.

        Raises:
            StoreError: for what LMDB reports.
        """
        while True:
            known = len(self.handles)
            transaction = self._begin(write=False)
            names, handles = self.names, self.handles
            if names is None:  # closed by another thread meanwhile
                raise store_closed()
            try:
                header = transaction.get(HEADER, b"", names)
                table = self.tables.get(header)
                if table is None:
                    table = self._read_table(transaction, header, names, handles)
            except lmdb.Error as error:
                raise self._failed(error) from error
            if table is not None and len(self.handles) == known:
                return transaction, table
            transaction.abort()
            # A transaction knows the handles that were open when it began; another thread may just have opened more.
            if table is None:
                self._open_handles(is_reader=True)

    def begin_write(self) -> tuple[Any, bytes, Handles]:
        """Begin the write transaction; return it with the header and the table of names, all handles being open.

        The caller stands in ``writing`` from before until its transaction is over, so that nobody closes under it.

        Raises:
            StoreError: for what LMDB reports.
            ConflictError: WRITE_IN_PROGRESS where this thread has one open already.
        """
        transaction = self._begin(write=True)
        try:
            names, handles = self.names, self.handles
            if names is None:  # closed by another thread meanwhile
                raise store_closed()
            header = transaction.get(HEADER, b"", names)
            table = self.tables.get(header) or self._read_table(transaction, header, names, handles)
            if table is None:
                transaction.abort()
                self._open_handles()
                return self.begin_write()
        except BaseException as error:
            transaction.abort()
            if isinstance(error, lmdb.Error):
                raise self._failed(error) from error
            raise
        return transaction, header, table

    def keep_table(self, header: bytes, table: Handles) -> None:
        """Remember the table of names that belongs to ``header``."""
        self.tables[header] = table
        while len(self.tables) > TABLES_KEPT:
            self.tables.pop(next(iter(self.tables)), None)

    def committed(self) -> None:
        """Take notice of a commit, which may want to be forced to disk later."""
        if self.options.durability == "interval" and self.environment is not None:
            self._unsynced.set()
            if self._syncer is None:
                self._start_syncer()

    def sync(self) -> None:
        """Force all commits to disk.

        Raises:
            StoreError: where the disk refuses.
        """
        self._unsynced.clear()
        try:
            self.live().sync(True)
        except lmdb.Error as error:
            raise translated(error, self.path) from error

    def release_memory(self) -> None:
        """Let go of the pages that this process has read; those that others read meanwhile are mapped again."""
        with self._lock:
            # Whoever moves or ends the map holds the lock, and sets the environment aside.
            if self.environment is None:
                return
            if self._addresses is None:
                self._addresses = mapped_at(os.path.join(self.path, "data.mdb"))
            if self._addresses is not None:
                release_pages(self._addresses)

    def close(self) -> None:
        """Close the environment, when the transactions of other threads are over.

        None can begin any more. Those that write are waited for: py-lmdb crashes where an environment is closed during
        a commit. Those that read are waited for like before a larger map; what rests is ended.
        """
        with self._lock:
            environment, syncer = self.environment, self._syncer
            self._closing.set()
            self._unsynced.set()
        if syncer is not None:
            syncer.join()
        with self._lock:
            # Who begins a transaction from here on finds that nobody uses the environment.
            self.environment = None
        self._wait_for_others()
        with self._lock:
            if environment is not None:
                try:
                    if self.options.durability == "interval":
                        environment.sync(True)
                except lmdb.Error as error:
                    raise translated(error, self.path) from error
                finally:
                    # Ends what other threads have open, after the call that they are in. Only then goes what they use.
                    environment.close()
                    self.reset()

    def _wait_for_others(self) -> None:
        """Wait until other threads have no transaction open, or only such that rest."""
        own = threading.get_ident()
        end = self.clock.monotonic_seconds() + READERS_SECONDS_MAX
        while True:
            writes = any(thread != own for thread in list(self.writing.values()))
            reads = any(thread != own for _, thread in list(self.reading.values()))
            if not writes and (not reads or self.clock.monotonic_seconds() >= end):
                return
            self.clock.sleep(_POLL_SECONDS)

    def _failed(self, error: lmdb.Error) -> ViewkeeperError:
        """Return the store's error for an error of LMDB; whatever ended it, a closed store is closed."""
        return store_closed() if self.users == 0 else translated(error, self.path)

    def grow(self) -> int | None:
        """Double the map where nobody of this process is in a transaction; return its new size, else None."""
        with self._lock:
            environment = self.live()
            size: int = environment.info()["map_size"] * 2
            # Readers register and then take the environment: those that come now wait for the lock in live().
            self.environment = self._addresses = None
            try:
                if self.reading or self.writing:
                    return None
                environment.set_mapsize(size)
            except lmdb.MemoryError:  # the old map is gone and the larger one refused
                self.environment = environment
                self._reopen(environment)
                return None
            except lmdb.Error:  # another thread writes
                return None
            finally:
                self.environment = self.environment or environment
            return size

    def _begin(self, write: bool, is_reader: bool | None = None) -> Any:
        """Begin a transaction, meeting what has a remedy: dead readers, a map that others have grown, a panic.

        Args:
            write: whether it is the write transaction.
            is_reader: whether the caller stands in ``reading``; None: whoever does not write does.
        """
        for _ in range(8):
            environment, adoptions = self.environment or self.live(), self._adoptions
            try:
                return environment.begin(write=write)
            except lmdb.ReadersFullError as error:
                if environment.reader_check() == 0:
                    raise translated(error, self.path) from error
            except lmdb.MapResizedError:
                self._adopt_map(environment, adoptions, not write if is_reader is None else is_reader)
            except lmdb.PanicError:
                # A failed write of the meta page: LMDB refuses everything until the file is opened anew.
                self._reopen(environment)
            except lmdb.Error as error:
                if self.environment is environment or self.users == 0:
                    raise self._failed(error) from error
        raise StoreError("STORE_WRITE_FAILED", f"The store {self.path} cannot be used at present: try again.")

    def _adopt_map(self, environment: lmdb.Environment, adoptions: int, is_reader: bool) -> None:
        """Adopt the size that another process has given the map.

        LMDB moves the map then, so no transaction of this process may be open in it, and py-lmdb ends those that are.
        Readers end within moments, and none can begin meanwhile. A scan or a snapshot that rests is ended after
        ``READERS_SECONDS_MAX``: it is told TRANSACTION_CLOSED, while all others go on.

        Args:
            environment: the environment whose map is too small.
            adoptions: how many there were when that was found.
            is_reader: whether the caller stands in ``reading``.
        """
        token = object()
        if is_reader:
            self._stalled.add(token)
        try:
            end = self.clock.monotonic_seconds() + READERS_SECONDS_MAX
            while len(self.reading) > len(self._stalled) and self._adoptions == adoptions:
                if self.clock.monotonic_seconds() >= end:
                    break
                self.clock.sleep(_POLL_SECONDS)
            with self._lock:
                if self._adoptions == adoptions and self.environment is environment:
                    self._move_map(environment)
        finally:
            self._stalled.discard(token)

    def _move_map(self, environment: lmdb.Environment) -> None:
        """Map the file anew with the size that it has; those that come meanwhile wait for the lock in live()."""
        self.environment = self._addresses = None
        try:
            environment.set_mapsize(0)
            self._adoptions += 1
        except lmdb.MemoryError:  # the old map is gone and the larger one refused
            self.environment = environment
            self._reopen(environment)
        except lmdb.Error:
            pass  # another thread has begun to write, so it has adopted the map: begin again
        finally:
            self.environment = self.environment or environment

    def _reopen(self, broken: lmdb.Environment) -> None:
        """Replace a broken environment by a fresh one."""
        with self._lock:
            if self.environment is broken:
                broken.close()
                self.environment, self.handles, self.tables, self._addresses = None, {}, {}, None
                self.live()

    def _open(self) -> lmdb.Environment:
        """Open the environment and its table of names."""
        options = self.options
        ignore_file_size_signal()
        try:
            environment = lmdb.open(
                self.path,
                map_size=options.map_size_bytes,
                max_dbs=options.databases_max + 1,
                max_readers=options.readers_max,
                max_spare_txns=1,
                sync=options.durability == "commit",
                readahead=options.readahead,
            )
        except lmdb.MemoryError as error:
            raise StoreError(
                "MAP_TOO_LARGE",
                f"The store {self.path} needs {options.map_size_bytes} bytes of address space, which this process may "
                "not have (RLIMIT_AS, `ulimit -v`): raise that limit or lower the setting map_size_bytes.",
                {"path": self.path, "map_size_bytes": options.map_size_bytes},
            ) from error
        except lmdb.Error as error:
            raise translated(error, self.path) from error
        except OSError as error:
            raise from_errno(error.errno or errno.EIO, str(error), self.path) from error
        try:
            with environment.begin(write=True) as transaction:
                self.names = environment.open_db(NAMES, txn=transaction)
        except lmdb.Error as error:
            environment.close()
            raise translated(error, self.path) from error
        return environment

    def _read_table(self, transaction: Any, header: bytes, names: Handle, handles: dict[int, Handle]) -> Handles | None:
        """Return the table of names as ``transaction`` sees it, None where a handle is not open yet."""
        if any(number not in handles for number in range(Header.decode(header).made)):
            return None
        table: Handles = {}
        cursor = transaction.cursor(names)
        if cursor.set_range(b"n"):
            for key, value in cursor.iternext():
                table[key[1:].decode()] = handles[int.from_bytes(value, "little")]
        cursor.close()
        self.keep_table(header, table)
        return table

    def _open_handles(self, is_reader: bool = False) -> None:
        """Open the handles of all sub-databases that exist; waits for the writer's turn.

        Args:
            is_reader: whether the caller stands in ``reading``.
        """
        opened: dict[int, Handle] = {}
        token = object()
        self.writing[token] = threading.get_ident()
        try:
            with self._begin(write=True, is_reader=is_reader) as transaction:
                header = Header.decode(transaction.get(HEADER, b"", self.names))
                for number in range(header.made):
                    if number not in self.handles:
                        opened[number] = self.live().open_db(physical(number), txn=transaction, create=False)
        except lmdb.Error as error:
            raise self._failed(error) from error
        finally:
            self.writing.pop(token, None)
        self.handles.update(opened)

    def _start_syncer(self) -> None:
        """Start the thread that forces commits to disk."""
        with self._lock:
            if self._syncer is None:
                self._syncer = threading.Thread(target=self._sync_at_intervals, name="viewkeeper-sync", daemon=True)
                self._syncer.start()

    def _sync_at_intervals(self) -> None:
        """Force commits to disk, at most once an interval, until the environment closes."""
        unsynced, closing = self._unsynced, self._closing
        # Closing is looked at before each wait, since a sync clears the event by which close() ends the wait.
        while not closing.is_set():
            unsynced.wait()
            if closing.wait(self.options.sync_interval_seconds):
                return
            try:
                self.sync()
            except StoreError:
                unsynced.set()  # tried again; sync() and close() report what remains


def ignore_file_size_signal() -> None:
    """Let a write past RLIMIT_FSIZE fail instead of killing the process; Python does so unless it is embedded."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGXFSZ) == signal.SIG_DFL:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
