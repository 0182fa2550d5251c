"""Groups by Spark: the query behind an aggregate's rows and behind its state.

    SELECT groups, COUNT(rows), aggregates         FROM i0 GROUP BY groups          arguments of the calls, row by row
    LEFT JOIN  MIN, MAX, ...                       FROM i1 GROUP BY groups          a set of ordered values
    LEFT JOIN  exact sums of doubles by exponent   FROM i0 GROUP BY groups

Spark's sum of doubles depends on the order of rows; ours does not. So Spark only sums their parts, exactly, and the
parts of a group are added up where its row arrives (functions/exact_float.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.contents import Contents, Query, columns_sql, distinct_names, named
from viewkeeper.operators.functions.base import CallQuery
from viewkeeper.operators.functions.exact_float import parts_sql, sums_of_parts
from viewkeeper.operators.ordered.frequencies import Frequencies
from viewkeeper.operators.ordered.reader import Ordered
from viewkeeper.operators.ordered.values import OrderedValues
from viewkeeper.zset.keys import SINGLE_KEY
from viewkeeper.zset.schema import BIGINT, Column, Schema

if TYPE_CHECKING:
    from viewkeeper.operators.aggregate import Aggregate


@dataclass(frozen=True)
class GroupQuery:
    """The queries of an aggregate.

    Args:
        aggregate: the operator; its input 0 are the arguments of its calls, the others sets of ordered values.
    """

    aggregate: Aggregate

    @cached_property
    def _calls(self) -> list[CallQuery]:
        pairs = zip(self.aggregate.calls, self._arguments, strict=True)
        return [call.accumulator.query(*arguments) for call, arguments in pairs]

    @cached_property
    def _arguments(self) -> list[list[str]]:
        """The argument columns of each call."""
        at = count(len(self.aggregate.group_columns))
        return [[column_name(next(at)) for _ in call.arguments] for call in self.aggregate.calls]

    @property
    def _row_mark(self) -> str:
        """The column that is not NULL on rows of the group."""
        return column_name(len(self._groups) + sum(map(len, self._arguments)))

    def _values(self, ordered: Ordered) -> OrderedValues:
        values = self.aggregate.values[ordered.values]
        return values.values if isinstance(values, Frequencies) else values

    @cached_property
    def _kept(self) -> list[tuple[str, ...]]:
        return [o.function.kept_sql(self._values(o)) for o in self.aggregate.ordered]

    @cached_property
    def _answers(self) -> list[tuple[str, ...]]:
        return [(o.function.answer_sql(self._values(o)),) for o in self.aggregate.ordered]

    @property
    def _groups(self) -> list[str]:
        return [column_name(i) for i in range(len(self.aggregate.group_columns))]

    # ---- the state ----

    def contents(self) -> Contents:
        """Return the state: groups, counts of rows, each call's state, what ordered outputs keep."""
        aggregate = self.aggregate
        sql = self._joined([sql for call in self._calls for sql in call.aggregates], self._kept)
        width = len(aggregate.group_columns)
        query = Query(sql, self._state_schema, finish=self._finished_state)

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> list[pa.Array]:
            groups, states, kept = aggregate.read_states(values)
            columns, at = [pa.array(states[0])], 1
            for call in aggregate.calls:
                size = len(call.accumulator.state_types)
                columns += call.accumulator.shown(states[at : at + size])
                at += size
            shown = (k[: len(sql)] for k, sql in zip(kept, self._kept, strict=True))
            return [*groups, *columns, *chain.from_iterable(shown)]

        def keys_of(columns: Sequence[pa.Array]) -> Sequence[bytes]:
            return aggregate.key_codec.encode(columns[:width]) if width else [SINGLE_KEY] * len(columns[0])

        return Contents(aggregate.state, "groups", query, tuple(range(width)), decode, keys_of)

    @cached_property
    def _state_schema(self) -> Schema:
        aggregate = self.aggregate
        columns = [*aggregate.group_columns, Column("rows", BIGINT)]
        columns += [column for call in self._calls for column in call.columns]
        for ordered, kept in zip(aggregate.ordered, self._kept, strict=True):
            columns += [Column("kept", sql_type) for sql_type, _ in zip(ordered.function.kept, kept, strict=False)]
        return distinct_names(Schema(tuple(columns)))

    def _finished_state(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Put the exact sums, which come behind the aggregates, into their places."""
        start = 1 + len(self.aggregate.group_columns)
        columns = list(batch.columns[:start])
        plain = iter(batch.columns[start:])
        found: list[list[pa.Array]] = [[next(plain) for _ in call.aggregates] for call in self._calls]
        states = [self._completed(call, some, plain) for call, some in zip(self._calls, found, strict=True)]
        return [*columns, *chain.from_iterable(states), *plain]

    def _completed(self, call: CallQuery, found: list[pa.Array], rest: Iterator[pa.Array]) -> list[pa.Array]:
        """Return the columns of a call's state from what its aggregates gave, and the parts of sums among ``rest``."""
        if call.unfold is not None:
            return call.unfold(found[0])
        return [*found, pa.array(sums_of_parts(next(rest).to_pylist()), pa.binary())] if call.parts else found

    # ---- the rows ----

    def rows(self) -> Query:
        """Return the rows: the groups and the values of the outputs."""
        aggregate = self.aggregate
        if all(call.answer is not None for call in self._calls):
            answers = [str(call.answer) for call in self._calls]
            joined = self._joined(answers, self._answers)
            width, ordered = len(aggregate.group_columns), count(len(aggregate.group_columns) + 1 + len(answers))
            places = [next(ordered) if isinstance(o, Ordered) else width + 1 + o for o in aggregate.outputs]
            items = columns_sql((*range(width), *places))
            return Query(f"SELECT {', '.join(items)} FROM ({joined})" if items else joined, aggregate.schema)
        aggregates = [sql for call in self._calls for sql in (*call.aggregates, call.answer or "NULL")]
        sql = self._joined(aggregates, self._answers)
        return Query(sql, aggregate.schema, finish=self._finished_rows)

    def _finished_rows(self, batch: pa.RecordBatch) -> list[pa.Array]:
        width = len(self.aggregate.group_columns)
        plain = iter(batch.columns[1 + width :])
        found = [([next(plain) for _ in call.aggregates], next(plain)) for call in self._calls]
        answers = []
        for call, query, (columns, answer) in zip(self.aggregate.calls, self._calls, found, strict=True):
            state = self._completed(query, columns, plain)
            answers.append(answer if query.answer is not None else call.accumulator.answered(state))
        outputs = [next(plain) if isinstance(o, Ordered) else answers[o] for o in self.aggregate.outputs]
        return [*batch.columns[:width], *outputs]

    # ---- SQL ----

    def _joined(self, aggregates: Sequence[str], ordered: Sequence[Sequence[str]]) -> str:
        """Return groups, count, ``aggregates``, then the parts of exact sums, then those over ``ordered`` values."""
        groups = self._groups
        grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
        values = [f"{sql} AS a{i}" for i, sql in enumerate(aggregates)]
        text = f"(SELECT {', '.join([*groups, f'COUNT({self._row_mark}) AS n', *values])} FROM i0{grouped}) AS g"
        shown = [*(f"g.{group}" for group in groups), "g.n", *(f"g.a{i}" for i in range(len(aggregates)))]
        for number, call in enumerate(self._calls):
            if call.parts:
                sums = parts_sql("i0", groups, self._arguments[number][0])
                text += f" LEFT JOIN ({sums}) AS p{number} ON {self._same_group(f'p{number}')}"
                shown.append(f"p{number}.parts")
        read: dict[int, list[str]] = {}
        for output, items in zip(self.aggregate.ordered, ordered, strict=True):
            found = read.setdefault(output.values, [])
            for item in items:
                column = f"e{output.values}.o{len(found)}"
                found.append(f"{item} AS o{len(found)}")
                empty = output.function.empty_sql
                shown.append(f"coalesce({column}, {empty})" if empty else column)
        for number, found in read.items():
            text += f" LEFT JOIN (SELECT {', '.join([*groups, *found])} FROM i{1 + number}{grouped}) AS e{number}"
            text += f" ON {self._same_group(f'e{number}')}"
        return f"SELECT {', '.join(named(column, i) for i, column in enumerate(shown))} FROM {text}"

    def _same_group(self, relation: str) -> str:
        return " AND ".join(f"g.{group} <=> {relation}.{group}" for group in self._groups) or "true"
