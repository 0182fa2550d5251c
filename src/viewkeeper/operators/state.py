"""The port to keyed state: what an operator may look up, and what it asks to be written.

State is a set of named tables of ``key bytes -> value bytes``. Lookups always show the state published at E-1, whatever
this epoch has staged; writes are only collected. So a step can be run again, by anybody, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import is_not, not_
from typing import Protocol

import numpy as np


class Lookups(Protocol):
    """Published state, as of the epoch before the running one."""

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop, in order."""

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        """Return for all pairs under the ``prefixes`` (ascending): index of the prefix (int64), value.

        Args:
            state: the state table.
            prefixes: bytes of at least one each.
            limits: per prefix how many pairs are enough; None for all.
        """


@dataclass
class StateWrites:
    """Changes of one state table under ascending keys: all of them get new values, or all go.

    Args:
        keys: the keys.
        new_values: their values, in order; None where they go.
        count: how many keys there are.
    """

    keys: list[bytes]
    new_values: Sequence[bytes] | None
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.keys)

    @property
    def values(self) -> Sequence[bytes | None]:
        """The value of each key, None where it goes."""
        return [None] * len(self.keys) if self.new_values is None else self.new_values

    def let_go(self) -> None:
        """Keep the count alone: whoever has written a large piece needs its memory for the next one."""
        self.keys, self.new_values = [], None


@dataclass
class WriteSet:
    """What a step wants written: per state table new values, and counts to be added.

    ``merges`` are for error bags: key -> (weight to add, text); many tasks may touch one key, so the publisher adds.
    ``lent`` names tables that another cadence keeps up to date: what a step wants written there is written already.
    """

    tables: dict[str, list[StateWrites]] = field(default_factory=dict)
    merges: dict[str, dict[bytes, int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    lent: frozenset[str] = frozenset()

    def put(self, state: str, keys: list[bytes], values: Sequence[bytes]) -> None:
        """Ask for ``values`` at ``keys`` of ``state``; a key is written by one operator at most once an epoch."""
        if keys and state not in self.lent:
            self.tables.setdefault(state, []).append(StateWrites(keys, values))

    def delete(self, state: str, keys: list[bytes]) -> None:
        """Ask for ``keys`` of ``state`` to go."""
        if keys and state not in self.lent:
            self.tables.setdefault(state, []).append(StateWrites(keys, None))

    def change(self, state: str, keys: list[bytes], values: Sequence[bytes | None]) -> None:
        """Ask for ``values`` at ``keys`` of ``state``; keys whose value is None go."""
        stays = list(map(is_not, values, repeat(None)))
        self.delete(state, list(compress(keys, map(not_, stays))))
        self.put(state, list(compress(keys, stays)), [value for value in values if value is not None])

    def merge(self, state: str, key: bytes, weight: int) -> None:
        """Ask for ``weight`` to be added to the count at ``key``; a count of 0 removes the key."""
        counts = self.merges.setdefault(state, {})
        counts[key] = counts.get(key, 0) + weight


@dataclass
class StepContext:
    """What a step gets beside its deltas."""

    lookups: Lookups
    writes: WriteSet
