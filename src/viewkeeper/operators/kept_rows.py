"""KEPT ROWS: where rows enter a circuit that an operator has made before, read from its state instead of made again.

    base rows -> ... -> AGGREGATE -> rows -> ...      becomes      group states -> KEPT ROWS -> rows -> ...

Rule:   what enters is the operator's output over a range of the keys of its state, each row once.
Why:    the state determines the output, and does so *unit* by unit: a group, a partition. A range that cuts no unit
        gives all rows of the units that are in it, whatever the others hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

from viewkeeper.operators.state import Lookups, StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

# Few enough that lookups renew their read transaction in time.
_PAIRS_A_READ = 16_384


@runtime_checkable
class Keeper(Protocol):
    """An operator whose output stands in its state."""

    @property
    def schema(self) -> Schema:
        """The columns of the output."""

    @property
    def kept_in(self) -> str:
        """The state table whose keys are read in ranges."""

    def unit_end(self, key: bytes, value: bytes) -> bytes | None:
        """Return the first key behind the unit of a stored pair; None where no unit can follow."""

    def kept_rows(self, start: bytes | None, stop: bytes | None, context: StepContext) -> Delta:
        """Return the output of the units whose keys are from ``start`` to before ``stop``; None is open."""


@dataclass(frozen=True)
class KeptRows:
    """The output of ``keeper``, by ranges.

    Args:
        keeper: the operator.
    """

    keeper: Keeper

    def between(self, lookups: Lookups, start: bytes | None, stop: bytes | None) -> Delta:
        """Return the rows of a range of keys that cuts no unit.

        Args:
            lookups: the state.
            start: the first key; None from the beginning.
            stop: the key before which it ends; None at the end.

        Raises:
            EvaluationError: a row cannot be computed; who borrows state asks before whether there is such a row.
        """
        return self.keeper.kept_rows(start, stop, StepContext(lookups, Raising()))


def stored_values(lookups: Lookups, state: str, start: bytes | None, stop: bytes | None) -> list[bytes]:
    """Return the values of a range of keys, in order."""
    values: list[bytes] = []
    at: bytes = start or b""
    while pairs := list(islice(lookups.scan(state, at, stop), _PAIRS_A_READ)):
        values += [value for _, value in pairs]
        at = pairs[-1][0] + b"\x00"
    return values
