"""Choices: how what the oracle runs is drawn by hypothesis, so that it is replayed by seed and shrunk by structure.

Whatever stands first or is least is simplest: a failing script is shrunk towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")


class Choices:
    """Makes choices.

    Args:
        draw: of a composite strategy.
    """

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return items[self._draw(_below(len(items)))]

    def chance(self, percent: int) -> bool:
        """Return True in ``percent`` of a hundred cases."""
        return self._draw(_below(100)) >= 100 - percent

    def some(self, items: Sequence[T], least: int, most: int) -> list[T]:
        """Return ``least`` to ``most`` different ones of ``items``, all where there are fewer."""
        least, most = min(least, len(items)), min(most, len(items))
        return [
            items[index]
            for index in self._draw(st.lists(_below(len(items)), min_size=least, max_size=most, unique=True))
        ]

    def many(self, body: Callable[[int], T], least: int, most: int) -> list[T]:
        """Return what ``body`` makes of 0, 1, … ; each call is one piece for the shrinker to leave out.

        Args:
            body: draws one; may depend on those before it.
            least: how often at least.
            most: how often at most.
        """
        numbers = count()
        return self._draw(st.lists(st.builds(lambda: body(next(numbers))), min_size=least, max_size=most))


@lru_cache
def _below(size: int) -> SearchStrategy[int]:
    return st.integers(0, size - 1)
