"""UNION ALL: the rows of all inputs together.

Rule:   step(d1, ..., dn) = d1 + ... + dn      (linear)
State:  none.
Why:    Z-sets add; the plan has given each branch its number as a column, so equal rows of two branches stay two rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class UnionAll(Stateless):
    """The sum of its inputs.

    Args:
        schema: the columns of each.
        count: how many there are.
    """

    schema: Schema
    count: int

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the sum of the deltas."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all rows of all inputs."""
        schema = self.schema.to_arrow()
        arrived = [
            Delta(pa.RecordBatch.from_arrays(d.rows.columns, schema=schema), d.weights) for d in inputs if d.num_rows
        ]
        return Delta.concat(arrived, schema)

    def query(self) -> Query:
        """Return UNION ALL of the inputs."""
        return Query(" UNION ALL ".join(f"SELECT * FROM i{i}" for i in range(self.count)), self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()
