"""State that one cadence keeps and another looks up as of a position of its own, while the first goes on.

    lender's table    key -> value now               written by the lender's epochs, by nobody else
    borrower's table  key -> value at the position   written with the lender's epoch that first changes the key

A lookup takes what the borrower's table says of a key, else what the lender's does: that is the lender's table as it
was at the borrower's position. When the borrower has come to where the lender stands, its table is emptied. Nothing is
copied but the old values of keys that change meanwhile, in the transaction that changes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.operators.overlay import merged
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.lookups import Fence, SpaceLookups
from viewkeeper.zset.keys import after

_ABSENT, _PRESENT = b"\x00", b"\x01"


def keep_old_values(txn: WriteTransaction, lent: str, borrowed: str, keys: Sequence[bytes]) -> None:
    """Note what ``keys`` of a lent table hold before they change, but for those noted earlier.

    Args:
        txn: the transaction of the views space that is about to change them.
        lent: the lender's table.
        borrowed: the borrower's.
        keys: ascending.
    """
    noted = txn.multi_get(borrowed, keys)
    new = [key for key, old in zip(keys, noted, strict=True) if old is None]
    if not new:
        return
    values = txn.multi_get(lent, new)
    txn.multi_put(borrowed, [(k, _ABSENT if v is None else _PRESENT + v) for k, v in zip(new, values, strict=True)])


def _old_value(noted: bytes) -> bytes | None:
    return None if noted == _ABSENT else noted[1:]


class BorrowedLookups(SpaceLookups):
    """Lookups over a space in which some state tables are borrowed; each sees one moment of both tables.

    Args:
        space: the views space.
        lent: the lender's table by the borrower's.
        fence: called with each new read transaction; raises where the epoch is no longer the next one, or a loan over.
        clock: tells how old the open read transaction is.
    """

    def __init__(
        self, space: Space, lent: Mapping[str, str], fence: Fence | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        super().__init__(space, fence, clock)
        self._lent = lent

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""
        if state not in self._lent:
            return super().multi_get(state, keys)
        txn = self._read()
        now, noted = txn.multi_get(self._lent[state], keys), txn.multi_get(state, keys)
        return [value if old is None else _old_value(old) for value, old in zip(now, noted, strict=True)]

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
            for key, old in txn.scan(state, start, stop, reverse):
                values[key] = _old_value(old)
                yield key

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
