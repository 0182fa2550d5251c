"""BOOL_AND (EVERY) and BOOL_OR (SOME, ANY): how many values are true, and how many are false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn
from viewkeeper.zset.schema import BIGINT, Column, SqlType


@dataclass(frozen=True)
class Truth:
    """Whether all values are true, or any is."""

    all: bool

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """The count of true values, and of false ones."""
        return (BIGINT, BIGINT)

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the rows' counts."""
        rows = rows.without_nulls()
        true = rows.where(rows.argument.to_numpy(zero_copy_only=False).astype(bool)).counts()
        return [true, rows.counts() - true]

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums of counts."""
        return [a + b for a, b in zip(left, right, strict=True)]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the truth of each group; NULL where there are no values."""
        true, false = state
        values: np.ndarray = false == 0 if self.all else true > 0
        return Answer(pa.array(values, pa.bool_(), mask=(true == 0) & (false == 0)))

    def query(self, *arguments: str) -> CallQuery:
        """Return the counts, and Spark's own function."""
        (argument,) = arguments
        columns = (Column("true", BIGINT), Column("false", BIGINT))
        answer = f"{'bool_and' if self.all else 'bool_or'}({argument})"
        return CallQuery(columns, (f"COUNT_IF({argument})", f"COUNT_IF(NOT {argument})"), answer)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the counts."""
        return [pa.array(column) for column in state]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the truth of each group."""
        return self.answer([column.to_numpy() for column in columns]).values
