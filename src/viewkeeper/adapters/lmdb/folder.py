"""A store's folder: two environments, a place for staged files, and a marker that says what it is.

viewkeeper.json    {"format": 1, "store_id": "…"}, written first and at once
base/ views/       an LMDB environment each
staging/           write-sets of tasks until they are published
maintainer.lock    who maintains the store (see `locks`)
"""

from __future__ import annotations

import errno
import json
import os
from typing import Any

from viewkeeper.adapters.lmdb.failures import from_errno
from viewkeeper.adapters.lmdb.options import DEFAULT_OPTIONS, EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.clock import SYSTEM_CLOCK, Clock, new_identifier
from viewkeeper.closing import Closing
from viewkeeper.errors import StoreError

FORMAT = 1
MARKER = "viewkeeper.json"
# Markers being written; a crash may leave one behind, which means nothing.
DRAFT_PREFIX = f".{MARKER}."


class StoreFolder(Closing):
    """An open store; get one by `open_folder`.

    Args:
        path: the folder.
        store_id: what tells this store from all others, also after its folder was moved.
        base: tables, log, catalog.
        views: views, arrangements, change logs, epochs.
    """

    def __init__(self, path: str, store_id: str, base: LmdbSpace, views: LmdbSpace) -> None:
        self.path = path
        self.store_id = store_id
        self.base = base
        self.views = views

    @property
    def staging_path(self) -> str:
        """The folder of staged files."""
        return os.path.join(self.path, "staging")

    @property
    def lock_path(self) -> str:
        """The file by which a maintainer keeps others out."""
        return os.path.join(self.path, "maintainer.lock")

    def close(self) -> None:
        """Close both spaces; closing twice is fine."""
        try:
            self.base.close()
        finally:
            self.views.close()


def open_folder(
    path: str | os.PathLike[str],
    create: bool = True,
    options: EnvironmentOptions = DEFAULT_OPTIONS,
    clock: Clock = SYSTEM_CLOCK,
) -> StoreFolder:
    """Open the store in a folder.

    Args:
        path: the folder; its parent must exist.
        create: make an empty store where there is none.
        options: how both environments are opened.
        clock: where the ages of readers come from.

    Raises:
        StoreError: STORE_NOT_FOUND (no store there and none to be made, or no parent), NOT_A_STORE (a file, or somebody
            else's folder), STORE_FORMAT_NEWER, STORE_CORRUPT, STORE_NOT_WRITABLE, DISK_FULL, MAP_TOO_LARGE. The folder
            is then as it was.
        ConflictError: DURABILITY_DIFFERS where this process has the store open with another durability.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent, open_folder(parent + "/shop.vk") as store:
        ...     with store.base.write() as transaction:
        ...         transaction.put("t", b"k", b"v")
        ...     with store.base.read() as transaction:
        ...         transaction.get("t", b"k")
        b'v'
    """
    place = os.path.realpath(os.fspath(path))
    try:
        store_id = prepare(place, create)
    except OSError as error:
        raise from_errno(error.errno or errno.EIO, str(error), place) from error
    base = LmdbSpace(os.path.join(place, "base"), options, clock)
    try:
        views = LmdbSpace(os.path.join(place, "views"), options, clock)
    except BaseException:
        base.close()
        raise
    return StoreFolder(place, store_id, base, views)


def prepare(place: str, create: bool) -> str:
    """Make sure that ``place`` is a store's folder that can be used; return the store's id."""
    details = {"path": place}
    if os.path.lexists(place) and not os.path.isdir(place):
        raise StoreError("NOT_A_STORE", f"{place} is a file, not the folder of a store: name another place.", details)
    marker = os.path.join(place, MARKER)
    if not os.path.lexists(marker):
        if os.path.isdir(place):
            if any(not name.startswith(DRAFT_PREFIX) for name in os.listdir(place)) and not os.path.lexists(marker):
                raise StoreError(
                    "NOT_A_STORE", f"{place} holds other files and is no store: name an empty or a new folder.", details
                )
        elif not os.path.isdir(os.path.dirname(place)):
            raise StoreError(
                "STORE_NOT_FOUND",
                f"There is no folder {os.path.dirname(place)} to hold the store: make it first.",
                details,
            )
        if not create:
            raise StoreError(
                "STORE_NOT_FOUND",
                f"There is no store at {place}: check the path, or make one, by `connect` or by a script of"
                " `viewkeeper sql` that begins with CREATE TABLE.",
                details,
            )
        os.makedirs(place, exist_ok=True)
        write_marker(marker)
    store_id = read_marker(marker)
    check_parts(place)
    for part in ("base", "views", "staging"):
        os.makedirs(os.path.join(place, part), exist_ok=True)
    return store_id


def write_marker(marker: str) -> None:
    """Write a new store's marker at once, or leave the one that another process has written meanwhile."""
    folder = os.path.dirname(marker)
    draft = os.path.join(folder, DRAFT_PREFIX + new_identifier())
    try:
        with open(draft, "x", encoding="utf-8") as file:
            json.dump({"format": FORMAT, "store_id": new_identifier()}, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, marker)
        except FileExistsError:
            pass
        except OSError:  # no links on this file system: the last rename wins, and all read it afterwards
            os.rename(draft, marker)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    sync_folder(folder)
    sync_folder(os.path.dirname(folder))


def read_marker(marker: str) -> str:
    """Return the store's id from its marker.

    Raises:
        StoreError: STORE_FORMAT_NEWER, STORE_CORRUPT.
    """
    place = os.path.dirname(marker)
    try:
        with open(marker, encoding="utf-8") as file:
            content: Any = json.load(file)
        version, store_id = content["format"], content["store_id"]
    except (ValueError, LookupError, TypeError, IsADirectoryError) as error:
        raise unreadable(place, str(error)) from error
    if not isinstance(version, int) or not isinstance(store_id, str) or version < 1:
        raise unreadable(place, f"format {version!r}, store_id {store_id!r}")
    if version > FORMAT:
        raise StoreError(
            "STORE_FORMAT_NEWER",
            f"The store {place} has format {version}, and this program knows formats up to {FORMAT}: "
            "install a newer viewkeeper.",
            {"path": place, "format": version, "format_max": FORMAT},
        )
    return store_id


def check_parts(place: str) -> None:
    """Refuse a folder that lacks a part or may not be written."""
    # Views first: base is made before it, perhaps by another process at this moment.
    views, base = (os.path.exists(os.path.join(place, part, "data.mdb")) for part in ("views", "base"))
    if views and not base:
        raise StoreError("STORE_CORRUPT", f"The store {place} has lost its folder 'base': restore it from a copy.")
    parts = [place, *(os.path.join(place, part) for part in ("base", "views", "staging"))]
    for part in parts:
        if os.path.lexists(part) and not os.path.isdir(part):
            raise StoreError("STORE_CORRUPT", f"{part} is not a folder: restore the store from a copy.")
        if os.path.isdir(part) and not os.access(part, os.R_OK | os.W_OK | os.X_OK):
            raise from_errno(errno.EACCES, "no right to write", place)


def unreadable(place: str, cause: str) -> StoreError:
    """Return the error for a marker that says nothing."""
    return StoreError(
        "STORE_CORRUPT",
        f"The file {MARKER} of the store {place} cannot be read: restore it from a copy.",
        {"path": place, "cause": cause},
    )


def sync_folder(folder: str) -> None:
    """Force the names in a folder to disk, where the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some file systems refuse this for folders; the marker itself is on disk
    finally:
        os.close(descriptor)
