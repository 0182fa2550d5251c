"""Groups by Spark: the query behind an aggregate's rows and behind its state.

    SELECT groups, COUNT(*), aggregates            FROM i0 GROUP BY groups          arguments of the calls, row by row
    LEFT JOIN  MIN, MAX                            FROM i1 GROUP BY groups          values behind MIN and MAX
    LEFT JOIN  exact sums of doubles by exponent   FROM i0 GROUP BY groups

Spark's sum of doubles depends on the order of rows; ours does not. So Spark only sums their parts, exactly, and the
parts of a group are added up where its row arrives (functions/exact_float.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.contents import Contents, Query, columns_sql, distinct_names, named
from viewkeeper.operators.functions.base import CallQuery
from viewkeeper.operators.functions.exact_float import parts_sql, sums_of_parts
from viewkeeper.zset.keys import SINGLE_KEY
from viewkeeper.zset.schema import BIGINT, Column, Schema

if TYPE_CHECKING:
    from viewkeeper.operators.aggregate import Aggregate


@dataclass(frozen=True)
class Extreme:
    """A MIN or MAX: which values, and which end of them."""

    values: int
    largest: bool


@dataclass(frozen=True)
class GroupQuery:
    """The queries of an aggregate.

    Args:
        aggregate: the operator; its input 0 are the arguments of its calls, the others the values of its extremes.
    """

    aggregate: Aggregate

    @cached_property
    def _calls(self) -> list[CallQuery]:
        width = len(self.aggregate.group_columns)
        calls = self.aggregate.calls
        return [c.accumulator.query(column_name(width + i)) for i, c in enumerate(calls)]

    @property
    def _groups(self) -> list[str]:
        return [column_name(i) for i in range(len(self.aggregate.group_columns))]

    # ---- the state ----

    def contents(self) -> Contents:
        """Return the state: groups, counts of rows, each call's state, the extremes."""
        aggregate = self.aggregate
        sql = self._joined([aggregate_sql for call in self._calls for aggregate_sql in call.aggregates])
        width = len(aggregate.group_columns)
        query = Query(sql, self._state_schema, finish=self._finished_state)

        def decode(keys: Sequence[bytes], values: Sequence[bytes]) -> list[pa.Array]:
            groups, states, ends = aggregate.read_states(values)
            columns, at = [pa.array(states[0])], 1
            for call in aggregate.calls:
                count = len(call.accumulator.state_types)
                columns += call.accumulator.shown(states[at : at + count])
                at += count
            return [*groups, *columns, *ends]

        def keys_of(columns: Sequence[pa.Array]) -> Sequence[bytes]:
            return aggregate.key_codec.encode(columns[:width]) if width else [SINGLE_KEY] * len(columns[0])

        return Contents(aggregate.state, "groups", query, tuple(range(width)), decode, keys_of)

    @cached_property
    def _state_schema(self) -> Schema:
        aggregate = self.aggregate
        columns = [*aggregate.group_columns, Column("rows", BIGINT)]
        columns += [column for call in self._calls for column in call.columns]
        for end in aggregate.extreme_outputs:
            columns.append(Column("max" if end.largest else "min", aggregate.extremes[end.values].schema.types[-1]))
        return distinct_names(Schema(tuple(columns)))

    def _finished_state(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Put the exact sums, which come behind the aggregates, into their places."""
        start = 1 + len(self.aggregate.group_columns)
        columns = list(batch.columns[:start])
        plain = iter(batch.columns[start:])
        found: list[list[pa.Array | None]] = [[next(plain) for _ in call.aggregates] for call in self._calls]
        for call, some in zip(self._calls, found, strict=True):
            if call.parts:
                some.append(pa.array(sums_of_parts(next(plain).to_pylist()), pa.binary()))
        return [*columns, *(column for some in found for column in some), *plain]

    # ---- the rows ----

    def rows(self) -> Query:
        """Return the rows: the groups and the values of the outputs."""
        aggregate = self.aggregate
        if all(call.answer is not None for call in self._calls):
            answers = [str(call.answer) for call in self._calls]
            joined = self._joined(answers)
            width, ends = len(aggregate.group_columns), iter(range(len(aggregate.extreme_outputs)))
            start = width + 1
            places = [start + len(answers) + next(ends) if isinstance(o, Extreme) else start + o for o in self._outputs]
            items = columns_sql((*range(width), *places))
            return Query(f"SELECT {', '.join(items)} FROM ({joined})" if items else joined, aggregate.schema)
        sql = self._joined([a for call in self._calls for a in (*call.aggregates, call.answer or "NULL")])
        return Query(sql, aggregate.schema, finish=self._finished_rows)

    @property
    def _outputs(self) -> tuple[int | Extreme, ...]:
        return self.aggregate.outputs

    def _finished_rows(self, batch: pa.RecordBatch) -> list[pa.Array]:
        width = len(self.aggregate.group_columns)
        plain = iter(batch.columns[1 + width :])
        found = [([next(plain) for _ in call.aggregates], next(plain)) for call in self._calls]
        answers = []
        for call, query, (columns, answer) in zip(self.aggregate.calls, self._calls, found, strict=True):
            if query.parts:
                columns.append(pa.array(sums_of_parts(next(plain).to_pylist()), pa.binary()))
            answers.append(answer if query.answer is not None else call.accumulator.answered(columns))
        outputs = [next(plain) if isinstance(o, Extreme) else answers[o] for o in self._outputs]
        return [*batch.columns[:width], *outputs]

    # ---- SQL ----

    def _joined(self, aggregates: Sequence[str]) -> str:
        """Return groups, COUNT(*), ``aggregates``, then the parts of exact sums, then the extremes."""
        groups = self._groups
        grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
        values = [f"{sql} AS a{i}" for i, sql in enumerate(aggregates)]
        text = f"(SELECT {', '.join([*groups, 'COUNT(*) AS n', *values])} FROM i0{grouped}) AS g"
        shown = [*(f"g.{group}" for group in groups), "g.n", *(f"g.a{i}" for i in range(len(aggregates)))]
        for number, call in enumerate(self._calls):
            if call.parts:
                sums = parts_sql("i0", groups, column_name(len(groups) + number))
                text += f" LEFT JOIN ({sums}) AS p{number} ON {self._same_group(f'p{number}')}"
                shown.append(f"p{number}.parts")
        ends = self.aggregate.extreme_outputs
        for number in sorted({end.values for end in ends}):
            value = column_name(len(groups))
            found = ", ".join([*groups, f"MIN({value}) AS least", f"MAX({value}) AS most"])
            text += f" LEFT JOIN (SELECT {found} FROM i{1 + number}{grouped}) AS e{number}"
            text += f" ON {self._same_group(f'e{number}')}"
        shown += [f"e{end.values}.{'most' if end.largest else 'least'}" for end in ends]
        return f"SELECT {', '.join(named(column, i) for i, column in enumerate(shown))} FROM {text}"

    def _same_group(self, relation: str) -> str:
        return " AND ".join(f"g.{group} <=> {relation}.{group}" for group in self._groups) or "true"
