"""REPEAT: each row as many times as its last column says, the copies numbered: INTERSECT ALL and EXCEPT ALL.

Rule:   step(d) = sum over rows (r, n) of d of  (r, 1) + ... + (r, n)         (linear)
State:  none.
Why:    the copy (r, j) is there as often as rows (r, n) with n >= j are. So of a row whose n changes from 100,000 to
        100,001 only one copy is made: weights are summed over the counts from above, and copies whose sum is 0 are
        never written out.
Work:   in proportion to the copies that come and go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, named
from viewkeeper.operators.matching import expand
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Repeat(Stateless):
    """Rows by count.

    Args:
        schema: the columns of a row, then the number of the copy, from 1; the input has the count in its place.
    """

    schema: Schema

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the copies that come and go, for a delta with all changes of a row."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all copies."""
        (delta,) = inputs
        width = len(self.schema) - 1
        counts = delta.rows.column(width).to_numpy()
        rows, _ = delta.group(tuple(range(width)))
        # Within a row, counts ascend; the weight of copies (below, count] is the sum of the weights from count on.
        order = np.lexsort((counts, rows))
        rows, counts = rows[order], counts[order]
        starts = np.r_[True, rows[1:] != rows[:-1]] if len(rows) else np.zeros(0, dtype=bool)
        below = np.where(starts, 0, np.r_[0, counts[:-1]]) if len(rows) else counts
        weights = _sums_from_above(delta.weights[order], starts)
        weights[counts <= below] = 0
        kept = np.flatnonzero(weights)
        at, number = expand(below[kept] + 1, counts[kept] + 1)
        copies = delta.take(order[kept][at])
        columns = [*copies.rows.columns[:width], pa.array(number, pa.int64())]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), weights[kept][at])

    def query(self) -> Query:
        """Return the copies, numbered."""
        width = len(self.schema) - 1
        columns = ", ".join([*map(column_name, range(width)), named("copy", width)])
        count = column_name(width)
        copies = f"LATERAL VIEW explode(sequence(1L, {count})) copies AS copy"
        return Query(f"SELECT {columns} FROM (SELECT * FROM i0 WHERE {count} > 0) {copies}", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()


def _sums_from_above(weights: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return for each element the sum of its run from itself to the run's end; ``starts`` marks where runs begin.

    Example:
        >>> _sums_from_above(np.array([1, 2, 5]), np.array([True, False, True])).tolist()
        [3, 2, 5]
    """
    before = np.cumsum(weights) - weights
    ends = np.r_[np.flatnonzero(starts)[1:], len(weights)]
    total = np.cumsum(weights)[ends - 1] if len(weights) else weights
    sums: np.ndarray = np.repeat(total, np.diff(np.r_[np.flatnonzero(starts), len(weights)])) - before
    return sums
