"""EXPAND: each row once per projection, for GROUPING SETS, CUBE and ROLLUP.

Rule:   step(d) = sum over projections p of p(d)        (linear)
State:  none.
Why:    every projection is linear, and so is their sum; a column of the output tells the projections apart, so rows
        that two of them make alike stay two rows.
Work:   one output row for each changed row and projection.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.expressions.spark_sql import cast_sql, spark_sql
from viewkeeper.expressions.tree import ColumnRef, Literal
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, named
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Expand(Stateless):
    """The sum of several projections on columns and constants.

    Args:
        schema: the columns of each projection.
        projections: what each computes over the input.
    """

    schema: Schema
    projections: tuple[tuple[ColumnRef | Literal, ...], ...]

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the changed rows, once per projection."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all rows, once per projection."""
        (delta,) = inputs
        schema = self.schema.to_arrow()
        if not delta.num_rows:
            # There may be thousands of projections, of VALUES that nothing changes.
            return Delta.empty(schema)
        return Delta.concat([self._projected(delta, p, schema) for p in self.projections], schema)

    def query(self) -> Query:
        """Return UNION ALL of the projections."""
        parts = []
        for projection in self.projections:
            outputs = zip(projection, self.schema.types, strict=True)
            listed = ", ".join(named(cast_sql(spark_sql(output), kind), i) for i, (output, kind) in enumerate(outputs))
            parts.append(f"SELECT {listed} FROM i0")
        return Query(" UNION ALL ".join(parts), self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()

    def _projected(self, delta: Delta, projection: tuple[ColumnRef | Literal, ...], schema: pa.Schema) -> Delta:
        columns = [
            delta.rows.column(output.index)
            if isinstance(output, ColumnRef)
            else pa.repeat(pa.scalar(output.value, field.type), delta.num_rows)
            for output, field in zip(projection, schema, strict=True)
        ]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=schema), delta.weights)
