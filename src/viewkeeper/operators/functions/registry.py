"""Which accumulator computes which aggregate call."""

from __future__ import annotations

from viewkeeper.operators.functions.avg import ExactAverage, FloatAverage
from viewkeeper.operators.functions.base import Accumulator
from viewkeeper.operators.functions.count import Count
from viewkeeper.operators.functions.sum import ExactSum, FloatSum
from viewkeeper.zset.schema import SqlType


def accumulator(function: str, argument: SqlType | None, result: SqlType) -> Accumulator:
    """Return the accumulator of ``function`` over ``argument``.

    Args:
        function: ``count_star``, ``count``, ``sum`` or ``avg``.
        argument: the argument's type; None for ``count_star``.
        result: the result type by Spark's rules.

    Raises:
        KeyError: there is no such function.
    """
    if function in ("count_star", "count"):
        return Count()
    if argument is None or function not in ("sum", "avg"):
        raise KeyError(function)
    if argument.is_floating:
        return FloatSum() if function == "sum" else FloatAverage()
    return ExactSum(argument, result) if function == "sum" else ExactAverage(argument, result)
