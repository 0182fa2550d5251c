"""AVG: the sum's state, divided at the end. Integers and floats give DOUBLE, decimals and intervals round halves up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from viewkeeper.operators.functions import limbs
from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn
from viewkeeper.operators.functions.sum import ExactSum, FloatSum, float_totals
from viewkeeper.zset.schema import SqlType, to_arrow_type

_EXACT_IN_DOUBLE = 1 << 53
_EXACT_IN_WORDS = 1 << 62


@dataclass(frozen=True)
class ExactAverage:
    """AVG of an integer, interval or DECIMAL argument."""

    argument: SqlType
    type: SqlType

    @property
    def _sum(self) -> ExactSum:
        return ExactSum(self.argument, self.type)

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """The sum's state."""
        return self._sum.state_types

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the sum's partial state."""
        return self._sum.partial(rows)

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums."""
        return self._sum.add(left, right)

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return sum / count; NULL where no argument counted."""
        null = state[0] == 0
        if self.type.name == "DECIMAL":
            return self._decimals(state, null)
        if self.type.name == "INTERVAL_DAY_TIME":
            return self._intervals(state, null)
        counts = np.where(null, 1, state[0])
        total, overflow = limbs.to_int64(state[1:])
        if not overflow.any() and (not len(total) or _magnitude(total) < _EXACT_IN_DOUBLE):
            return Answer(pa.array(total / counts, mask=null))
        exact = [t / c for t, c in zip(limbs.to_python(state[1:]), counts.tolist(), strict=True)]
        return Answer(pa.array(np.array(exact, dtype=np.float64), mask=null))

    def query(self, *arguments: str) -> CallQuery:
        """Return the sum's query; Spark adds integers as doubles, so their average is computed from the exact sum."""
        (argument,) = arguments
        found = self._sum.query(argument)
        answer = None if self.argument.is_integer else f"CAST(AVG({argument}) AS {self.type})"
        return CallQuery(found.columns, found.aggregates, answer)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the count and the sum."""
        return self._sum.shown(state)

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return sum / count as doubles."""
        pairs = zip(columns[0].to_pylist(), columns[1].to_pylist(), strict=True)
        return pa.array([int(total) / count if count else None for count, total in pairs], pa.float64())

    def _intervals(self, state: Sequence[StateColumn], null: StateColumn) -> Answer:
        # As for decimals, the sum must fit, too.
        total, overflow = limbs.to_int64(state[1:])
        counts = np.where(null, 1, state[0])
        quotient, rest = np.divmod(total, counts)
        # The quotient is rounded down: a half goes up where the sum is positive, else it stays.
        quotient += np.where(total >= 0, 2 * rest >= counts, 2 * rest > counts)
        overflow = overflow & ~null
        values = pa.array(quotient, mask=null | overflow)
        return Answer(values.cast(to_arrow_type(self.type)), overflow)

    def _decimals(self, state: Sequence[StateColumn], null: StateColumn) -> Answer:
        # Spark overflows where the sum no longer fits its own type, before it divides.
        limit = 10 ** min(38, self.argument.precision + 10)
        factor = 10 ** (self.type.scale - self.argument.scale)
        total, is_wide = limbs.to_int64(state[1:])
        if not is_wide.any() and (not len(total) or _magnitude(total) * factor < _EXACT_IN_WORDS):
            return self._small_decimals(total, state[0], null, limit, factor)
        values: list[Decimal | None] = []
        overflow = np.zeros(len(null), dtype=bool)
        bound = 10**self.type.precision
        for i, (number, count) in enumerate(zip(limbs.to_python(state[1:]), state[0].tolist(), strict=True)):
            quotient = _half_up(number * factor, count) if count else 0
            overflow[i] = bool(count) and not (-limit < number < limit and -bound < quotient < bound)
            values.append(None if not count or overflow[i] else _unscaled(quotient, self.type.scale))
        return Answer(pa.array(values, pa.decimal128(self.type.precision, self.type.scale)), overflow)

    def _small_decimals(
        self, total: StateColumn, count: StateColumn, null: StateColumn, limit: int, factor: int
    ) -> Answer:
        """Divide sums that are single words, all at once."""
        counts = np.where(null, 1, count)
        quotient, rest = np.divmod(np.abs(total) * factor, counts)
        quotient += 2 * rest >= counts
        overflow = ~null & (
            (np.abs(total) >= min(limit, _EXACT_IN_WORDS)) | (quotient >= min(10**self.type.precision, _EXACT_IN_WORDS))
        )
        signed = np.where(total < 0, -quotient, quotient)
        high = np.where(signed < 0, np.int64(-1), np.int64(0))
        scale = self.type.scale
        return Answer(limbs.decimal_array(signed, high, null | overflow, self.type.precision, scale), overflow)


def _magnitude(numbers: StateColumn) -> int:
    return max(abs(int(numbers.min())), abs(int(numbers.max())))


def _half_up(numerator: int, denominator: int) -> int:
    """Return the quotient rounded to the nearest integer, halves away from zero."""
    quotient, rest = divmod(abs(numerator), denominator)
    quotient += 2 * rest >= denominator
    return quotient if numerator >= 0 else -quotient


def _unscaled(number: int, scale: int) -> Decimal:
    sign, digits = (1, -number) if number < 0 else (0, number)
    return Decimal((sign, tuple(map(int, str(digits))), -scale))


@dataclass(frozen=True)
class FloatAverage(FloatSum):
    """AVG of a FLOAT or DOUBLE argument."""

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return sum / count; NULL where no argument counted."""
        null = state[0] == 0
        with np.errstate(all="ignore"):
            return Answer(pa.array(float_totals(state) / np.where(null, 1, state[0]), mask=null))
