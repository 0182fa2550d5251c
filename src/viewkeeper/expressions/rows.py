"""What only the planner calls: the value of a subquery that must not have a second row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewkeeper.expressions.function import always, kernel
from viewkeeper.expressions.tree import Call
from viewkeeper.expressions.vectors import Evaluated, Operand, as_array, blank, failing, numbers, validity
from viewkeeper.zset.schema import BIGINT


@kernel("only_row", raises=always, strict="all")
def _only_row(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    """Return the value beside a count of rows; it fails where there are several, and is NULL where there is none."""
    value, rows = operands
    several = np.broadcast_to(validity(rows) & (numbers(rows, BIGINT) > 1), (length,))
    errors = failing(several, "SCALAR_SUBQUERY_TOO_MANY_ROWS")
    return Evaluated(blank(as_array(value, length), several), errors)
