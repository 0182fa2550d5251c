"""Scripts as a hypothesis strategy, for property tests; hypothesis is needed by whoever imports this module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from viewkeeper.testing.generators import REFRESHES, make_script
from viewkeeper.testing.scripts import Script

T = TypeVar("T")


class DrawnChoices:
    """Choices that hypothesis makes, and makes smaller when a test fails.

    Args:
        draw: of a composite strategy.
    """

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return self._draw(st.sampled_from(items))

    def chance(self, percent: int) -> bool:
        """Return True in ``percent`` of a hundred cases."""
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def some(self, items: Sequence[T], least: int, most: int, unique: bool = True) -> list[T]:
        """Return ``least`` to ``most`` of ``items``."""
        size = min(least, len(items)) if unique else least
        if not unique:
            return self._draw(st.lists(st.sampled_from(items), min_size=size, max_size=most))
        indices = self._draw(st.lists(st.integers(0, len(items) - 1), min_size=size, max_size=most, unique=True))
        return [items[index] for index in indices]


@st.composite
def scripts(draw: DrawFn, refreshes: Sequence[str] = REFRESHES) -> Script:
    """Draw a script.

    Args:
        draw: hypothesis' draw function.
        refreshes: REFRESH clauses to choose from.
    """
    return make_script(DrawnChoices(draw), refreshes)
