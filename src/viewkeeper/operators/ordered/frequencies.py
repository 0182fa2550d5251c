"""FREQUENCIES: the values of each group, most frequent first: what MODE reads.

State:  two arrangements: group, value -> count; and group, -count, value -> value.
Rule:   where the count of a value changes, its entry in the second arrangement moves.
Why:    the mode of a group is then the first entry; values of the same frequency stand in their own order.
Work:   that of the first arrangement; the second needs no lookups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.contents import Contents, columns_sql, named
from viewkeeper.operators.ordered.values import Changes, OrderedValues
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, Column, Schema


@dataclass(frozen=True)
class Frequencies:
    """The values of all groups by how often they occur.

    Args:
        values: the counted arrangement by value.
        state: the state table of the one by frequency.
    """

    values: OrderedValues
    state: str

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tables."""
        return (*self.values.states, self.state)

    @cached_property
    def entries(self) -> OrderedValues:
        """The arrangement by frequency."""
        columns = self.values.schema.columns
        groups = self.values.groups
        schema = Schema((*columns[:groups], Column("__frequency", BIGINT, False), *columns[groups:]))
        return OrderedValues(schema, groups, 2, (groups + 1,), False, self.state)

    def contents(self, number: int) -> tuple[Contents, Contents]:
        """Return what both state tables must hold over the aggregate's input ``number``."""
        groups = range(self.values.groups)
        value = self.values.groups
        by = ", ".join(column_name(i) for i in (*groups, value))
        moved = [named("-COUNT(*)", value), named(column_name(value), value + 1)]
        sql = f"SELECT {', '.join([*columns_sql(groups), *moved])} FROM i{number} GROUP BY {by}"
        return self.values.contents(number), self.entries.contents_of(sql)

    def update(self, delta: Delta, context: StepContext) -> Changes:
        """Stage the counts and what they move; return what changes by frequency."""
        if not delta.num_rows:
            return {}
        counts = self.values.count(delta, context)
        self.values.stage(counts, context)
        moved = counts.before != counts.now
        rows, before, now = counts.rows.filter(moved), counts.before[moved], counts.now[moved]
        gone, come = before > 0, now > 0
        parts = [
            self._moved(rows.filter(gone), before[gone], -1),
            self._moved(rows.filter(come), now[come], +1),
        ]
        return self.entries.update(Delta.concat(parts, self.entries.schema.to_arrow()), context)

    def _moved(self, rows: Delta, counts: np.ndarray, weight: int) -> Delta:
        groups = self.values.groups
        columns = [*rows.rows.columns[:groups], pa.array(-counts), *rows.rows.columns[groups:]]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.entries.schema.to_arrow())
        return Delta.from_rows(batch, weight)
