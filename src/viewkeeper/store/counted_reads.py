"""The count of reads that transactions of all stores keep: see ``ReadTransaction.reads``.

What is asked for is added up per call. What scans yield is counted without a step of Python for each pair: a scan goes
through ``compress`` with a long supply of trues, which takes one of them for each pair that it yields, just then and in
C. All scans of a transaction take from one supply, and what is left of it tells how much they have yielded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import compress, repeat
from operator import length_hint
from typing import TypeVar

Item = TypeVar("Item")


class CountedReads:
    """What a read transaction inherits.

    It sets ``_asked`` to 0 and ``_supply`` to None itself: one is made for every short read, and each call costs.
    """

    __slots__ = ("_asked", "_supply")

    _asked: int
    _supply: repeat[bool] | None

    @property
    def reads(self) -> int:
        """How much was read so far."""
        return self._asked + (0 if self._supply is None else sys.maxsize - length_hint(self._supply))

    def _counted(self, items: Iterator[Item]) -> Iterator[Item]:
        """Return the pairs or keys of a scan, each counted when it is taken."""
        if self._supply is None:
            self._supply = repeat(True, sys.maxsize)
        return compress(items, self._supply)
