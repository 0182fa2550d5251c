"""WINDOW: a column a window function, recomputed for the partitions that change.

    delta --exchange by partition--+--> ARRANGE by partition
                                   |         |   (published state, as of E-1)
                                   +--> WINDOW --> rows whose values change: old ones (-1), new ones (+1)

Rule:   step = answer(state + d) - answer(state), over the partitions that d touches.
State:  the arrangement of the input by the partition columns, kept by its own ARRANGE and shared with joins.
Why:    a window function of a row depends on the rows of its partition alone. Both answers are computed by one scan of
        the touched partitions; rows whose values stay cancel. Ties of the order are broken by the input's key, so the
        answer is a function of the rows.
Work:   in proportion to the touched partitions (times log n for sliding aggregates), not to the others.
Errors: a total that does not fit its type is an error row of its row, which goes when the total fits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, named
from viewkeeper.operators.functions.base import Rows, overflows_of
from viewkeeper.operators.functions.registry import accumulator
from viewkeeper.operators.functions.tolerant import TOLERANT
from viewkeeper.operators.kept_rows import stored_values
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.operators.windows.call import EXTREMES, LISTS, VALUES, CalendarDistance, Call
from viewkeeper.operators.windows.functions import evaluate_call
from viewkeeper.operators.windows.partitions import Partitions
from viewkeeper.operators.windows.sql import NUMBER, call_sql, over
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import after
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.schema import Schema, to_arrow_type
from viewkeeper.zset.sort_keys import OrderItem

_EXACT = ("count", "count_star", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor")


@dataclass(frozen=True)
class Window(Stateless):
    """The input's rows with one more column a call.

    Args:
        schema: the input's columns, then one a call.
        arrangement: the input by its partition columns.
        order: the order within a partition; none for all rows alike.
        calls: the functions.
        errors: where rows go whose totals overflow; None where none can.
    """

    schema: Schema
    arrangement: Arrange
    order: tuple[OrderItem, ...]
    calls: tuple[Call, ...]
    errors: ErrorSite | None

    @property
    def looks_up(self) -> tuple[str, ...]:
        """The arrangement of the input."""
        return (self.arrangement.state,)

    @cached_property
    def input_schema(self) -> Schema:
        """The columns of the input."""
        return self.arrangement.schema

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows of touched partitions whose values change, for a netted delta of whole partitions."""
        (delta,) = inputs
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        before = self._published(delta, context)
        after = Delta.concat([before, delta], self.input_schema.to_arrow()).consolidate()
        old, new = self._answered(before, -1, context), self._answered(after, 1, context)
        return Delta.concat([old, new], self.schema.to_arrow()).consolidate()

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all rows with their values; raises EvaluationError where a total overflows."""
        return self._answered(inputs[0], 1, Raising.context())

    def _published(self, delta: Delta, context: StepContext) -> Delta:
        """Return the published rows of the partitions that ``delta`` touches."""
        columns = self.arrangement.columns
        firsts = pa.array(delta.group(columns)[1])
        taken = [delta.rows.column(column).take(firsts) for column in columns]
        codec = self.arrangement.key_codec
        prefixes = encode_sorted(codec.encode_prefixes, taken)[0] if columns else [b""]
        # Of very long keys another partition may come along, always whole: it changes nothing. But where that one is
        # touched too, its prefix begins with the other's, and its rows must not be read twice.
        apart: list[bytes] = []
        for prefix in prefixes:
            if not apart or not prefix.startswith(apart[-1]):
                apart.append(prefix)
        values = context.lookups.multi_scan(self.arrangement.state, apart)[1]
        return Delta.from_rows(self.arrangement.row_codec.decode(values))

    def _answered(self, rows: Delta, weight: int, context: StepContext) -> Delta:
        """Return complete partitions with the values of the calls; rows that overflow go to the error bag."""
        schema = self.schema.to_arrow()
        if not rows.num_rows:
            return Delta.empty(schema)
        arrangement = self.arrangement
        parts = Partitions.of(rows, self.input_schema, arrangement.columns, self.order, arrangement.key)
        answers = [evaluate_call(call, parts, self.input_schema.types, self.order) for call in self.calls]
        columns = [*parts.rows.rows.columns, *(answer.values for answer in answers)]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        answered = Delta(batch, np.full(batch.num_rows, weight, np.int64))
        return keep_good(answered, overflows_of(answers, rows.num_rows), self.errors, context)[0]

    @property
    def kept_in(self) -> str:
        """The arrangement of the input."""
        return self.arrangement.state

    def unit_end(self, key: bytes, value: bytes) -> bytes | None:
        """Return the key behind the row's partition, and behind those whose keys may stand on both sides of it."""
        columns = [self.arrangement.row_codec.decode([value]).column(i) for i in self.arrangement.columns]
        return after(self.arrangement.key_codec.encode_apart(columns)) if columns else None

    def kept_rows(self, start: bytes | None, stop: bytes | None, context: StepContext) -> Delta:
        """Return the rows with the values of the calls, of the partitions in a range of keys."""
        values = stored_values(context.lookups, self.arrangement.state, start, stop)
        return self._answered(Delta.from_rows(self.arrangement.row_codec.decode(values)), 1, context)

    def query(self) -> Query:
        """Return the rows with the values of the calls, by Spark's window functions where those are exact."""
        width, columns = len(self.input_schema), self.arrangement.columns
        ties = tuple(OrderItem(k) for k in self.arrangement.key)
        numbered = f"SELECT *, row_number() OVER {over(columns, (*self.order, *ties), None)} AS {NUMBER} FROM i0"
        items = [column_name(i) for i in range(width)]
        types = self.input_schema.types
        for number, call in enumerate(self.calls):
            items.append(named(call_sql(call, columns, self.order, types, _is_exact(call)), width + number))
        sql = f"SELECT {', '.join(items)} FROM ({numbered})"
        # Spark measures frames by the time zone that it has when the query runs: then it must not be part of another.
        alone = self._session != Session() or not all(map(_is_exact, self.calls))
        return Query(sql, self.schema, self._session, finish=self._finished if alone else None)

    @property
    def _session(self) -> Session:
        """What Spark computes the frames by: the time zone in which some are measured."""
        bounds = (bound for call in self.calls for bound in (call.start, call.stop))
        zones = (bound.time_zone for bound in bounds if isinstance(bound, CalendarDistance))
        return Session(next(zones, Session().time_zone))

    def _finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = list(batch.columns[: len(self.input_schema)])
        for call, values in zip(self.calls, batch.columns[len(columns) :], strict=True):
            columns.append(values if _is_exact(call) else _collected(call, values))
        return columns

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: the arrangement is its own operator's."""
        return ()


def _is_exact(call: Call) -> bool:
    """Return whether Spark computes the call exactly, whatever the order of rows."""
    if not call.has_frame or call.function in (*VALUES, *EXTREMES, *LISTS, "percentile", "mode", *_EXACT):
        return True
    return call.function in ("sum", "avg", *TOLERANT) and not call.argument_types[0].is_floating


def _collected(call: Call, lists: pa.Array) -> pa.Array:
    """Return the aggregates of lists of values."""
    lengths: Sequence[int] = [len(values) for values in lists.to_pylist()]
    codes = np.repeat(np.arange(len(lists)), lengths)
    values = pa.array(lists.flatten(), to_arrow_type(call.argument_types[0]))
    rows = Rows(values, np.ones(len(codes), np.int64), codes, len(lists))
    function = accumulator(call.function, call.argument_types[0], call.type)
    return function.answer(function.partial(rows)).values
