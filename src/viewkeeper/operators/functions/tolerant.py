"""TRY_SUM and TRY_AVG: NULL where the total of SUM or AVG does not fit its type.

Spark's answer depends on the order of rows: what overflows on the way stays NULL. Ours is judged on the total, as that
of SUM is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.operators.functions.base import Accumulator, Answer, CallQuery, Rows, StateColumn
from viewkeeper.operators.functions.sum import wide_sql
from viewkeeper.zset.schema import SqlType

TOLERANT = frozenset(("try_sum", "try_avg"))


@dataclass(frozen=True)
class Tolerant:
    """SUM or AVG without overflow.

    Args:
        strict: the function without TRY_.
        function: ``try_sum`` or ``try_avg``.
        argument: the argument's type.
        type: the result type.
    """

    strict: Accumulator
    function: str
    argument: SqlType
    type: SqlType

    @property
    def state_types(self) -> tuple[SqlType, ...]:
        """Those of the strict function."""
        return self.strict.state_types

    def partial(self, rows: Rows) -> list[StateColumn]:
        """Return the strict function's partial state."""
        return self.strict.partial(rows)

    def add(self, left: Sequence[StateColumn], right: Sequence[StateColumn]) -> list[StateColumn]:
        """Return the sums."""
        return self.strict.add(left, right)

    def answer(self, state: Sequence[StateColumn]) -> Answer:
        """Return the strict function's values: where one overflows, they have NULL."""
        return Answer(self.strict.answer(state).values)

    def query(self, *arguments: str) -> CallQuery:
        """Return the strict function's query, with an answer that has NULL where it fails."""
        (argument,) = arguments
        found = self.strict.query(argument)
        answer = tolerant_sql(self.function, argument, self.argument, self.type)
        return CallQuery(found.columns, found.aggregates, answer)

    def shown(self, state: Sequence[StateColumn]) -> list[pa.Array]:
        """Return the strict function's state."""
        return self.strict.shown(state)

    def answered(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return nothing: the query has an answer."""
        raise AssertionError("Spark answers it")


def tolerant_sql(function: str, argument: str, argument_type: SqlType, result: SqlType, over: str = "") -> str:
    """Return the call in Spark's SQL so that integers do not overflow on the way to a total that fits.

    Args:
        function: ``try_sum`` or ``try_avg``.
        argument: a column.
        argument_type: its type.
        result: the result type.
        over: what stands behind the call: FILTER, OVER.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, INT
        >>> tolerant_sql("try_sum", "`_c0`", INT, BIGINT)
        'try_cast(try_sum(CAST(`_c0` AS decimal(20,0))) AS bigint)'
    """
    value = wide_sql(argument, argument_type) if argument_type.is_integer else argument
    return f"try_cast({function}({value}){over} AS {result})"
