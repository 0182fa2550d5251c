"""COUNT(*) and COUNT(x): the sum of weights of all rows, or of those whose argument is not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn
from viewkeeper.zset.schema import BIGINT, Column, SqlType


@dataclass(frozen=True)
class Count:
    """How many rows there are; with an argument: how many have it non-NULL."""

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """One count."""
        return (BIGINT,)

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the sums of weights."""
        return [rows.without_nulls().counts()]

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums of counts."""
        return [left[0] + right[0]]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the counts."""
        return Answer(pa.array(state[0]))

    def query(self, *arguments: str) -> CallQuery:
        """Return COUNT."""
        count = f"COUNT({', '.join(arguments)})"
        return CallQuery((Column("count", BIGINT),), (count,), count)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the counts."""
        return [pa.array(state[0])]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the counts."""
        return columns[0]
