"""Expressions rewritten through a projection below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, SparkExpression, columns_of, shift_columns


def substituted(expression: Expression, inputs: Sequence[Expression]) -> Expression:
    """Return ``expression`` with each column replaced by the expression at its position.

    Example:
        >>> from viewkeeper.zset.schema import INT
        >>> substituted(ColumnRef(1, INT), [ColumnRef(5, INT), ColumnRef(7, INT)]).index
        7
    """
    if isinstance(expression, ColumnRef):
        return inputs[expression.index]
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(substituted(argument, inputs) for argument in expression.arguments))
    if isinstance(expression, SparkExpression):
        plain = {i: inputs[i] for i in columns_of(expression)}
        return shift_columns(expression, {i: e.index for i, e in plain.items() if isinstance(e, ColumnRef)})
    return expression
