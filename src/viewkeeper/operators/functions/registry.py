"""Which accumulator computes which aggregate call."""

from __future__ import annotations

from viewkeeper.operators.functions.avg import ExactAverage, FloatAverage
from viewkeeper.operators.functions.base import Accumulator
from viewkeeper.operators.functions.bits import Bits
from viewkeeper.operators.functions.count import Count
from viewkeeper.operators.functions.statistics import FORMULAS, Statistic
from viewkeeper.operators.functions.sum import ExactSum, FloatSum
from viewkeeper.operators.functions.tolerant import TOLERANT, Tolerant
from viewkeeper.operators.functions.truth import Truth
from viewkeeper.zset.schema import SqlType

ADDITIVE = frozenset((
    "count_star", "count", "sum", "avg", "try_sum", "try_avg", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor",
    *FORMULAS,
))  # fmt: skip
"""The functions whose partial states add."""


def accumulator(function: str, argument: SqlType | None, result: SqlType) -> Accumulator:
    """Return the accumulator of ``function`` over ``argument``.

    Args:
        function: one of ``ADDITIVE``.
        argument: the argument's type; None for ``count_star``. Statistics take DOUBLE arguments.
        result: the result type by Spark's rules.

    Raises:
        KeyError: there is no such function.
    """
    if function in ("count_star", "count"):
        return Count()
    if argument is None or function not in ADDITIVE:
        raise KeyError(function)
    if function in FORMULAS:
        return Statistic(function)
    if function in ("bool_and", "bool_or"):
        return Truth(function == "bool_and")
    if function.startswith("bit_"):
        return Bits(function, argument)
    if function in TOLERANT:
        strict = accumulator(function.removeprefix("try_"), argument, result)
        return Tolerant(strict, function, argument, result)
    if argument.is_floating:
        return FloatSum() if function == "sum" else FloatAverage()
    return ExactSum(argument, result) if function == "sum" else ExactAverage(argument, result)
