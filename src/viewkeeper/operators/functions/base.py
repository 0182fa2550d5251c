"""What an aggregate function is to the AGGREGATE operator: columns of state that add, and the answer they give.

In memory a state column is a numpy array over groups: int64 for counts and limbs, objects (bytes) for exact float
sums. Partial states of the same group add, whoever computed them and in whatever order; that makes the answer a
function of the group's rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.expressions.vectors import Errors
from viewkeeper.zset.schema import Column, SqlType

StateColumn = npt.NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """The rows that one aggregate call counts: its filter has been applied.

    Args:
        values: the argument; None for COUNT(*).
        weights: one a row.
        codes: the group of each row.
        groups: how many groups there are.
        more: further arguments.
    """

    values: pa.Array | None
    weights: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    groups: int
    more: tuple[pa.Array, ...] = ()

    @property
    def argument(self) -> pa.Array:
        """The argument of a call that has one."""
        if self.values is None:
            raise AssertionError("only COUNT(*) has no argument")
        return self.values

    def without_nulls(self) -> Rows:
        """Return the rows whose arguments are not NULL."""
        arguments = (*([] if self.values is None else [self.values]), *self.more)
        mask = np.ones(len(self.weights), dtype=bool)
        for values in arguments:
            if values.null_count:
                mask &= values.is_valid().to_numpy(zero_copy_only=False)
        return self if mask.all() else self.where(mask)

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Return the rows where ``mask`` is true."""
        chosen = pa.array(mask)
        values = None if self.values is None else self.values.filter(chosen)
        more = tuple(argument.filter(chosen) for argument in self.more)
        return Rows(values, self.weights[mask], self.codes[mask], self.groups, more)

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the sum of weights a group."""
        # Weights are small integers and rows fewer than 2^50, so double sums of them are exact.
        return np.bincount(self.codes, self.weights, self.groups).astype(np.int64)


@dataclass(frozen=True)
class Answer:
    """Results of one call for all groups: values, and for each group whether it overflowed (None: no group did)."""

    values: pa.Array
    overflow: npt.NDArray[np.bool_] | None = None

    @property
    def condition(self) -> str:
        """What an overflow is called."""
        return f"{'INTERVAL_' * pa.types.is_duration(self.values.type)}ARITHMETIC_OVERFLOW"


def overflows_of(answers: Iterable[Answer], count: int) -> Errors:
    """Return which of ``count`` groups have an overflow in one of ``answers``, and what the first of each is called."""
    rows, reasons = np.zeros(count, dtype=bool), np.full(count, None, dtype=object)
    for answer in answers:
        if answer.overflow is not None:
            reasons[answer.overflow & ~rows] = answer.condition
            rows |= answer.overflow
    return Errors(rows, reasons)


@dataclass(frozen=True)
class CallQuery:
    """How Spark computes the state of a call, and its answer, over the columns of its arguments.

    Args:
        columns: names and types of the state in a form that can be compared and shown.
        aggregates: for each of them the aggregate that computes it; the last one is left out where ``parts`` is set.
        answer: the aggregate that is the call's value; None where only ``Accumulator.answered`` computes it exactly.
        parts: whether the last column is the exact sum of doubles, whose parts Spark sums by exponent.
        unfold: makes ``columns`` of the one aggregate that stands for all of them; None where there is one for each.
    """

    columns: tuple[Column, ...]
    aggregates: tuple[str, ...]
    answer: str | None
    parts: bool = False
    unfold: Callable[[pa.Array], list[pa.Array]] | None = None


class Accumulator(Protocol):
    """An aggregate function whose partial states add."""

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """The types of its state columns: BIGINT or BINARY."""

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the state that ``rows`` add, for each group."""

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sum of two states, group by group."""

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the function's value for each group."""

    def query(self, *arguments: str) -> CallQuery:
        """Return how Spark computes the call over the columns ``arguments``: SQL, never our kernels."""

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return our state in the form of ``query``'s columns."""

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the function's value from columns in that form, for calls whose query has no answer."""


def zeros(sql_type: SqlType, count: int) -> StateColumn:
    """Return the state column of ``count`` groups without rows."""
    return np.zeros(count, np.int64) if sql_type.name == "BIGINT" else np.full(count, b"", dtype=object)


def objects(values: Sequence[object]) -> StateColumn:
    """Return the state column that holds ``values``, which numpy must not look into."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
