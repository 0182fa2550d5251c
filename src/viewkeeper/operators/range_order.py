"""In what order an arrangement keeps the rows of one key, so that a join finds a range of them by a seek.

    state key = join key, [whether the row stands apart], the ordering value, the rest of the row's own key

A row stands apart where one of the conditions that the order serves fails on its account (``t + 5`` overflows). With
whatever row of the other side it then makes a pair with an error, so it must be found whatever range is sought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.zset.schema import BOOLEAN, SqlType


@dataclass(frozen=True)
class RangeOrder:
    """By what the rows of one key are ordered.

    Args:
        value: the ordering value, a portable expression over the row.
        checks: expressions over the row; it stands apart where one of them fails. ``value`` fails nowhere else.
        session: time zone and ANSI mode.
    """

    value: Expression
    checks: tuple[Expression, ...]
    session: Session

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of the key components that it adds."""
        return (BOOLEAN, self.value.type) if self.checks else (self.value.type,)

    def columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the key components that it adds; of rows that stand apart the value is NULL."""
        values = evaluate(self.value, rows, self.session).values
        if not self.checks:
            return [values]
        apart = pa.array(failing(self.checks, rows, self.session))
        return [apart, pc.if_else(apart, pa.scalar(None, values.type), values)]


def failing(checks: Sequence[Expression], rows: pa.RecordBatch, session: Session) -> npt.NDArray[np.bool_]:
    """Return on which rows one of the ``checks`` fails."""
    found = np.zeros(rows.num_rows, dtype=bool)
    for check in checks:
        errors = evaluate(check, rows, session).errors
        if errors is not None:
            found |= errors.rows
    return found
