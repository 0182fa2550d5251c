"""Expressions that read no column, computed while planning."""

from __future__ import annotations

import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Expression, Literal, Scalar, Session, columns_of
from viewkeeper.expressions.user_calls import is_foldable

_ONE_ROW = pa.record_batch([pa.array([0])], names=["one"])


def constant(expression: Expression, session: Session) -> tuple[bool, Scalar]:
    """Return whether ``expression`` is a constant that can be computed here, and its value.

    Example:
        >>> from viewkeeper.zset.schema import INT
        >>> constant(Literal(3, INT), Session())
        (True, 3)
    """
    if isinstance(expression, Literal):
        return True, expression.value
    if columns_of(expression) or not is_foldable(expression):
        return False, None
    result = evaluate(expression, _ONE_ROW, session)
    if result.errors is not None and result.errors.rows.any():
        return False, None
    value: Scalar = result.values[0].as_py()
    return True, value
