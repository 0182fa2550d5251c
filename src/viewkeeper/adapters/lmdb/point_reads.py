"""Single gets in a hot loop, without what a transaction of a space spends on being a Python object.

What a get must know of its moment (the handle of the sub-database, whether the caller still means it) changes only with
a commit, and LMDB numbers those: a moment of the number that was last looked at needs no look. So a get begins LMDB's
transaction (which it renews), compares the number, gets, aborts. Whatever is unusual takes the ordinary way: another
number, a map that has grown, no free reader, a closed store, a fork.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lmdb

from viewkeeper.store.key_value import PointGet, ReadTransaction

if TYPE_CHECKING:
    from viewkeeper.adapters.lmdb.environment import Handle, SharedEnvironment
    from viewkeeper.adapters.lmdb.space import LmdbSpace


def point_get(space: LmdbSpace, database: str, is_current: Callable[[ReadTransaction], bool]) -> PointGet:
    """Return the quick get of single keys; see ``store.key_value.Space.point_get``.

    Args:
        space: the space.
        database: the sub-database.
        is_current: whether gets may answer at a moment; asked once a moment.
    """
    # In one piece, so that a thread never finds the handle of another moment: environment, commit's number, handle.
    known: tuple[Any, int, Handle] = (None, -1, None)

    def get(key: bytes) -> bytes | None:
        known_environment, number, handle = known
        shared = space.shared()
        environment = shared.environment
        if handle is not None and environment is not None and environment is known_environment:
            reading, token = shared.reading, object()
            # Before the transaction begins, so that nobody moves the map under it.
            reading[token] = (shared.clock.monotonic_seconds(), 0)
            try:
                transaction = environment.begin()
                try:
                    if transaction.id() == number:
                        found: bytes | None = transaction.get(key, None, handle)
                        return found
                finally:
                    transaction.abort()
            except lmdb.Error:
                pass  # the ordinary way meets it again, and knows its remedy
            finally:
                reading.pop(token, None)
        return ordinary_get(shared, key)

    def ordinary_get(shared: SharedEnvironment, key: bytes) -> bytes | None:
        nonlocal known
        environment = shared.environment
        with space.read() as txn:
            if not is_current(txn):
                return None
            if shared.environment is environment:  # the one that this transaction is of: a broken one never returns
                known = (environment, *txn.place_of(database))
            return txn.get(database, key)

    return get
