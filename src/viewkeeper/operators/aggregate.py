"""AGGREGATE: one row a group, kept by one state row a group.

    partial rows ---exchange by group--+
    ordered values -exchange by group--+--> AGGREGATE --> rows that change: old ones (-1), new ones (+1)

Rule:   new state = published state + sum of partial rows;  step = answer(new state) - answer(published state).
State:  per group one row: the group, the count of rows, each call's state (functions/), what ordered functions keep;
        and for each ordered set of values an arrangement (ordered/values.py).
Why:    accumulators add, so the state depends on the group's rows alone; the answer is computed from the state; a group
        whose count is 0 has no rows and goes, the one group of a query without GROUP BY stays (SQL: one row always).
Work:   one lookup a touched group, plus what ordered/ says; of the group's rows only lists read all.
Errors: a total that does not fit its type is an error row of its group, which goes when the total fits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, islice, repeat
from operator import is_not

import numpy as np
import pyarrow as pa

from viewkeeper.operators.base import ErrorSite, Stateless, keep_good, state_is_broken
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.functions.base import Answer, StateColumn, objects, overflows_of, zeros
from viewkeeper.operators.group_query import GroupQuery
from viewkeeper.operators.kept_rows import stored_values
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.reader import Ordered, Reader
from viewkeeper.operators.ordered.values import Changes, OrderedValues
from viewkeeper.operators.partial_aggregate import Call, state_schema
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Column, Schema


@dataclass(frozen=True)
class Aggregate(Stateless):
    """Group columns, then one column per output.

    Args:
        schema: the output.
        group_columns: names and types of the group columns.
        calls: the calls that add.
        values: the sets of ordered values; input 1 + i brings the changes of values[i].
        outputs: per output column behind the group: an index into ``calls``, or an Ordered.
        state: the state table of group states.
        errors: where groups go whose totals overflow; None where none can.
    """

    schema: Schema
    group_columns: tuple[Column, ...]
    calls: tuple[Call, ...]
    values: tuple[OrderedValues | Frequencies, ...]
    outputs: tuple[int | Ordered, ...]
    state: str
    errors: ErrorSite | None

    @property
    def states(self) -> tuple[str, ...]:
        """The groups, and the ordered values."""
        return (self.state, *(state for values in self.values for state in values.states))

    @cached_property
    def key_codec(self) -> KeyCodec:
        """Group to key bytes."""
        return KeyCodec(tuple(c.type for c in self.group_columns))

    @cached_property
    def partial_schema(self) -> Schema:
        """Columns of the partial rows."""
        return state_schema(self.group_columns, self.calls)

    @cached_property
    def ordered(self) -> tuple[Ordered, ...]:
        """The outputs that are no sums, in order."""
        return tuple(o for o in self.outputs if isinstance(o, Ordered))

    @cached_property
    def row_codec(self) -> RowCodec:
        """State rows to bytes: partial columns, then what the ordered functions keep."""
        kept = (sql_type for ordered in self.ordered for sql_type in ordered.function.kept)
        return RowCodec((*self.partial_schema.types, *kept))

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
        changes = [values.update(delta, context) for values, delta in zip(self.values, inputs[1:], strict=True)]
        readers = self._readers(changes, groups, count, context)
        kept = [o.function.advance(r, k) for o, r, k in zip(self.ordered, readers, old.kept, strict=True)]
        new = _StateRows((states[0] > 0) | self.runs_on_empty, states, kept)
        if (states[0] < 0).any():
            raise state_is_broken(self.state)
        self._stage(keys, groups, old.exists, new, context)
        before = self._rows(groups, old, readers, -1, context)
        after = self._rows(groups, new, readers, +1, context)
        return Delta.concat([before, after], self.schema.to_arrow())

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return one row a group; raises EvaluationError where a total overflows."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return one row a group, by Spark's own aggregates where they are exact."""
        return GroupQuery(self).rows()

    def contents(self) -> tuple[Contents, ...]:
        """Return the state of the groups, and the ordered values."""
        found = [GroupQuery(self).contents()]
        for number, values in enumerate(self.values, 1):
            found += values.contents(number) if isinstance(values, Frequencies) else (values.contents(number),)
        return tuple(found)

    def read_states(self, values: Sequence[bytes]) -> tuple[list[pa.Array], list[StateColumn], list[list[pa.Array]]]:
        """Return group columns, state columns and what each ordered output keeps, of stored rows."""
        rows = self.row_codec.decode(values)
        width, parts = len(self.group_columns), len(self.partial_schema)
        states = [_numpy(c) for c in rows.columns[width:parts]]
        kept = iter(rows.columns[parts:])
        return list(rows.columns[:width]), states, [list(islice(kept, len(o.function.kept))) for o in self.ordered]

    @property
    def kept_in(self) -> str:
        """The groups."""
        return self.state

    def unit_end(self, key: bytes, value: bytes) -> bytes:
        """Return the key behind ``key``: each pair is a group."""
        return key + b"\x00"

    def kept_rows(self, start: bytes | None, stop: bytes | None, context: StepContext) -> Delta:
        """Return the answers of the groups in a range of keys."""
        values = stored_values(context.lookups, self.state, start, stop)
        groups, states, kept = self.read_states(values)
        rows = _StateRows(np.ones(len(values), dtype=bool), states, kept)
        readers = self._readers([{} for _ in self.values], groups, len(values), context)
        return self._rows(groups, rows, readers, 1, context)

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
        return [zeros(sql_type, count) for sql_type in types]

    def _add(self, left: list[StateColumn], right: list[StateColumn]) -> list[StateColumn]:
        total = [left[0] + right[0]]
        at = 1
        for call in self.calls:
            width = len(call.accumulator.state_types)
            total += call.accumulator.add(left[at : at + width], right[at : at + width])
            at += width
        return total

    def _readers(
        self, changes: Sequence[Changes], groups: list[pa.Array], count: int, context: StepContext
    ) -> list[Reader]:
        """Return what each ordered output reads where ordered values have ``changes``."""
        readers = []
        for values, changed in zip(self.values, changes, strict=True):
            entries = values.entries if isinstance(values, Frequencies) else values
            readers.append(Reader(entries, entries.prefixes(groups, count), changed, context))
        return [readers[ordered.values] for ordered in self.ordered]

    def _stage(
        self, keys: list[bytes], groups: list[pa.Array], existed: np.ndarray, new: _StateRows, context: StepContext
    ) -> None:
        types = self.partial_schema.to_arrow().types[len(self.group_columns) :]
        states = [pa.array(s, t) for s, t in zip(new.states, types, strict=True)]
        columns = [*groups, *states, *chain.from_iterable(new.kept)]
        if not new.exists.all():
            # A group that came and went within the epoch leaves nothing that could be deleted.
            context.writes.delete(self.state, list(compress(keys, (existed & ~new.exists).tolist())))
            keys = list(compress(keys, new.exists.tolist()))
            columns = [column.filter(pa.array(new.exists)) for column in columns]
        context.writes.put(self.state, keys, self.row_codec.encode(columns))

    def _rows(
        self, groups: list[pa.Array], rows: _StateRows, readers: list[Reader], weight: int, context: StepContext
    ) -> Delta:
        """Return the answers of the groups that exist, with ``weight``; overflows go to the error bag."""
        ordered = zip(readers, rows.kept, strict=True)
        answers = [
            Answer(output.function.answer(*next(ordered), weight > 0))
            if isinstance(output, Ordered)
            else self._answer(output, rows.states)
            for output in self.outputs
        ]
        columns = [*groups, *(answer.values for answer in answers)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow())
        delta = Delta(batch, np.full(batch.num_rows if columns else len(rows.exists), weight, np.int64))
        errors = overflows_of(answers, len(rows.exists)).only(rows.exists)
        good = keep_good(delta, errors, self.errors, context)[1]
        return delta.filter(rows.exists if good is None else rows.exists & good)

    def _answer(self, number: int, states: list[StateColumn]) -> Answer:
        at = 1 + sum(len(c.accumulator.state_types) for c in self.calls[:number])
        call = self.calls[number].accumulator
        return call.answer(states[at : at + len(call.state_types)])


@dataclass(frozen=True)
class _StateRows:
    """State of the touched groups, in key order: which exist, their state columns, what each ordered output keeps."""

    exists: np.ndarray
    states: list[StateColumn]
    kept: list[list[pa.Array]]

    @staticmethod
    def read(operator: Aggregate, stored: list[bytes | None]) -> _StateRows:
        """Decode published rows; absent groups have zero state."""
        exists = np.fromiter(map(is_not, stored, repeat(None)), np.bool_, len(stored))
        width, parts = len(operator.group_columns), len(operator.partial_schema)
        present = np.flatnonzero(exists)
        rows = operator.row_codec.decode([value for value in stored if value is not None])
        kept = rows.columns[parts:]
        if len(present) == len(stored):
            states = [_numpy(c) for c in rows.columns[width:parts]]
        else:
            states = operator._zeros(len(stored))
            for column, values in zip(states, rows.columns[width:parts], strict=True):
                column[present] = _numpy(values)
            where = np.full(len(stored), -1, np.int64)
            where[present] = np.arange(len(present))
            kept = [column.take(pa.array(where, mask=where < 0)) for column in kept]
        columns = iter(kept)
        return _StateRows(exists, states, [list(islice(columns, len(o.function.kept))) for o in operator.ordered])


def _numpy(column: pa.Array) -> StateColumn:
    if pa.types.is_binary(column.type):
        return objects(column.to_pylist())
    values: StateColumn = column.to_numpy()
    return values


def _occurrence(codes: np.ndarray) -> np.ndarray:
    """Return for each row how many earlier rows have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.r_[0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1]
    lengths = np.diff(np.r_[starts, len(codes)])
    out = np.empty(len(codes), np.int64)
    out[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return out
