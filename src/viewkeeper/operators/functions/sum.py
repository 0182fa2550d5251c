"""SUM: exact whatever the order. Integers, intervals and decimals in limbs, FLOAT and DOUBLE as exact binary sums.

The state also counts the non-NULL arguments: the sum of none is NULL. Overflow is judged on the total only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.operators.functions import exact_float, limbs
from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn, objects
from viewkeeper.zset.schema import BIGINT, BINARY, MAX_PRECISION, Column, SqlType, decimal, to_arrow_type

WIDE_INTEGER = decimal(20, 0)
"""Holds any BIGINT, and the microseconds of any interval."""
_MORE_DIGITS = 10  # what Spark's sum of decimals has more than its argument
_EXACT = Column("exact_sum", BINARY)
_SECONDS = {"DAY": "86400L", "HOUR": "3600", "MINUTE": "60", "SECOND": "1"}


def limb_count(argument: SqlType) -> int:
    """Return how many limbs hold any sum of ``argument``'s values."""
    return 6 if argument.name == "DECIMAL" and argument.precision > 18 else 3


def exact_limbs(values: pa.Array, argument: SqlType) -> list[StateColumn]:
    """Return the limbs of integer, interval (microseconds) or decimal ``values`` without NULLs."""
    if argument.name != "DECIMAL":
        return limbs.limbs_of_int64(values.to_numpy(zero_copy_only=False).astype(np.int64))
    parts = limbs.limbs_of_decimal(values)
    if argument.precision > 18:
        return parts
    return [parts[0], parts[1] | (parts[3] << limbs.LIMB_BITS)]


def wide_sql(argument: str, argument_type: SqlType) -> str:
    """Return ``argument`` in Spark's SQL as a decimal that may be summed: of an interval its microseconds.

    Example:
        >>> wide_sql("`_c0`", BIGINT)
        'CAST(`_c0` AS decimal(20,0))'
    """
    if argument_type.name == "DECIMAL":
        return argument
    if argument_type.name == "INTERVAL_DAY_TIME":
        parts = (f"extract({unit} FROM {argument}) * {seconds}" for unit, seconds in _SECONDS.items())
        argument = f"({' + '.join(parts)}) * 1000000"
    return f"CAST({argument} AS {WIDE_INTEGER})"


@dataclass(frozen=True)
class ExactSum:
    """SUM of an integer, interval or DECIMAL argument: state = count of non-NULLs, then limbs."""

    argument: SqlType
    type: SqlType

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """A count and the limbs."""
        return (BIGINT,) * (1 + limb_count(self.argument))

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return counts and limbs of the rows' sums."""
        rows = rows.without_nulls()
        values = exact_limbs(rows.argument, self.argument)
        width = limb_count(self.argument)
        return [rows.counts(), *limbs.group_sums(values, rows.weights, rows.codes, rows.groups, width)]

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums, carried."""
        return [left[0] + right[0], *limbs.add(left[1:], right[1:])]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the totals; NULL where no argument counted."""
        null = state[0] == 0
        if self.type.name == "DECIMAL":
            return Answer(*limbs.to_decimal(state[1:], self.type.precision, self.type.scale, null))
        total, overflow = limbs.to_int64(state[1:])
        overflow = overflow & ~null
        values = pa.array(total, mask=null | overflow)
        return Answer(values.cast(to_arrow_type(self.type)), overflow)

    @property
    def _wide(self) -> SqlType:
        """What Spark's sum of the argument as a decimal is: a total beyond it is NULL, here and there."""
        argument = self.argument if self.argument.name == "DECIMAL" else WIDE_INTEGER
        return decimal(min(MAX_PRECISION, argument.precision + _MORE_DIGITS), argument.scale)

    def query(self, *arguments: str) -> CallQuery:
        """Return the count of non-NULLs and the sum as a wide decimal."""
        (argument,) = arguments
        term = wide_sql(argument, self.argument)
        columns = (Column("count", BIGINT), Column("sum", self._wide))
        answer = f"CAST(SUM({argument}) AS {self.type})"
        return CallQuery(columns, (f"COUNT({argument})", f"try_sum({term})"), answer)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the count and the sum."""
        wide = self._wide
        return [pa.array(state[0]), limbs.to_decimal(state[1:], wide.precision, wide.scale, state[0] == 0)[0]]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the sums in the result type."""
        return columns[1].cast(to_arrow_type(self.type))


@dataclass(frozen=True)
class FloatSum:
    """SUM of a FLOAT or DOUBLE argument: state = counts of non-NULLs, +inf, -inf, NaN, then the exact finite sum."""

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """Four counts and the sum's bytes."""
        return (BIGINT, BIGINT, BIGINT, BIGINT, BINARY)

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return counts and exact sums of the rows."""
        rows = rows.without_nulls()
        values = rows.argument.to_numpy(zero_copy_only=False).astype(np.float64)
        special = [values == np.inf, values == -np.inf, np.isnan(values)]
        counts = [rows.where(mask).counts() if mask.any() else np.zeros(rows.groups, np.int64) for mask in special]
        finite = np.isfinite(values)
        kept = rows if finite.all() else rows.where(finite)
        sums = exact_float.group_sums(values[finite], kept.weights, kept.codes, kept.groups)
        return [rows.counts(), *counts, objects([*map(exact_float.to_bytes, sums)])]

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the exact sums."""
        counts = [a + b for a, b in zip(left[:4], right[:4], strict=True)]
        total = exact_float.add_states(left[4].tolist(), right[4].tolist())
        return [*counts, objects(total)]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the totals, rounded once."""
        return Answer(pa.array(float_totals(state), pa.float64(), mask=state[0] == 0))

    def query(self, *arguments: str) -> CallQuery:
        """Return the counts; the exact sum comes from its parts."""
        (argument,) = arguments
        value, infinity = f"CAST({argument} AS DOUBLE)", exact_float.INFINITY_SQL
        special = (f"{value} = {infinity}", f"{value} = -{infinity}", f"isnan({value})")
        counts = (f"COUNT({argument})", *(f"COUNT_IF({condition})" for condition in special))
        columns = (*(Column(name, BIGINT) for name in ("count", "infinite", "minus_infinite", "nan")), _EXACT)
        return CallQuery(columns, counts, None, parts=True)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the state as it is; the exact sum in the bytes of its one form."""
        return [*(pa.array(column) for column in state[:4]), pa.array(state[4], pa.binary())]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the totals, rounded once."""
        counts = [column.to_numpy() for column in columns[:4]]
        return self.answer([*counts, columns[4].to_numpy(zero_copy_only=False)]).values


def float_totals(state: Sequence[StateColumn]) -> StateColumn:
    """Return the doubles that FloatSum's state stands for."""
    totals = np.array([exact_float.to_float(exact_float.from_bytes(b)) for b in state[4]], dtype=np.float64)
    positive, negative, nan = state[1] > 0, state[2] > 0, state[3] > 0
    totals = np.where(positive, np.inf, np.where(negative, -np.inf, totals))
    return np.where(nan | (positive & negative), np.nan, totals)
