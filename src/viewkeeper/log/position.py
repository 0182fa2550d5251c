"""Positions in the log: opaque to users, comparable on one store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

from viewkeeper.errors import InputError


@total_ordering
@dataclass(frozen=True, eq=True)
class Position:
    """A moment of the transaction log: everything up to and including ``sequence_number`` has happened.

    Example:
        >>> Position.parse(str(Position(7))) == Position(7) < Position(8)
        True
    """

    sequence_number: int

    def __lt__(self, other: Position) -> bool:
        """Return whether this moment is earlier."""
        return self.sequence_number < other.sequence_number

    def __str__(self) -> str:
        """Return the text form that ``parse`` reads."""
        return str(self.sequence_number)

    @staticmethod
    def parse(text: str) -> Position:
        """Return the position that ``str`` wrote as ``text``.

        Raises:
            InputError: ``INVALID_POSITION`` where ``text`` is none.

        Example:
            >>> Position.parse("7")
            Position(sequence_number=7)
        """
        if not text.isascii() or not text.isdigit():
            raise InputError("INVALID_POSITION", f"{text!r} is not a position of this store: pass what str() gave.")
        return Position(int(text))
