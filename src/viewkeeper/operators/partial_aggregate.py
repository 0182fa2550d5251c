"""PARTIAL AGGREGATE: the part of an aggregate that runs before rows move to their group's owner.

    delta --+--> PARTIAL AGGREGATE --exchange by group-----------------------+
            |                                                                +--> AGGREGATE
            +--> GROUP VALUES (per ordered set of values) --exchange by group+
            |                                                                |
            +--> GROUP VALUES (per DISTINCT set of arguments)                |
                   --> one row each (AGGREGATE by group and arguments)       |
                   --> PARTIAL AGGREGATE of the calls over them -------------+

Rule:   step(d) = one row a group: the group's columns, the sum of weights, and what ``d`` adds to each call's state.
State:  none.
Why:    accumulators add (functions/base.py), so rows may be summed in any parts; that makes the exchange small. Calls
        over DISTINCT arguments add too, over rows that stand for each of them once: a partial row then says nothing
        about the other calls and counts no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.functions.base import Accumulator, Rows, StateColumn, zeros
from viewkeeper.operators.functions.registry import accumulator
from viewkeeper.operators.group_values import is_true
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, Column, Schema, SqlType


@dataclass(frozen=True)
class Call:
    """One aggregate call that adds.

    Args:
        function: ``count_star``, ``count``, ``sum``, ``corr``, ...: see functions/registry.py.
        argument: position of the argument in the input; None for ``count_star``.
        filter: position of the BOOLEAN column of its FILTER clause, or None.
        argument_type: the argument's type, or None.
        type: the result type.
        more: positions of further arguments.
        more_types: their types.
        distinct: whether its rows are those of a set of distinct arguments.
    """

    function: str
    argument: int | None
    filter: int | None
    argument_type: SqlType | None
    type: SqlType
    more: tuple[int, ...] = ()
    more_types: tuple[SqlType, ...] = ()
    distinct: bool = False

    @property
    def arguments(self) -> tuple[int | None, ...]:
        """Positions of all arguments; of ``count_star`` one that is none."""
        return (self.argument, *self.more)

    @property
    def argument_types(self) -> tuple[SqlType, ...]:
        """Their types."""
        return (self.argument_type or BIGINT, *self.more_types)

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
        only: indexes of the calls over these rows, where they are distinct arguments: then they count as no rows, and
            add nothing to other calls. None: the rows are the input's, and all calls but DISTINCT ones are over them.
    """

    groups: tuple[int, ...]
    group_columns: tuple[Column, ...]
    calls: tuple[Call, ...]
    only: frozenset[int] | None = None

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
        rows = Rows(None, delta.weights, codes, len(first))
        columns: list[StateColumn] = [rows.counts() if self.only is None else zeros(BIGINT, len(first))]
        for number, call in enumerate(self.calls):
            if call.distinct if self.only is None else number not in self.only:
                columns += [zeros(sql_type, len(first)) for sql_type in call.accumulator.state_types]
            else:
                columns += call.accumulator.partial(rows_of(delta, call, codes, len(first)))
        taken = [canonical(delta.rows.column(i).take(pa.array(first))) for i in self.groups]
        return partial_rows(self.schema, taken, columns, len(first))

    def query(self) -> Query:
        """Return what is summed, row by row: the group, each call's arguments where it counts the row, and a 1.

        Rows of distinct arguments have NULL for that 1, as they are no rows of the group, and for other calls.
        """
        columns = list(self.group_columns)
        items = columns_sql(self.groups)
        for number, call in enumerate(self.calls):
            counts = call.distinct is False if self.only is None else number in self.only
            for argument, sql_type in zip(call.arguments, call.argument_types, strict=True):
                value = "1L" if argument is None else column_name(argument)
                if not counts:
                    value = f"CAST(NULL AS {sql_type})"
                elif call.filter is not None:
                    value = f"CASE WHEN {column_name(call.filter)} THEN {value} END"
                items.append(named(value, len(columns)))
                columns.append(Column(f"__argument_{number}", sql_type))
        items.append(named("1L" if self.only is None else "CAST(NULL AS BIGINT)", len(columns)))
        columns.append(Column("__row", BIGINT))
        return Query(f"SELECT {', '.join(items)} FROM i0", Schema(tuple(columns)))

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()


def rows_of(delta: Delta, call: Call, codes: np.ndarray, groups: int) -> Rows:
    """Return the rows that ``call`` counts."""
    values = None if call.argument is None else delta.rows.column(call.argument)
    more = tuple(delta.rows.column(position) for position in call.more)
    rows = Rows(values, delta.weights, codes, groups, more)
    return rows if call.filter is None else rows.where(is_true(delta.rows.column(call.filter)))


def partial_rows(schema: Schema, groups: list[pa.Array], states: list[StateColumn], count: int) -> Delta:
    """Return partial rows from group columns and state columns."""
    arrow = schema.to_arrow()
    types = arrow.types[len(groups) :]
    columns = [*groups, *(pa.array(s, t) for s, t in zip(states, types, strict=True))]
    return Delta(pa.RecordBatch.from_arrays(columns, schema=arrow), np.ones(count, np.int64))
