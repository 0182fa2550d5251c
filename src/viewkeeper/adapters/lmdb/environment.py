"""One LMDB environment per folder and process, shared by all spaces that use it, and alive again after a fork.

LMDB allows one open environment per process and file, and none of it may be used by a forked child. So environments
stand in a registry under the identity of their folder, are counted, and a child forgets (without touching them: closing
would free the parent's reader slots) those of its parent and opens its own at first use.

Handles of sub-databases are opened in write transactions only: LMDB admits one opener at a time, which the write lock
guarantees, and py-lmdb drops handles that a read transaction has opened. They are numbered (see `names`), made several
at a time and never deleted, so a process rarely meets one that it has not opened yet, and no reader loses one.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import lmdb
from lmdb import _envid

from viewkeeper.adapters.lmdb.failures import from_errno, translated
from viewkeeper.adapters.lmdb.names import HEADER, NAMES, Header, physical
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import Clock
from viewkeeper.errors import ConflictError, StoreError
from viewkeeper.store.key_errors import store_closed

Handle = Any
Handles = dict[str, Handle]

# Tables of names that are kept: readers of an older moment still find theirs.
TABLES_KEPT = 16


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
        self.reading: dict[object, float] = {}
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
            names = self.names
            if names is None:  # closed by another thread meanwhile
                raise store_closed()
            try:
                header = transaction.get(HEADER, b"", names)
                table = self.tables.get(header)
                if table is None:
                    table = self._read_table(transaction, header)
            except lmdb.Error as error:
                raise translated(error, self.path) from error
            if table is not None and len(self.handles) == known:
                return transaction, table
            transaction.abort()
            # A transaction knows the handles that were open when it began; another thread may just have opened more.
            if table is None:
                self._open_handles()

    def begin_write(self) -> tuple[Any, bytes, Handles]:
        """Begin the write transaction; return it with the header and the table of names, all handles being open.

        Raises:
            StoreError: for what LMDB reports.
            ConflictError: WRITE_IN_PROGRESS where this thread has one open already.
        """
        transaction = self._begin(write=True)
        try:
            header = transaction.get(HEADER, b"", self.names)
            table = self.tables.get(header) or self._read_table(transaction, header)
            if table is None:
                transaction.abort()
                self._open_handles()
                return self.begin_write()
        except lmdb.Error as error:
            transaction.abort()
            raise translated(error, self.path) from error
        return transaction, header, table

    def keep_table(self, header: bytes, table: Handles) -> None:
        """Remember the table of names that belongs to ``header``."""
        self.tables[header] = table
        while len(self.tables) > TABLES_KEPT:
            self.tables.pop(next(iter(self.tables)), None)

    def committed(self) -> None:
        """Take notice of a commit, which may want to be forced to disk later."""
        if self.options.durability == "interval":
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

    def close(self) -> None:
        """Close the environment."""
        with self._lock:
            environment, syncer = self.environment, self._syncer
            self._closing.set()
            self._unsynced.set()
        if syncer is not None:
            syncer.join()
        with self._lock:
            self.reset()
            if environment is not None:
                try:
                    if self.options.durability == "interval":
                        environment.sync(True)
                except lmdb.Error as error:
                    raise translated(error, self.path) from error
                finally:
                    environment.close()

    def grow(self) -> int | None:
        """Double the map where nobody of this process is in a transaction; return its new size, else None."""
        with self._lock:
            environment = self.live()
            size: int = environment.info()["map_size"] * 2
            # Readers register and then take the environment: those that come now wait for the lock in live().
            self.environment = None
            try:
                if self.reading:
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

    def _begin(self, write: bool) -> Any:
        """Begin a transaction, meeting what has a remedy: dead readers, a map that others have grown, a panic."""
        for _ in range(8):
            environment = self.environment or self.live()
            try:
                return environment.begin(write=write)
            except lmdb.ReadersFullError as error:
                if environment.reader_check() == 0:
                    raise translated(error, self.path) from error
            except lmdb.MapResizedError:
                with self._lock:
                    environment.set_mapsize(0)
            except lmdb.PanicError:
                # A failed write of the meta page: LMDB refuses everything until the file is opened anew.
                self._reopen(environment)
            except lmdb.Error as error:
                if self.environment is environment:
                    raise translated(error, self.path) from error
        raise StoreError("STORE_WRITE_FAILED", f"The store {self.path} cannot be used at present: try again.")

    def _reopen(self, broken: lmdb.Environment) -> None:
        """Replace a broken environment by a fresh one."""
        with self._lock:
            if self.environment is broken:
                broken.close()
                self.environment, self.handles, self.tables = None, {}, {}
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

    def _read_table(self, transaction: Any, header: bytes) -> Handles | None:
        """Return the table of names as ``transaction`` sees it, None where a handle is not open yet."""
        handles = self.handles
        if any(number not in handles for number in range(Header.decode(header).made)):
            return None
        table: Handles = {}
        cursor = transaction.cursor(self.names)
        if cursor.set_range(b"n"):
            for key, value in cursor.iternext():
                table[key[1:].decode()] = handles[int.from_bytes(value, "little")]
        cursor.close()
        self.keep_table(header, table)
        return table

    def _open_handles(self) -> None:
        """Open the handles of all sub-databases that exist; waits for the writer's turn."""
        opened: dict[int, Handle] = {}
        try:
            with self._begin(write=True) as transaction:
                header = Header.decode(transaction.get(HEADER, b"", self.names))
                for number in range(header.made):
                    if number not in self.handles:
                        opened[number] = self.live().open_db(physical(number), txn=transaction, create=False)
        except lmdb.Error as error:
            raise translated(error, self.path) from error
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


class Registry:
    """The environments that this process has open, by the identity of their folders."""

    def __init__(self) -> None:
        self._shared: dict[tuple[int, int], SharedEnvironment] = {}
        self._lock = threading.Lock()
        # What a forked child has inherited: kept, so that nothing of it is ever closed.
        self._inherited: list[object] = []
        self.generation = 0

    def acquire(self, path: str, options: EnvironmentOptions, clock: Clock) -> SharedEnvironment:
        """Return the environment of a folder, open, counting its user.

        Args:
            path: the environment's folder, which exists.
            options: how to open it; where it is open already its durability must be the same.
            clock: where ages come from.

        Raises:
            ConflictError: DURABILITY_DIFFERS.
            StoreError: for what opening meets.
        """
        with self._lock:
            identity = identity_of(path)
            shared = self._shared.get(identity)
            if shared is None:
                shared = SharedEnvironment(path, options, clock)
            elif shared.options.durability != options.durability:
                raise ConflictError(
                    "DURABILITY_DIFFERS",
                    f"The store {path} is open in this process with durability {shared.options.durability!r}: open it "
                    f"with the same one, or close it first; {options.durability!r} was asked for.",
                )
            shared.users += 1
            try:
                shared.live()
            except BaseException:
                shared.users -= 1
                raise
            self._shared[identity] = shared
            return shared

    def release(self, shared: SharedEnvironment) -> None:
        """Count a user less; the last one closes the environment."""
        with self._lock:
            shared.users -= 1
            if shared.users == 0:
                self._shared = {key: value for key, value in self._shared.items() if value is not shared}
                shared.close()

    def open_count(self) -> int:
        """Return how many environments this process has open."""
        return len(self._shared)

    def before_fork(self) -> None:
        """Hold the registry still while the process forks."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let the registry go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget, without touching it, all that belongs to the parent."""
        self.generation += 1
        self._lock = threading.Lock()
        for shared in self._shared.values():
            self.inherit((shared.environment, shared.names, shared.handles, shared.tables))
            shared.reset()

    def inherit(self, what: object) -> None:
        """Keep something of the parent's alive for as long as the child runs."""
        self._inherited.append(what)


def identity_of(path: str) -> tuple[int, int]:
    """Return what tells one folder from all others, however it is named."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise from_errno(error.errno or errno.ENOENT, str(error), path) from error
    return found.st_dev, found.st_ino


def let_children_open() -> None:
    """Make py-lmdb's guard against opening a file twice in a process tell a forked child from its parent.

    The guard compares keys that `lmdb._envid.env_keys` makes of a file, and a child inherits its parent's. LMDB itself
    allows the child its own environment; with the process id in each key, so does the guard.
    """
    keys_of_file: Callable[[Any, bool], tuple[Any, ...]] = _envid.env_keys

    def keys_of_file_in_process(path: Any, subdir: bool) -> tuple[Any, ...]:
        return tuple((*key, os.getpid()) for key in keys_of_file(path, subdir))

    _envid.env_keys = keys_of_file_in_process


let_children_open()
REGISTRY = Registry()
os.register_at_fork(
    before=REGISTRY.before_fork,
    after_in_parent=REGISTRY.after_fork_in_parent,
    after_in_child=REGISTRY.after_fork_in_child,
)
