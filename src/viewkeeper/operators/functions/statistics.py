"""VARIANCE, STDDEV, SKEWNESS, KURTOSIS, COVAR, CORR and REGR: exact sums of powers and products, rounded at the end.

The state counts the rows whose arguments are all there, and for each argument those with an infinity or NaN; then it
holds one exact sum (exact_products.py) for each product that the function needs, over the rows where it is finite. With

    S(x) = sum of x,   D(x) = n S(xx) - S(x)^2,   C = n S(xy) - S(x) S(y)

all answers are quotients of integers: var_pop = D / n^2, corr = C / sqrt(D(x) D(y)), ...; nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn, objects
from viewkeeper.operators.functions.exact_float import UNIT_BITS, add_states, from_bytes, to_bytes
from viewkeeper.operators.functions.exact_products import product_sums
from viewkeeper.zset.schema import BIGINT, BINARY, Column, SqlType, to_arrow_type

_Products = tuple[tuple[int, ...], ...]
_FIRST, _SECOND = 0, 1


@dataclass(frozen=True)
class _Sums:
    """What the rows of one group add up to.

    Args:
        n: how many there are.
        special: for each argument whether an infinity or NaN is among them.
        sums: by product.
    """

    n: int
    special: tuple[bool, ...]
    sums: Mapping[tuple[int, ...], int]

    def spread(self, argument: int) -> int | None:
        """Return D: n^2 times the variance; None where it is NaN."""
        if self.special[argument]:
            return None
        return self.n * self.sums[argument, argument] - self.sums[argument,] ** 2

    @property
    def common(self) -> int | None:
        """C: n^2 times the covariance; None where it is NaN."""
        if any(self.special):
            return None
        return self.n * self.sums[_FIRST, _SECOND] - self.sums[_FIRST,] * self.sums[_SECOND,]


_Formula = Callable[[_Sums], float | None]


@dataclass(frozen=True)
class Statistic:
    """One of the functions in ``FORMULAS``, over DOUBLE arguments."""

    function: str

    @property
    def _products(self) -> _Products:
        return FORMULAS[self.function].products

    @property
    def _arguments(self) -> int:
        return FORMULAS[self.function].arguments

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """Counts of rows and of special values, and the exact sums as bytes."""
        return (BIGINT, *[BIGINT] * self._arguments, *[BINARY] * len(self._products))

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return counts and exact sums of the rows."""
        rows = rows.without_nulls()
        arguments = [_doubles(values) for values in (rows.argument, *rows.more)]
        finite = [np.isfinite(values) for values in arguments]
        columns = [rows.counts(), *(rows.where(~mask).counts() for mask in finite)]
        for product in self._products:
            mask = np.logical_and.reduce([finite[position] for position in product])
            kept = rows if mask.all() else rows.where(mask)
            factors = [arguments[position][mask] for position in product]
            sums = product_sums(factors, kept.weights, kept.codes, kept.groups)
            columns.append(objects(list(map(to_bytes, sums))))
        return columns

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the exact sums."""
        counts = 1 + self._arguments
        sums = zip(left[counts:], right[counts:], strict=True)
        return [
            *(a + b for a, b in zip(left[:counts], right[:counts], strict=True)),
            *(objects(add_states(a.tolist(), b.tolist())) for a, b in sums),
        ]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the statistic of each group."""
        formula = FORMULAS[self.function]
        counts = 1 + self._arguments
        values: list[float | None] = []
        for count, *row in zip(*(column.tolist() for column in state), strict=True):
            if count < formula.rows_min:
                values.append(None)
                continue
            special, states = row[: counts - 1], row[counts - 1 :]
            sums = dict(zip(self._products, map(from_bytes, states), strict=True))
            values.append(formula.answer(_Sums(count, tuple(map(bool, special)), sums)))
        return Answer(pa.array(values, pa.float64()))

    def query(self, *arguments: str) -> CallQuery:
        """Return the arguments of all rows of a group: no sum of Spark's is exact for their products."""
        fields = ", ".join(f"CAST({argument} AS DOUBLE)" for argument in arguments)
        present = " AND ".join(f"{argument} IS NOT NULL" for argument in arguments)
        rows = f"collect_list(array({fields})) FILTER (WHERE {present})"
        names = ["count", *(f"special_{i}" for i in range(self._arguments))]
        sums = ["sum_" + "".join("xy"[position] for position in product) for product in self._products]
        columns = (*(Column(name, BIGINT) for name in names), *(Column(name, BINARY) for name in sums))
        return CallQuery(columns, (rows,), None, unfold=self._unfolded)

    def _unfolded(self, groups: pa.Array) -> list[pa.Array]:
        """Return the state of groups from the arguments of their rows, in plain fractions."""
        states = [self._state_of(rows or []) for rows in groups.to_pylist()]
        types = [to_arrow_type(sql_type) for sql_type in self.state_types]
        columns = zip(*states, strict=True) if states else ((),) * len(types)
        return [pa.array(list(values), arrow) for values, arrow in zip(columns, types, strict=True)]

    def _state_of(self, rows: Sequence[Sequence[float]]) -> list[object]:
        special = [sum(not math.isfinite(row[i]) for row in rows) for i in range(self._arguments)]
        state: list[object] = [len(rows), *special]
        for product in self._products:
            kept = (row for row in rows if all(math.isfinite(row[i]) for i in product))
            total = sum((math.prod(Fraction(row[i]) for i in product) for row in kept), Fraction(0))
            state.append(to_bytes(int(total * (1 << (UNIT_BITS * len(product))))))
        return state

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the state as it is; the exact sums in the bytes of their one form."""
        types = (to_arrow_type(sql_type) for sql_type in self.state_types)
        return [pa.array(column, arrow) for column, arrow in zip(state, types, strict=True)]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the statistic of each group."""
        return self.answer([column.to_numpy(zero_copy_only=False) for column in columns]).values


def _doubles(values: pa.Array) -> np.ndarray:
    doubles: np.ndarray = values.to_numpy(zero_copy_only=False)
    return doubles.astype(np.float64)


def _quotient(numerator: int | None, denominator: int, units: int = 0) -> float:
    """Return the double nearest to numerator / denominator, the numerator in units of 2^-(1074 units); None is NaN."""
    if numerator is None:
        return math.nan
    try:
        return numerator / (denominator << (UNIT_BITS * units))
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _signed_root(square: float, sign: int) -> float:
    return -math.sqrt(square) if sign < 0 else math.sqrt(square)


def _var_pop(s: _Sums) -> float:
    return _quotient(s.spread(_FIRST), s.n * s.n, 2)


def _var_samp(s: _Sums) -> float:
    return _quotient(s.spread(_FIRST), s.n * (s.n - 1), 2)


def _skewness(s: _Sums) -> float | None:
    spread = s.spread(_FIRST)
    if not spread:
        return math.nan if spread is None else None
    n, one, two, three = s.n, *(s.sums[(_FIRST,) * power] for power in (1, 2, 3))
    third = n * n * three - 3 * n * one * two + 2 * one**3
    return _signed_root(_quotient(third * third, spread**3), third)


def _kurtosis(s: _Sums) -> float | None:
    spread = s.spread(_FIRST)
    if not spread:
        return math.nan if spread is None else None
    n, one, two, three, four = s.n, *(s.sums[(_FIRST,) * power] for power in (1, 2, 3, 4))
    fourth = n**3 * four - 4 * n * n * one * three + 6 * n * one * one * two - 3 * one**4
    return _quotient(fourth - 3 * spread * spread, spread * spread)


def _covar_pop(s: _Sums) -> float:
    return _quotient(s.common, s.n * s.n, 2)


def _covar_samp(s: _Sums) -> float:
    return _quotient(s.common, s.n * (s.n - 1), 2)


def _corr(s: _Sums) -> float | None:
    first, second, common = s.spread(_FIRST), s.spread(_SECOND), s.common
    if first == 0 or second == 0:
        return None
    if first is None or second is None or common is None:
        return math.nan
    return _signed_root(_quotient(common * common, first * second), common)


# REGR functions take the dependent variable first, the independent one second.


def _regr_r2(s: _Sums) -> float | None:
    dependent, independent, common = s.spread(_FIRST), s.spread(_SECOND), s.common
    if independent == 0:
        return None
    if dependent == 0:
        return 1.0
    if dependent is None or independent is None or common is None:
        return math.nan
    return _quotient(common * common, dependent * independent)


def _regr_slope(s: _Sums) -> float | None:
    independent = s.spread(_SECOND)
    if independent == 0:
        return None
    return math.nan if independent is None else _quotient(s.common, independent)


def _regr_intercept(s: _Sums) -> float | None:
    independent, common = s.spread(_SECOND), s.common
    if independent == 0:
        return None
    if independent is None or common is None:
        return math.nan
    return _quotient(s.sums[_FIRST,] * independent - common * s.sums[_SECOND,], s.n * independent, 1)


@dataclass(frozen=True)
class _Statistic:
    """How a function is computed.

    Args:
        products: the products whose sums it needs.
        rows_min: the least number of rows with an answer.
        answer: the answer.
        arguments: how many arguments it has.
    """

    products: _Products
    rows_min: int
    answer: _Formula
    arguments: int = 1


_ONE: _Products = ((_FIRST,), (_FIRST, _FIRST))
_OTHER: _Products = ((_SECOND,), (_SECOND, _SECOND))
_CROSSED: _Products = ((_FIRST,), (_SECOND,), (_FIRST, _SECOND))
_REGRESSION: _Products = (*_CROSSED, (_SECOND, _SECOND))
_TWO: _Products = (*_REGRESSION, (_FIRST, _FIRST))

FORMULAS: Mapping[str, _Statistic] = {
    "var_pop": _Statistic(_ONE, 1, _var_pop),
    "var_samp": _Statistic(_ONE, 2, _var_samp),
    "stddev_pop": _Statistic(_ONE, 1, lambda s: math.sqrt(_var_pop(s))),
    "stddev_samp": _Statistic(_ONE, 2, lambda s: math.sqrt(_var_samp(s))),
    "skewness": _Statistic((*_ONE, (_FIRST,) * 3), 1, _skewness),
    "kurtosis": _Statistic((*_ONE, (_FIRST,) * 3, (_FIRST,) * 4), 1, _kurtosis),
    "covar_pop": _Statistic(_CROSSED, 1, _covar_pop, 2),
    "covar_samp": _Statistic(_CROSSED, 2, _covar_samp, 2),
    "corr": _Statistic(_TWO, 2, _corr, 2),
    "regr_r2": _Statistic(_TWO, 1, _regr_r2, 2),
    "regr_slope": _Statistic(_REGRESSION, 1, _regr_slope, 2),
    "regr_intercept": _Statistic(_REGRESSION, 1, _regr_intercept, 2),
    "regr_sxx": _Statistic(_OTHER, 1, lambda s: _quotient(s.spread(_SECOND), s.n, 2), 2),
    "regr_syy": _Statistic(_ONE, 1, lambda s: _quotient(s.spread(_FIRST), s.n, 2), 2),
    "regr_sxy": _Statistic(_CROSSED, 1, lambda s: _quotient(s.common, s.n, 2), 2),
}
"""The statistics by name."""
