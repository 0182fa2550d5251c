"""What only the planner calls: the value of a subquery that must not have a second row, the frequency of a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewkeeper.expressions.function import always, kernel
from viewkeeper.expressions.tree import Call
from viewkeeper.expressions.vectors import (
    Evaluated,
    Operand,
    as_array,
    blank,
    column,
    failing,
    merge,
    numbers,
    validity,
)
from viewkeeper.zset.schema import BIGINT

FREQUENCY_MAX = 10_000_000_000
"""Up to here the frequencies of as many rows as a group may have add up to a BIGINT."""


@kernel("only_row", raises=always, strict="all")
def _only_row(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    """Return the value beside a count of rows; it fails where there are several, and is NULL where there is none."""
    value, rows = operands
    several = np.broadcast_to(validity(rows) & (numbers(rows, BIGINT) > 1), (length,))
    errors = failing(several, "SCALAR_SUBQUERY_TOO_MANY_ROWS")
    return Evaluated(blank(as_array(value, length), several), errors)


@kernel("frequency", raises=always, strict="all")
def _frequency(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    """Return how often a value counts, NULL where it does not; as in Spark the frequency of NULL may be negative."""
    value, times = operands
    counts = np.broadcast_to(validity(value) & validity(times), (length,))
    frequencies = np.broadcast_to(numbers(times, BIGINT), (length,))
    negative = counts & (frequencies < 0)
    large = counts & (frequencies > FREQUENCY_MAX)
    errors = merge(failing(negative, "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION"), failing(large, "ARITHMETIC_OVERFLOW"))
    return Evaluated(column(frequencies, BIGINT, counts & (frequencies > 0) & ~large, length), errors)
