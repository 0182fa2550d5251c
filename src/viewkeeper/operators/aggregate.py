"""AGGREGATE: one row a group, kept by one state row a group.

    partial rows ------exchange by group--+
    values of MIN/MAX --exchange by group-+--> AGGREGATE --> rows that change: old ones (-1), new ones (+1)

Rule:   new state = published state + sum of partial rows;  step = answer(new state) - answer(published state).
State:  per group one row: the group, the count of rows, each call's state (functions/), the current extremes; and for
        each MIN/MAX argument an ordered arrangement (extremes.py).
Why:    accumulators add, so the state depends on the group's rows alone; the answer is computed from the state; a group
        whose count is 0 has no rows and goes, the one group of a query without GROUP BY stays (SQL: one row always).
Work:   one lookup a touched group, plus what extremes.py says; never the group's rows.
Errors: a total that does not fit its type is an error row of its group, which goes when the total fits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import Errors
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good, state_is_broken
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.extremes import Extremes
from viewkeeper.operators.functions.base import Answer, StateColumn
from viewkeeper.operators.group_query import Extreme, GroupQuery
from viewkeeper.operators.partial_aggregate import Call, state_schema
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Column, Schema

OVERFLOW = "ARITHMETIC_OVERFLOW"


@dataclass(frozen=True)
class Aggregate(Stateless):
    """Group columns, then one column per output.

    Args:
        schema: the output.
        group_columns: names and types of the group columns.
        calls: the calls that add.
        extremes: per MIN/MAX argument its arrangement; input 1 + i brings the changes of extremes[i].
        outputs: per output column behind the group: an index into ``calls`` or an Extreme.
        state: the state table of group states.
        errors: where groups go whose totals overflow; None where none can.
    """

    schema: Schema
    group_columns: tuple[Column, ...]
    calls: tuple[Call, ...]
    extremes: tuple[Extremes, ...]
    outputs: tuple[int | Extreme, ...]
    state: str
    errors: ErrorSite | None

    @property
    def states(self) -> tuple[str, ...]:
        """The groups, and the values behind extremes."""
        return (self.state, *(extreme.state for extreme in self.extremes))

    @cached_property
    def key_codec(self) -> KeyCodec:
        """Group to key bytes."""
        return KeyCodec(tuple(c.type for c in self.group_columns))

    @cached_property
    def partial_schema(self) -> Schema:
        """Columns of the partial rows."""
        return state_schema(self.group_columns, self.calls)

    @cached_property
    def extreme_outputs(self) -> tuple[Extreme, ...]:
        """The outputs that are MIN or MAX, in order."""
        return tuple(o for o in self.outputs if isinstance(o, Extreme))

    @cached_property
    def row_codec(self) -> RowCodec:
        """State rows to bytes: partial columns, then the current extremes."""
        ends = tuple(self.extremes[o.values].schema.types[-1] for o in self.extreme_outputs)
        return RowCodec(self.partial_schema.types + ends)

    @property
    def runs_on_empty(self) -> bool:
        """Whether a step without rows still matters: the global aggregate must have its row."""
        return not self.group_columns

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return old and new rows of the touched groups."""
        groups, added = self._sum_partials(inputs[0])
        count = len(added[0])
        if not count:
            return Delta.empty(self.schema.to_arrow())
        keys, order = encode_sorted(self.key_codec.encode, groups) if groups else ([SINGLE_KEY], None)
        if order is not None:
            groups, added = [g.take(pa.array(order)) for g in groups], [column[order] for column in added]
        stored = context.lookups.multi_get(self.state, keys)
        old = _StateRows.read(self, stored)
        if not inputs[0].num_rows and old.exists.all():
            return Delta.empty(self.schema.to_arrow())
        states = self._add(old.states, added)
        ends = self._ends(inputs[1:], groups, old, context)
        new = _StateRows((states[0] > 0) | self.runs_on_empty, states, ends)
        if (states[0] < 0).any():
            raise state_is_broken(self.state)
        self._stage(keys, groups, old.exists, new, context)
        return self._difference(groups, old, new, context)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return one row a group; raises EvaluationError where a total overflows."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return one row a group, by Spark's own aggregates where they are exact."""
        return GroupQuery(self).rows()

    def contents(self) -> tuple[Contents, ...]:
        """Return the state of the groups, and the values behind MIN and MAX."""
        values = (extremes.contents(1 + i) for i, extremes in enumerate(self.extremes))
        return (GroupQuery(self).contents(), *values)

    def read_states(self, values: Sequence[bytes]) -> tuple[list[pa.Array], list[StateColumn], list[pa.Array]]:
        """Return group columns, state columns and extremes of stored rows."""
        rows = self.row_codec.decode(values)
        width, parts = len(self.group_columns), len(self.partial_schema)
        states = [_numpy(c) for c in rows.columns[width:parts]]
        return list(rows.columns[:width]), states, list(rows.columns[parts:])

    def _sum_partials(self, partials: Delta) -> tuple[list[pa.Array], list[StateColumn]]:
        """Return group columns and the sums of the partial rows' states."""
        width = len(self.group_columns)
        codes, first = partials.group(tuple(range(width)))
        states = [_numpy(c) for c in partials.rows.columns[width:]]
        if not width and not partials.num_rows:
            return [], self._zeros(1)
        columns = list(partials.rows.columns[:width])
        if len(first) == partials.num_rows:
            return columns, states
        groups = [c.take(pa.array(first)) for c in columns]
        total = self._zeros(len(first))
        # Partial rows of one group come from different tasks: few. Add them round by round, each group once a round.
        round_of = _occurrence(codes)
        for number in range(int(round_of.max()) + 1):
            rows = np.flatnonzero(round_of == number)
            at = codes[rows]
            part = self._add([c[at] for c in total], [c[rows] for c in states])
            for column, values in zip(total, part, strict=True):
                column[at] = values
        return groups, total

    def _zeros(self, count: int) -> list[StateColumn]:
        types = self.partial_schema.types[len(self.group_columns) :]
        return [np.zeros(count, np.int64) if t.name == "BIGINT" else _empty_bytes(count) for t in types]

    def _add(self, left: list[StateColumn], right: list[StateColumn]) -> list[StateColumn]:
        total = [left[0] + right[0]]
        at = 1
        for call in self.calls:
            width = len(call.accumulator.state_types)
            total += call.accumulator.add(left[at : at + width], right[at : at + width])
            at += width
        return total

    def _ends(
        self, changes: tuple[Delta, ...], groups: list[pa.Array], old: _StateRows, context: StepContext
    ) -> list[pa.Array]:
        """Return the current extremes, one array per MIN/MAX output."""
        if not self.extremes:
            return []
        changed = [e.update(d, context) for e, d in zip(self.extremes, changes, strict=True)]
        out = []
        for number, end in enumerate(self.extreme_outputs):
            extremes = self.extremes[end.values]
            prefixes = extremes.prefixes(groups, len(old.exists))
            known = zip(prefixes, old.ends[number].to_pylist(), strict=True)
            out.append(extremes.answers(known, changed[end.values], end.largest, context).values)
        return out

    def _stage(
        self, keys: list[bytes], groups: list[pa.Array], existed: np.ndarray, new: _StateRows, context: StepContext
    ) -> None:
        types = self.partial_schema.to_arrow().types[len(self.group_columns) :]
        states = [pa.array(s, t) for s, t in zip(new.states, types, strict=True)]
        rows: list[bytes | None] = list(self.row_codec.encode([*groups, *states, *new.ends]))
        if not new.exists.all():
            rows = [row if alive else None for row, alive in zip(rows, new.exists.tolist(), strict=True)]
            # A group that came and went within the epoch leaves nothing that could be deleted.
            known = (existed | new.exists).tolist()
            keys, rows = list(compress(keys, known)), list(compress(rows, known))
        context.writes.put(self.state, keys, rows)

    def _difference(self, groups: list[pa.Array], old: _StateRows, new: _StateRows, context: StepContext) -> Delta:
        before = self._rows(groups, old, -1, context)
        after = self._rows(groups, new, +1, context)
        return Delta.concat([before, after], self.schema.to_arrow())

    def _rows(self, groups: list[pa.Array], rows: _StateRows, weight: int, context: StepContext) -> Delta:
        """Return the answers of the groups that exist, with ``weight``; overflows go to the error bag."""
        columns, overflow, end = list(groups), np.zeros(len(rows.exists), dtype=bool), 0
        for output in self.outputs:
            if isinstance(output, Extreme):
                answer = Answer(rows.ends[end])
                end += 1
            else:
                answer = self._answer(output, rows.states)
            columns.append(answer.values)
            if answer.overflow is not None:
                overflow |= answer.overflow
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow())
        delta = Delta(batch, np.full(batch.num_rows if columns else len(rows.exists), weight, np.int64))
        overflow &= rows.exists
        if overflow.any():
            good = keep_good(
                delta, Errors(overflow, np.full(len(overflow), OVERFLOW, dtype=object)), self.errors, context
            )[1]
            return delta.filter(rows.exists & good)
        return delta.filter(rows.exists)

    def _answer(self, number: int, states: list[StateColumn]) -> Answer:
        at = 1 + sum(len(c.accumulator.state_types) for c in self.calls[:number])
        call = self.calls[number].accumulator
        return call.answer(states[at : at + len(call.state_types)])


@dataclass(frozen=True)
class _StateRows:
    """State of the touched groups, in key order: which exist, their state columns, their extremes."""

    exists: np.ndarray
    states: list[StateColumn]
    ends: list[pa.Array]

    @staticmethod
    def read(operator: Aggregate, stored: list[bytes | None]) -> _StateRows:
        """Decode published rows; absent groups have zero state."""
        exists = np.array([value is not None for value in stored], dtype=bool)
        width, parts = len(operator.group_columns), len(operator.partial_schema)
        present = np.flatnonzero(exists)
        rows = operator.row_codec.decode([value for value in stored if value is not None])
        if len(present) == len(stored):
            return _StateRows(exists, [_numpy(c) for c in rows.columns[width:parts]], list(rows.columns[parts:]))
        states = operator._zeros(len(stored))
        for column, values in zip(states, rows.columns[width:parts], strict=True):
            column[present] = _numpy(values)
        where = np.full(len(stored), -1, np.int64)
        where[present] = np.arange(len(present))
        index = pa.array(where, mask=where < 0)
        return _StateRows(exists, states, [c.take(index) for c in rows.columns[parts:]])


def _numpy(column: pa.Array) -> StateColumn:
    if pa.types.is_binary(column.type):
        out = _empty_bytes(len(column))
        out[:] = column.to_pylist()
        return out
    values: StateColumn = column.to_numpy()
    return values


def _empty_bytes(count: int) -> StateColumn:
    return np.full(count, b"", dtype=object)


def _occurrence(codes: np.ndarray) -> np.ndarray:
    """Return for each row how many earlier rows have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.r_[0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1]
    lengths = np.diff(np.r_[starts, len(codes)])
    out = np.empty(len(codes), np.int64)
    out[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return out
