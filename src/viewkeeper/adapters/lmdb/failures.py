"""LMDB's failures, told as errors of the store."""

from __future__ import annotations

import errno
import os
import resource

import lmdb

from viewkeeper.errors import StoreError, ViewkeeperError
from viewkeeper.store.key_errors import key_length_invalid, transaction_closed, write_in_progress

# Below this much room a failed write is taken for a full disk: LMDB reports a write that was cut short as EIO.
ROOM_BYTES_MIN = 16 * 1024 * 1024


def translated(error: lmdb.Error, path: str) -> ViewkeeperError:
    """Return the store's error for an error of LMDB.

    Args:
        error: what LMDB raised.
        path: the environment's folder, named in the message.
    """
    for kind, code, message in KINDS:
        if isinstance(error, kind):
            return StoreError(code, message.format(path=path), {"path": path, "cause": str(error)})
    if isinstance(error, lmdb.BadValsizeError):
        return key_length_invalid()
    number = errno.ENOMEM if isinstance(error, lmdb.MemoryError) else getattr(error, "code", 0)
    if number == errno.EBUSY:
        return write_in_progress()
    if "closed" in str(error):
        return transaction_closed()
    return from_errno(number, str(error), path)


def from_errno(number: int, cause: str, path: str) -> StoreError:
    """Return the store's error for an error number of the operating system.

    Args:
        number: the errno, 0 where there is none.
        cause: the text that came with it.
        path: the folder that is meant.
    """
    details = {"path": path, "cause": cause}
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return StoreError("DISK_FULL", f"The disk of {path} is full: make room and write again.", details)
    limit = file_size_limit()
    if number == errno.EFBIG or (
        number == errno.EIO and limit is not None and file_size(path) + ROOM_BYTES_MIN > limit
    ):
        return StoreError(
            "DISK_FULL",
            f"The store {path} cannot grow: this process may not write files of more than {limit} bytes "
            "(RLIMIT_FSIZE, `ulimit -f`). Raise the limit and write again.",
            details,
        )
    if number == errno.EIO and room_bytes(path) < ROOM_BYTES_MIN:
        return StoreError("DISK_FULL", f"The disk of {path} is full: make room and write again.", details)
    if number in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return StoreError(
            "STORE_NOT_WRITABLE",
            f"The store {path} cannot be written by this user: give it the right to, or open another.",
            details,
        )
    if number == errno.ENOENT:
        return StoreError(
            "STORE_NOT_FOUND",
            f"There is no store at {path}, or a part of it is gone: check the path, or restore it.",
            details,
        )
    if number == errno.ENOMEM:
        return StoreError(
            "STORE_OUT_OF_MEMORY", f"There is not enough memory to work on the store {path}: free some.", details
        )
    return StoreError(
        "STORE_WRITE_FAILED", f"The store {path} could not be read or written: {cause}. Look at its disk.", details
    )


def file_size_limit() -> int | None:
    """Return how large a file this process may write, None where nothing limits it."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def file_size(path: str) -> int:
    """Return the size of an environment's data file."""
    try:
        return os.stat(os.path.join(path, "data.mdb")).st_size
    except OSError:
        return 0


def room_bytes(path: str) -> int:
    """Return the free bytes of the disk under ``path``."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


KINDS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (lmdb.MapFullError,),
        "MAP_FULL",
        (
            "The store {path} has filled its map and nothing was written. The map is doubled unless this process has "
            "other transactions open: write again, or open the store with a larger map_size_bytes."
        ),
    ),
    (
        (lmdb.DbsFullError,),
        "TOO_MANY_DATABASES",
        "The store {path} has no room for another table, view or arrangement: open it with a larger databases_max.",
    ),
    (
        (lmdb.ReadersFullError,),
        "TOO_MANY_READERS",
        "Too many read transactions are open on {path}: close some, or let fewer processes read at once.",
    ),
    (
        (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.VersionMismatchError),
        "STORE_CORRUPT",
        "The store {path} is damaged or was not written by this program: restore it from a copy.",
    ),
    (
        (lmdb.TxnFullError,),
        "TRANSACTION_TOO_LARGE",
        "The transaction on {path} is too large: write it in several smaller ones.",
    ),
)
