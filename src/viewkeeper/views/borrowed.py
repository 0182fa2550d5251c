"""State that one cadence keeps and another looks up as of a position of its own, while the first goes on.

    lender's table    key -> value now               written by the lender's epochs, by nobody else
    borrower's table  key -> old values              written with the lender's epochs that change the key
        old value     position from which on it was noted, length, value or that there was none

What the lender does meanwhile is divided at some of its positions, where the borrower may stop on its way to it. An old
value is noted with the first change behind such a position, and holds for it and for those before, back to the one for
which another was noted. A lookup takes of a key the first old value noted for the borrower's position or a later one,
else what the lender's table says: that is the lender's table as it was at the borrower's position. When the borrower
has come to where the lender stands, its table is emptied. Nothing is copied but the old values of keys that change
meanwhile, in the transaction that changes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct

import numpy as np

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.operators.overlay import merged
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.lookups import Fence, SpaceLookups
from viewkeeper.zset.keys import after

# Position, bytes of the value, whether there was one.
_HEAD = Struct(">QI?")


def keep_old_values(txn: WriteTransaction, lent: str, borrowed: str, keys: Sequence[bytes], since: int) -> None:
    """Note what ``keys`` of a lent table hold before they change, but for those noted since a position.

    Args:
        txn: the transaction of the views space that is about to change them.
        lent: the lender's table.
        borrowed: the borrower's.
        keys: ascending.
        since: the last position of the lender at which the borrower may stop.
    """
    noted = txn.multi_get(borrowed, keys)
    new = {key: old or b"" for key, old in zip(keys, noted, strict=True) if old is None or _last_noted(old) < since}
    if not new:
        return
    values = txn.multi_get(lent, list(new))
    pairs = zip(new.items(), values, strict=True)
    txn.multi_put(borrowed, [(key, old + _entry(since, value)) for (key, old), value in pairs])


def _entry(since: int, value: bytes | None) -> bytes:
    return _HEAD.pack(since, len(value or b""), value is not None) + (value or b"")


def _last_noted(entries: bytes) -> int:
    return max(since for since, _ in _old_values(entries))


def _old_values(entries: bytes) -> Iterator[tuple[int, bytes | None]]:
    at = 0
    while at < len(entries):
        since, size, is_there = _HEAD.unpack_from(entries, at)
        at += _HEAD.size + size
        yield since, entries[at - size : at] if is_there else None


class BorrowedLookups(SpaceLookups):
    """Lookups over a space in which some state tables are borrowed; each sees one moment of both tables.

    Args:
        space: the views space.
        lent: the lender's table by the borrower's.
        position: the borrower's.
        fence: called with each new read transaction; raises where the epoch is no longer the next one, or a loan over.
        clock: tells how old the open read transaction is.
    """

    def __init__(
        self,
        space: Space,
        lent: Mapping[str, str],
        position: int,
        fence: Fence | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(space, fence, clock)
        self._lent = lent
        self._position = position

    def _then(self, entries: bytes | None, now: bytes | None) -> bytes | None:
        """Return what a key held at the borrower's position."""
        noted = () if entries is None else _old_values(entries)
        return next((old for since, old in noted if since >= self._position), now)

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""
        if state not in self._lent:
            return super().multi_get(state, keys)
        txn = self._read()
        now, noted = txn.multi_get(self._lent[state], keys), txn.multi_get(state, keys)
        return [value if old is None else self._then(old, value) for value, old in zip(now, noted, strict=True)]

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop, in order."""
        if state not in self._lent:
            yield from super().scan(state, start, stop, reverse)
        else:
            yield from self._scanned(self._read(), state, start or None, stop, reverse)

    def _scanned(
        self, txn: ReadTransaction, state: str, start: bytes | None, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        values: dict[bytes, bytes | None] = {}

        def noted() -> Iterator[bytes]:
            # As far as the scan goes, which may be the first few of many.
            for key, entries in txn.scan(state, start, stop, reverse):
                for old in (old for since, old in _old_values(entries) if since >= self._position):
                    values[key] = old
                    yield key
                    break

        return merged(txn.scan(self._lent[state], start, stop, reverse), noted(), values, reverse)

    def _multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None
    ) -> tuple[list[int], list[bytes]]:
        txn = self._read()
        lent = self._lent.get(state)
        if lent is None:
            return txn.multi_scan(state, prefixes, limits)
        lengths, values = txn.multi_scan(lent, prefixes, limits)
        changed = np.flatnonzero(txn.multi_scan(state, prefixes, [1] * len(prefixes))[0]).tolist()
        if not changed:
            return lengths, values
        return self._corrected(txn, state, prefixes, limits, lengths, values, changed)

    def _corrected(
        self,
        txn: ReadTransaction,
        state: str,
        prefixes: Sequence[bytes],
        limits: Sequence[int] | None,
        lengths: list[int],
        values: list[bytes],
        changed: list[int],
    ) -> tuple[list[int], list[bytes]]:
        """Read the prefixes anew under which something has changed since the borrower's position."""
        stops = np.cumsum(lengths).tolist()
        corrected: list[bytes] = []
        done = 0
        lengths = list(lengths)
        for number in changed:
            pairs = self._scanned(txn, state, prefixes[number], after(prefixes[number]))
            rows = [value for _, value in pairs][: None if limits is None else limits[number]]
            corrected += values[done : stops[number] - lengths[number]]
            corrected += rows
            done = stops[number]
            lengths[number] = len(rows)
        return lengths, corrected + values[done:]
