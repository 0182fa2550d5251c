"""The lock by which one process keeps others from the same work on a store.

The lock is an ``flock`` on a file, so it goes with its process however that ends. The file's content only tells who
holds it, and what keeps the holder from its work; what a dead holder has left there is not believed. It has one length
from the start and is written in place, so that a holder can tell of a full disk on a full disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Self

import msgspec

from viewkeeper.adapters.lmdb.failures import from_errno
from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.coordinator.retries import Trouble
from viewkeeper.errors import ConflictError

# Whoever asks for the holder shares the lock for an instant: so often, and so long apart, it is tried again.
GLANCES_MAX = 20
GLANCE_SECONDS = 0.005
FILE_BYTES = 4096
TROUBLE_LETTERS_MAX = 400


@dataclass(frozen=True, slots=True)
class HolderInfo:
    """Who holds a lock.

    Args:
        pid: its process id; 0 where the holder has not written it yet.
        host: the name of its machine.
        since_seconds: when it took the lock, in seconds since the epoch.
        troubles: what it could not do, and tries again.
    """

    pid: int
    host: str
    since_seconds: float
    troubles: tuple[Trouble, ...] = ()


class ProcessLock:
    """A lock that at most one process holds.

    Args:
        path: the lock's file; it is made where it is absent and stays.
        clock: where the holder's start time comes from.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with ProcessLock(folder + "/maintainer.lock") as lock:
        ...     ProcessLock(folder + "/maintainer.lock").holder() == lock.holder()
        True
    """

    def __init__(self, path: str | os.PathLike[str], clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = os.fspath(path)
        self._clock = clock
        self._descriptor: int | None = None
        self._mine = HolderInfo(0, "", 0.0)
        # Threads may hold it together: how many times it is held.
        self._holds = 0
        self._counting = threading.Lock()

    @property
    def held(self) -> bool:
        """Whether this object, in this process, holds the lock."""
        return self._descriptor is not None

    def acquire(self, blocking: bool = False) -> None:
        """Take the lock, or, where this object holds it, hold it once more.

        Args:
            blocking: wait until the holder lets go, as a standby does.

        Raises:
            ConflictError: MAINTAINER_RUNNING where somebody else holds it and ``blocking`` is off.
            StoreError: where the file cannot be written.
        """
        with self._counting:
            if self._descriptor is not None:
                self._holds += 1
                return
        descriptor = self._open()
        try:
            self._flock(descriptor, blocking)
            self._mine = HolderInfo(os.getpid(), socket.gethostname(), self._clock.now_seconds())
            os.pwrite(descriptor, encoded(self._mine), 0)
        except BlockingIOError as error:
            holder = read_holder(descriptor)
            os.close(descriptor)
            raise running(self.path, holder) from error
        except OSError as error:
            os.close(descriptor)
            raise from_errno(error.errno or errno.EIO, str(error), self.path) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._holds = descriptor, 1
        HELD.add(self)

    def release(self) -> None:
        """Hold the lock once less, and let go of it with the last time; doing so without holding it is fine."""
        with self._counting:
            self._holds = max(self._holds - 1, 0)
            if self._holds:
                return
            descriptor, self._descriptor = self._descriptor, None
            HELD.discard(self)
            if descriptor is not None:
                os.ftruncate(descriptor, 0)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)

    def note(self, troubles: Sequence[Trouble]) -> None:
        """Let others see what keeps the holder from its work; nothing happens without holding the lock.

        Args:
            troubles: all that there are now; some of very many are left out.
        """
        with self._counting, suppress(OSError):  # it is only told
            if self._descriptor is not None:
                os.pwrite(self._descriptor, encoded(replace(self._mine, troubles=tuple(troubles))), 0)

    def disinherit(self) -> None:
        """Leave the lock to the parent, in a forked child: else it would outlive the parent in here."""
        self._counting, self._holds = threading.Lock(), 0
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def holder(self) -> HolderInfo | None:
        """Return who holds the lock, None where nobody does; does not take it."""
        with self._counting:
            if self._descriptor is not None:
                return read_holder(self._descriptor)
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_errno(error.errno or errno.EIO, str(error), self.path) from error
        try:
            # A shared lock for an instant: refused while somebody holds the exclusive one.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return read_holder(descriptor)
        else:
            return None
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _flock(self, descriptor: int, blocking: bool) -> None:
        """Take the file's lock, past the instants in which others look who holds it."""
        for _ in range(0 if blocking else GLANCES_MAX):
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._clock.sleep(GLANCE_SECONDS)
        return fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))

    def _open(self) -> int:
        """Open the lock's file for writing, making it where it is absent."""
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise from_errno(error.errno or errno.EIO, str(error), self.path) from error


HELD: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def disinherit_all() -> None:
    """Leave all locks to the parent of this forked child."""
    for lock in list(HELD):
        lock.disinherit()
    HELD.clear()


os.register_at_fork(after_in_child=disinherit_all)


def encoded(holder: HolderInfo) -> bytes:
    """Return the content of a lock's file: JSON, filled up with spaces; troubles that have no room are left out."""
    shown = [replace(t, message=t.message[:TROUBLE_LETTERS_MAX]) for t in holder.troubles]
    while len(content := msgspec.json.encode(asdict(replace(holder, troubles=tuple(shown))))) > FILE_BYTES:
        shown.pop()
    return content.ljust(FILE_BYTES)


def read_holder(descriptor: int) -> HolderInfo:
    """Return what a lock's file says of its holder; one that is about to write it reads as process 0."""
    try:
        return msgspec.json.decode(os.pread(descriptor, FILE_BYTES, 0), type=HolderInfo)
    except msgspec.MsgspecError:
        return HolderInfo(0, "", 0.0)


def running(path: str, holder: HolderInfo) -> ConflictError:
    """Return the error for a lock that somebody else holds."""
    return ConflictError(
        "MAINTAINER_RUNNING",
        f"The store {os.path.dirname(path)} is maintained by process {holder.pid} on {holder.host}: "
        "let it do the work, stop it first, or start this one as standby (maintain --standby).",
        {"path": path, "pid": holder.pid, "host": holder.host, "since_seconds": holder.since_seconds},
    )
