"""BIT_AND, BIT_OR and BIT_XOR of integers: how many values have each bit set.

State: the count of non-NULL values, and one counter a bit, as little-endian int64 in one BINARY. A bit of the AND is
set where all values have it, of the OR where any has, of the XOR where an odd number has; so rows may go as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.operators.functions.base import Answer, CallQuery, Rows, StateColumn, objects
from viewkeeper.zset.schema import BIGINT, BINARY, INTEGER_BITS, Column, SqlType, array, to_arrow_type


@dataclass(frozen=True)
class Bits:
    """``bit_and``, ``bit_or`` or ``bit_xor`` of values of an integer type."""

    function: str
    type: SqlType

    @property
    def _width(self) -> int:
        return INTEGER_BITS[self.type.name]

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """A count, and the counters."""
        return (BIGINT, BINARY)

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the rows' counts."""
        rows = rows.without_nulls()
        values = rows.argument.to_numpy(zero_copy_only=False).astype(np.int64)
        counters = np.zeros((rows.groups, self._width), np.int64)
        for bit in range(self._width):
            counters[:, bit] = np.bincount(rows.codes, ((values >> bit) & 1) * rows.weights, rows.groups)
        return [rows.counts(), self._packed(counters)]

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums of counts."""
        return [left[0] + right[0], self._packed(self._counters(left[1]) + self._counters(right[1]))]

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the combined values; NULL where there are none."""
        counters = self._counters(state[1])
        if self.function == "bit_and":
            is_set = counters == state[0][:, None]
        else:
            is_set = counters > 0 if self.function == "bit_or" else counters % 2 == 1
        values = np.zeros(len(state[0]), np.uint64)
        for bit in range(self._width):
            values |= is_set[:, bit].astype(np.uint64) << np.uint64(bit)
        signed = values.astype(f"u{self._width // 8}").view(f"i{self._width // 8}")
        return Answer(pa.array(signed, to_arrow_type(self.type), mask=state[0] == 0))

    def query(self, *arguments: str) -> CallQuery:
        """Return the count, and how many values have each bit set."""
        (argument,) = arguments
        bits = (f"COUNT_IF((shiftright(CAST({argument} AS BIGINT), {bit}) & 1) = 1)" for bit in range(self._width))
        columns = (Column("count", BIGINT), Column("bits", array(BIGINT)))
        aggregates = (f"COUNT({argument})", f"array({', '.join(bits)})")
        return CallQuery(columns, aggregates, f"{self.function}({argument})")

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the count and the counters."""
        return [pa.array(state[0]), pa.array(self._counters(state[1]).tolist(), pa.list_(pa.int64()))]

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the combined values."""
        counters = self._packed(np.array(columns[1].to_pylist(), np.int64).reshape(-1, self._width))
        return self.answer([columns[0].to_numpy(), counters]).values

    def _packed(self, counters: npt.NDArray[np.int64]) -> StateColumn:
        rows = np.ascontiguousarray(counters, "<i8")
        return objects([row.tobytes() if row.any() else b"" for row in rows])

    def _counters(self, states: StateColumn) -> npt.NDArray[np.int64]:
        none = bytes(8 * self._width)
        joined = b"".join([state or none for state in states.tolist()])
        return np.frombuffer(joined, "<i8").reshape(len(states), self._width)
