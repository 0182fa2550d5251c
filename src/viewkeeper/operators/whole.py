"""The context in which plain twins run: no state to look up, and a failing row raises at once, as Spark would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from viewkeeper.errors import EvaluationError
from viewkeeper.expressions.errors import code_of, remedy
from viewkeeper.operators.state import StepContext, WriteSet


class NoState:
    """Lookups over nothing: what state is before the first epoch."""

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return None for every key."""
        return [None] * len(keys)

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield nothing."""
        return iter(())

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        """Return no pairs."""
        return np.empty(0, dtype=np.int64), []


class Raising(WriteSet):
    """Writes that are dropped, and error rows that raise."""

    @staticmethod
    def context() -> StepContext:
        """Return a context for a plain twin."""
        return StepContext(NoState(), Raising())

    def put(self, state: str, keys: list[bytes], values: Sequence[bytes]) -> None:
        """Drop the writes: a plain twin keeps no state."""

    def delete(self, state: str, keys: list[bytes]) -> None:
        """Drop the writes."""

    def merge(self, state: str, key: bytes, weight: int) -> None:
        """Raise the error that the entry describes."""
        reason, row = msgspec.json.decode(key)
        named = {name: value for name, value in row.items() if not name.startswith("__")}
        what = f"The row {named}" if named else "The query"
        raise EvaluationError(code_of(reason), f"{what} cannot be computed ({reason}){remedy(reason)}.", {"key": named})
