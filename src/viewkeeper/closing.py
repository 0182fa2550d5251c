"""The one ending of context managers: a block ends by ``close``, whatever happened in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """What is closed at the end of its ``with`` block; the block's exception goes on.

    Example:
        >>> class Door(Closing):
        ...     def close(self) -> None:
        ...         print("closed")
        >>> with Door():
        ...     print("inside")
        inside
        closed
    """

    def __enter__(self) -> Self:
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def refusal(self) -> Exception | None:
        """Return the error with which a block begins on what is closed; None where all is well."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Give everything back; a second call does nothing."""
