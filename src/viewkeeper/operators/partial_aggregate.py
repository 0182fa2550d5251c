"""PARTIAL AGGREGATE: the part of an aggregate that runs before rows move to their group's owner.

    delta --+--> PARTIAL AGGREGATE --exchange by group--------+
            |                                                 +--> AGGREGATE
            +--> EXTREME VALUES (per MIN/MAX argument) -------+
                                  --exchange by group--

Rule:   step(d) = one row a group: the group's columns, the sum of weights, and what ``d`` adds to each call's state.
State:  none.
Why:    accumulators add (functions/base.py), so rows may be summed in any parts; that makes the exchange small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.functions.base import Accumulator, Rows, StateColumn
from viewkeeper.operators.functions.registry import accumulator
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, Column, Schema, SqlType


@dataclass(frozen=True)
class Call:
    """One aggregate call that adds.

    Args:
        function: ``count_star``, ``count``, ``sum`` or ``avg``.
        argument: position of the argument in the input; None for ``count_star``.
        filter: position of the BOOLEAN column of its FILTER clause, or None.
        argument_type: the argument's type, or None.
        type: the result type.
    """

    function: str
    argument: int | None
    filter: int | None
    argument_type: SqlType | None
    type: SqlType

    @cached_property
    def accumulator(self) -> Accumulator:
        """The accumulator that computes the call."""
        return accumulator(self.function, self.argument_type, self.type)


def state_schema(groups: tuple[Column, ...], calls: tuple[Call, ...]) -> Schema:
    """Return the columns of partial rows: the group, the count of rows, then each call's state."""
    columns = [*groups, Column("__rows", BIGINT, False)]
    for number, call in enumerate(calls):
        types = call.accumulator.state_types
        columns += [Column(f"__state_{number}_{i}", t, False) for i, t in enumerate(types)]
    return Schema(tuple(columns))


@dataclass(frozen=True)
class PartialAggregate(Stateless):
    """Sums a delta by group.

    Args:
        groups: positions of the group columns.
        group_columns: those columns' names and types.
        calls: the calls that add.
    """

    groups: tuple[int, ...]
    group_columns: tuple[Column, ...]
    calls: tuple[Call, ...]

    @cached_property
    def schema(self) -> Schema:
        """Group columns, count, states."""
        return state_schema(self.group_columns, self.calls)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return one partial row a group."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return one partial row a group."""
        (delta,) = inputs
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        codes, first = delta.group(self.groups)
        columns: list[StateColumn] = [Rows(None, delta.weights, codes, len(first)).counts()]
        for call in self.calls:
            columns += call.accumulator.partial(rows_of(delta, call.argument, call.filter, codes, len(first)))
        taken = [canonical(delta.rows.column(i).take(pa.array(first))) for i in self.groups]
        return partial_rows(self.schema, taken, columns, len(first))

    def query(self) -> Query:
        """Return what is summed, row by row: the group, then each call's argument where its filter lets it count."""
        columns = list(self.group_columns)
        items = columns_sql(self.groups)
        for number, call in enumerate(self.calls):
            value = "1L" if call.argument is None else column_name(call.argument)
            counted = value if call.filter is None else f"CASE WHEN {column_name(call.filter)} THEN {value} END"
            items.append(named(counted, len(columns)))
            columns.append(Column(f"__argument_{number}", call.argument_type or BIGINT))
        if not columns:
            # Without groups and calls there are still rows to count.
            items, columns = [named("1L", 0)], [Column("__row", BIGINT, False)]
        return Query(f"SELECT {', '.join(items)} FROM i0", Schema(tuple(columns)))

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()


def rows_of(delta: Delta, argument: int | None, condition: int | None, codes: np.ndarray, groups: int) -> Rows:
    """Return the rows that a call with ``argument`` and FILTER column ``condition`` counts."""
    values = None if argument is None else delta.rows.column(argument)
    rows = Rows(values, delta.weights, codes, groups)
    if condition is None:
        return rows
    return rows.where(delta.rows.column(condition).fill_null(False).to_numpy(zero_copy_only=False).astype(bool))


def partial_rows(schema: Schema, groups: list[pa.Array], states: list[StateColumn], count: int) -> Delta:
    """Return partial rows from group columns and state columns."""
    arrow = schema.to_arrow()
    types = arrow.types[len(groups) :]
    columns = [*groups, *(pa.array(s, t) for s, t in zip(states, types, strict=True))]
    return Delta(pa.RecordBatch.from_arrays(columns, schema=arrow), np.ones(count, np.int64))


@dataclass(frozen=True)
class ExtremeValues(Stateless):
    """The values that a MIN or MAX ranges over, with their group and weight.

    Args:
        groups: positions of the group columns.
        argument: position of the argument.
        filter: position of the BOOLEAN column of its FILTER clause, or None.
        schema: the group columns, then the value.
    """

    groups: tuple[int, ...]
    argument: int
    filter: int | None
    schema: Schema

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the non-NULL values with their groups."""
        return self.whole(inputs)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the non-NULL values with their groups."""
        (delta,) = inputs
        mask = delta.rows.column(self.argument).is_valid().to_numpy(zero_copy_only=False)
        if self.filter is not None:
            chosen = delta.rows.column(self.filter).fill_null(False).to_numpy(zero_copy_only=False)
            mask = mask & chosen.astype(bool)
        kept = delta.filter(mask)
        # One form of NaN and of zero, so that equal values meet under one key.
        columns = [canonical(kept.rows.column(i)) for i in (*self.groups, self.argument)]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), kept.weights)

    def query(self) -> Query:
        """Return the non-NULL values with their groups."""
        condition = f"{column_name(self.argument)} IS NOT NULL"
        if self.filter is not None:
            condition += f" AND {column_name(self.filter)}"
        items = ", ".join(columns_sql((*self.groups, self.argument)))
        return Query(f"SELECT {items} FROM i0 WHERE {condition}", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()
