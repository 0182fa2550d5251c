"""MEDIAN, PERCENTILE, PERCENTILE_CONT, PERCENTILE_DISC and PERCENTILE_APPROX: values at a rank, found by walking.

Kept:   per group the number of values; per percentage a pointer: the key of the value at its (lower) rank, and how many
        values stand before that key; and the answer.
Rule:   an epoch shifts the pointer's rank by the rows that come and go before it, and the wanted rank by the growth of
        the group; from the pointer one walks to the wanted rank, entry by entry.
Why:    every entry walked over holds a row at least, and both ranks move by no more than the rows that change, so
        the walk is as long as the change at most (a row that counts n times is n rows); it never counts the group.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.expressions.tree import Scalar
from viewkeeper.operators.base import state_is_broken
from viewkeeper.operators.ordered.reader import Reader, chosen
from viewkeeper.operators.ordered.values import Changed, OrderedValues
from viewkeeper.zset.schema import BIGINT, BINARY, SqlType

CONTINUOUS, DISCRETE, APPROXIMATE = "continuous", "discrete", "approximate"


@dataclass(frozen=True)
class _Pointer:
    """A key, and how many rows of its group stand before it."""

    key: bytes
    before: int


@dataclass(frozen=True)
class Percentile:
    """Percentiles of the values that entries hold first, behind them how often each counts if weighted, counts last.

    Args:
        kind: ``continuous`` (between two values, a DOUBLE), ``discrete`` (the first value at which the share is
            reached) or ``approximate`` (likewise; here it is exact).
        percentages: which ones, from 0 to 1.
        descending: whether percentages count from the largest value.
        type: the result: of one percentage a value, of several an ARRAY.
        listed: whether the result is an ARRAY.
    """

    kind: str
    percentages: tuple[float, ...]
    descending: bool
    type: SqlType
    listed: bool

    @classmethod
    def of_constants(cls, constants: Sequence[Scalar], type_: SqlType) -> Percentile:
        """Return what a call asks for: its kind, whether listed and descending, then the percentages."""
        kind, listed, descending, *percentages = constants
        # Scalars are of many types; the planner makes these numbers.
        return cls(str(kind), tuple(map(float, percentages)), bool(descending), type_, bool(listed))  # type: ignore[arg-type]

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """The answer, the number of values, and a pointer per percentage."""
        return (self.type, BIGINT, *(BINARY, BIGINT) * len(self.percentages))

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Walk to the new ranks of the groups that change."""
        changed = [reader.changed(group) for group in range(len(reader.prefixes))]
        known = zip(*(column.to_pylist() for column in old[1:]), strict=True)
        rows = [
            self._moved(reader, group, change, row)
            for group, (change, row) in enumerate(zip(changed, known, strict=True))
            if change is not None
        ]
        touched = [change is not None for change in changed]
        columns = zip(*rows, strict=True) if rows else ([] for _ in old)
        return [
            chosen(touched, pa.array(values, column.type), column) for values, column in zip(columns, old, strict=True)
        ]

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the answers."""
        return kept[0]

    def of_sorted(self, values: Sequence[Any]) -> Any:
        """Return the percentiles of all values of a group, in order; of none None."""
        if not values:
            return None
        return self._at_ranks(values.__getitem__, len(values))

    def of_weighted(self, values: Sequence[Any], frequencies: Sequence[int]) -> Any:
        """Return the percentiles of all values of a group, in order, each as often as it counts; of none None."""
        if not values:
            return None
        ends = list(accumulate(frequencies))
        return self._at_ranks(lambda rank: values[bisect_right(ends, rank)], ends[-1])

    def _at_ranks(self, value_at: Callable[[int], Any], count: int) -> Any:
        found = []
        for percentage in self.percentages:
            position = self._position(percentage, count)
            ranks = (math.floor(position), math.ceil(position))
            pair = [value_at(count - 1 - rank if self.descending else rank) for rank in ranks]
            found.append(self._between(position % 1.0, *pair))
        return found if self.listed else found[0]

    @property
    def empty_sql(self) -> str | None:
        """NULL."""
        return None

    def answer_sql(self, values: OrderedValues) -> str:
        """Return Spark's percentile; of an approximate one the value that is at the rank."""
        value = column_name(values.kept[0])
        shares = [f"{percentage!r}D" for percentage in self.percentages]
        if self.kind == APPROXIMATE:
            ranks = (f"CAST(greatest(ceil({share} * COUNT({value})), 1) - 1 AS INT)" for share in shares)
            found = [f"get(array_sort(collect_list({value})), {rank})" for rank in ranks]
            return f"CASE WHEN COUNT({value}) > 0 THEN {self._listed_sql(found)} END"
        if values.weighted:
            return f"percentile({value}, {self._listed_sql(shares)}, {column_name(values.kept[1])})"
        function = "percentile_cont" if self.kind == CONTINUOUS else "percentile_disc"
        return f"{function}({self._listed_sql(shares)}) WITHIN GROUP (ORDER BY {value}{' DESC' * self.descending})"

    def _listed_sql(self, items: Sequence[str]) -> str:
        return f"array({', '.join(items)})" if self.listed else items[0]

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return the answer and the number of values; the pointers follow from what the entries hold."""
        count = f"SUM({column_name(values.kept[1])})" if values.weighted else f"COUNT({column_name(values.kept[0])})"
        return self.answer_sql(values), f"nullif({count}, 0)"

    def _moved(self, reader: Reader, group: int, changed: Changed, row: Sequence[Any]) -> list[Any]:
        """Return answer, number of values and pointers of one group as of E."""
        count = (row[0] or 0) + sum(changed.weights.values())
        if count == 0:
            return [None] * len(self.kept)
        answers, pointers = [], []
        for percentage, (key, before) in zip(self.percentages, zip(row[1::2], row[2::2], strict=True), strict=True):
            known = None if key is None else _shifted(_Pointer(key, before), changed)
            position = self._position(percentage, count)
            ranks = [math.floor(position), math.ceil(position)]
            lower, upper = [count - 1 - rank for rank in reversed(ranks)] if self.descending else ranks
            pointer, values = _walk(reader, group, known, lower, upper)
            answers.append(self._between(position % 1.0, *(reversed(values) if self.descending else values)))
            pointers.append((pointer.key, pointer.before))
        return [answers if self.listed else answers[0], count, *chain.from_iterable(pointers)]

    def _position(self, percentage: float, count: int) -> float:
        """Return the rank from 0, in the order of counting, at which the answer lies; it may lie between two values."""
        if self.kind == CONTINUOUS:
            return (count - 1) * percentage
        return float(max(math.ceil(percentage * count) - 1, 0))

    def _between(self, part: float, first: Any, second: Any) -> Any:
        """Return what lies at ``part`` of the way between two neighbours."""
        if self.kind == APPROXIMATE:
            return first
        first, second = float(first), float(second)
        # Spark's way of weighing, so that the last bit is the same too, and infinity less infinity is NaN.
        return first if not part or first == second else first + part * (second - first)


def _shifted(pointer: _Pointer, changed: Changed) -> _Pointer:
    added = sum(weight for key, weight in changed.weights.items() if key < pointer.key)
    return _Pointer(pointer.key, pointer.before + added)


def _walk(reader: Reader, group: int, known: _Pointer | None, lower: int, upper: int) -> tuple[_Pointer, list[Any]]:
    """Return the pointer to rank ``lower``, and the values at ``lower`` and ``upper`` (the same rank or the next)."""
    start = known or _Pointer(reader.prefixes[group], 0)
    if lower < start.before:
        before = start.before
        for key, row in reader.walk(group, reverse=True, start=start.key):
            before -= _value_and_count(reader, row)[1]
            start = _Pointer(key, before)
            if before <= lower:
                break
    return _forward(reader, group, start, lower, upper)


def _forward(reader: Reader, group: int, start: _Pointer, lower: int, upper: int) -> tuple[_Pointer, list[Any]]:
    before = start.before
    found: _Pointer | None = None
    values: list[Any] = []
    for key, row in reader.walk(group, start=start.key):
        value, count = _value_and_count(reader, row)
        if found is None and lower < before + count:
            found = _Pointer(key, before)
            values.append(value)
        if found is not None and upper < before + count:
            return found, [*values, value]
        before += count
    raise state_is_broken(reader.entries.state)


def _value_and_count(reader: Reader, row: bytes) -> tuple[Any, int]:
    values = reader.entries.row_codec.decode_values(row)
    count = values[-1]
    assert isinstance(count, int)
    return values[0], count * values[1] if reader.entries.weighted else count
