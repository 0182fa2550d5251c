"""State in the middle of a step that runs in rounds: what is published, under what the rounds have written.

Only an operator that owns all of its state by itself may look at it so: nobody else sees a round.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from viewkeeper.operators.state import Lookups, WriteSet
from viewkeeper.zset.keys import after


class Overlay:
    """Implements ``Lookups`` over published state and the writes so far.

    Args:
        published: the state at E−1.
    """

    def __init__(self, published: Lookups) -> None:
        self._published = published
        self._values: dict[str, dict[bytes, bytes | None]] = {}
        self._keys: dict[str, list[bytes]] = {}

    def apply(self, writes: WriteSet) -> None:
        """Put the writes of a round above what is there."""
        for state, pieces in writes.tables.items():
            values, keys = self._values.setdefault(state, {}), self._keys.setdefault(state, [])
            for piece in pieces:
                new = [key for key in piece.keys if key not in values]
                values.update(zip(piece.keys, piece.values, strict=True))
                if len(new) > len(keys) // 8:
                    self._keys[state] = keys = sorted([*keys, *new])
                else:
                    for key in new:
                        insort(keys, key)

    def write_to(self, writes: WriteSet) -> None:
        """Add what all rounds have written to ``writes``, each key once."""
        for state, keys in self._keys.items():
            values = self._values[state]
            writes.change(state, keys, [values[key] for key in keys])

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""
        values = self._values.get(state)
        if not values:
            return self._published.multi_get(state, keys)
        below = iter(self._published.multi_get(state, [key for key in keys if key not in values]))
        return [values[key] if key in values else next(below) for key in keys]

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop, in order."""
        published = self._published.scan(state, start, stop, reverse)
        values, keys = self._values.get(state, {}), self._keys.get(state, [])
        above = keys[bisect_left(keys, start) : len(keys) if stop is None else bisect_left(keys, stop)]
        return merged(published, reversed(above) if reverse else iter(above), values, reverse)

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        """Return for all pairs under the ``prefixes`` (ascending): index of the prefix (int64), value."""
        keys = self._keys.get(state)
        if not keys:
            return self._published.multi_scan(state, prefixes, limits)
        owners: list[int] = []
        found: list[bytes] = []
        for number, prefix in enumerate(prefixes):
            pairs = self.scan(state, prefix, after(prefix))
            rows = [value for _, value in islice(pairs, None if limits is None else limits[number])]
            owners += [number] * len(rows)
            found += rows
        return np.array(owners, dtype=np.int64), found


def merged(
    published: Iterator[tuple[bytes, bytes]],
    above: Iterator[bytes],
    values: dict[bytes, bytes | None],
    reverse: bool,
) -> Iterator[tuple[bytes, bytes]]:
    """Merge two ordered streams; where both have a key the value above counts, and None hides it.

    Args:
        published: the pairs below.
        above: the keys above.
        values: their values.
        reverse: whether both streams descend.
    """
    pair, key = next(published, None), next(above, None)
    while pair is not None or key is not None:
        if key is None or (pair is not None and pair[0] != key and (pair[0] < key) != reverse):
            assert pair is not None
            yield pair
            pair = next(published, None)
            continue
        if pair is not None and pair[0] == key:
            pair = next(published, None)
        value = values[key]
        if value is not None:
            yield key, value
        key = next(above, None)
