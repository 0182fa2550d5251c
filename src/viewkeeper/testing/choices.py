"""Choices: the one thing that generators ask for, made by a seed or by hypothesis.

A seed makes a script in a millisecond and never the same one twice; hypothesis takes a hundred times as long,
and shrinks by itself. The oracle draws its many by seeds and shrinks the failing one as data (``shrink.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from viewkeeper.clock import Chance

T = TypeVar("T")


class Choices(Protocol):
    """Makes choices."""

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""

    def chance(self, percent: int) -> bool:
        """Return True in ``percent`` of a hundred cases."""

    def some(self, items: Sequence[T], least: int, most: int, unique: bool = True) -> list[T]:
        """Return ``least`` to ``most`` of ``items``, all where there are fewer; each once if ``unique``."""


class SeededChoices:
    """Choices fixed by a seed.

    Args:
        random: from ``clock.seeded``.
    """

    def __init__(self, random: Chance) -> None:
        self._random = random

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return self._random.choice(items)

    def chance(self, percent: int) -> bool:
        """Return True in ``percent`` of a hundred cases."""
        return self._random.randrange(100) < percent

    def some(self, items: Sequence[T], least: int, most: int, unique: bool = True) -> list[T]:
        """Return ``least`` to ``most`` of ``items``."""
        count = self._random.randint(least, most)
        return self._random.sample(items, min(count, len(items))) if unique else self._random.choices(items, k=count)
