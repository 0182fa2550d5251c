"""Expressions over no columns → the constants that they are."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session, columns_of
from viewkeeper.expressions.user_calls import is_foldable
from viewkeeper.zset.schema import SqlType

_COUNTED = {"DATE": pa.int32(), "TIMESTAMP": pa.int64(), "TIMESTAMP_NTZ": pa.int64(), "INTERVAL_DAY_TIME": pa.int64()}
_ONE_ROW = pa.RecordBatch.from_arrays([pa.array([0])], names=["row"])


def constant_of(expression: Expression, session: Session) -> Expression:
    """Return the Literal that ``expression`` computes; itself where it reads columns, fails, or has no Literal.

    Example:
        >>> from viewkeeper.expressions.registry import resolve
        >>> from viewkeeper.zset.schema import INT
        >>> constant_of(resolve("negate", [Literal(1, INT)], Session()), Session()).value
        -1
    """
    if isinstance(expression, Literal) or columns_of(expression) or not is_foldable(expression):
        return expression
    if expression.type.is_nested:
        return expression
    result = evaluate(expression, _ONE_ROW, session)
    if result.errors is not None and result.errors.rows.any():
        return expression
    return Literal(_value(result.values, expression.type), expression.type)


def folded(expression: Expression, session: Session) -> Expression:
    """Return ``expression`` with a Literal for each part over no columns that does not fail.

    What is constant then cannot raise: a condition on it may move, be a join key, or restrict an input.

    Example:
        >>> from viewkeeper.expressions.registry import resolve
        >>> from viewkeeper.expressions.tree import ColumnRef
        >>> from viewkeeper.zset.schema import INT
        >>> eight = resolve("negate", [Literal(-8, INT)], Session())
        >>> folded(resolve("lt", [ColumnRef(0, INT, True), eight], Session()), Session()).arguments[1].value
        8
    """
    if not isinstance(expression, Call):
        return expression
    if not columns_of(expression):
        return constant_of(expression, session)
    return folded_within(expression, session)


def folded_within(expression: Expression, session: Session) -> Expression:
    """Return ``expression`` with its arguments ``folded``; itself it stays, as its nullability may show."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(folded(argument, session) for argument in expression.arguments)
    return expression if arguments == expression.arguments else replace(expression, arguments=arguments)


def integer_of(expression: Expression, session: Session) -> int | None:
    """Return the value of a constant of an integer type; None of anything else."""
    found = constant_of(expression, session)
    if not isinstance(found, Literal) or not found.type.is_integer or not isinstance(found.value, int):
        return None
    return found.value


def _value(values: pa.Array, sql_type: SqlType) -> Scalar:
    counted = _COUNTED.get(sql_type.name)
    value: Scalar = (values if counted is None else values.cast(counted))[0].as_py()
    return value
