"""GROUP VALUES: the values that an ordered or a DISTINCT aggregate ranges over, with their group.

Rule:   step(d) = the chosen columns of the rows of ``d`` that count: FILTER is true, the required columns are not NULL
State:  none.
Why:    linear: a filter and a choice of columns. Those that become keys are brought to one form of NaN and of zero, so
        that equal values meet under one key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, columns_sql
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.buffers import BoolArray, canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class GroupValues(Stateless):
    """The group columns, then the values.

    Args:
        columns: positions of the output's columns in the input.
        keys: how many of them, from the first, are group or are compared.
        required: positions of the columns that must not be NULL.
        filter: position of the BOOLEAN column of a FILTER clause, or None.
        schema: the output.
    """

    columns: tuple[int, ...]
    keys: int
    required: tuple[int, ...]
    filter: int | None
    schema: Schema

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows that count."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows that count."""
        (delta,) = inputs
        mask = np.ones(delta.num_rows, dtype=bool)
        for position in self.required:
            if delta.rows.column(position).null_count:
                mask &= delta.rows.column(position).is_valid().to_numpy(zero_copy_only=False)
        if self.filter is not None:
            mask &= is_true(delta.rows.column(self.filter))
        kept = delta.filter(mask)
        columns = [kept.rows.column(position) for position in self.columns]
        columns[: self.keys] = map(canonical, columns[: self.keys])
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), kept.weights)

    def query(self) -> Query:
        """Return the rows that count."""
        conditions = [f"{column_name(position)} IS NOT NULL" for position in self.required]
        if self.filter is not None:
            conditions.append(column_name(self.filter))
        items = ", ".join(columns_sql(self.columns))
        return Query(f"SELECT {items} FROM i0 WHERE {' AND '.join(conditions) or 'true'}", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()


def is_true(conditions: pa.Array) -> BoolArray:
    """Return where BOOLEAN values are true, not NULL."""
    known: BoolArray = conditions.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return known
