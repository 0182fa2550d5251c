"""The port through which the planner sees tables, views and functions, and errors that help to find the right name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol

from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.nodes import Relation


class Relations(Protocol):
    """The tables and views that a query may read; names compare without regard to case."""

    def relation(self, name: str) -> Relation | None:
        """Return the table or view called ``name``, None where there is none."""

    def function(self, name: str) -> UserFunction | None:
        """Return the user's function called ``name``, None where there is none."""

    def names(self) -> list[str]:
        """Return the names of all tables and views."""

    def apart(self) -> Relations | None:
        """Return the same for parts of a query that nobody reads: what they name is not noted as read.

        None for the query of a view that is there: they were checked at its creation, and what they name may be gone.
        """


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names what resembles ``name``, else what there is.

    Example:
        >>> suggestion("odrers", ["orders", "items"])
        "Did you mean 'orders'?"
        >>> suggestion("zzz", ["orders", "items"])
        "There are 'orders', 'items'."
    """
    by_folded = {candidate.lower(): candidate for candidate in known}
    if not by_folded:
        return "There are none."
    near = [by_folded[folded] for folded in difflib.get_close_matches(name.lower(), list(by_folded), n=3)]
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    shown = list(by_folded.values())
    rest = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f"There are {', '.join(map(repr, shown[:8]))}{rest}."
