"""Typed expressions on Arrow batches, column by column; a row that fails gets an error, never an exception.

What Spark would not compute for a row (the right side after a NULL, a branch not taken) must not fail there, so each
function says in which order it looks at its arguments and errors behind a NULL are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from viewkeeper.expressions import registry
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import FUNCTIONS, Function
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, Session, SparkExpression
from viewkeeper.expressions.vectors import Errors, Evaluated, Operand, as_array, blank, failing, merge, validity
from viewkeeper.zset.schema import to_arrow_type

__all__ = ["Errors", "Evaluated", "can_raise", "evaluate", "registry"]


def evaluate(expression: Expression, batch: pa.RecordBatch, session: Session) -> Evaluated:
    """Return the column of ``expression`` over ``batch``.

    Args:
        expression: a portable expression.
        batch: the input rows; column positions are those of its ``ColumnRef`` leaves.
        session: unused by resolved calls, which carry their options; kept so that callers pass one context.

    Raises:
        NotPortable: where a part of ``expression`` needs Spark.
    """
    values, errors = _evaluate(expression, batch, batch.num_rows)
    return Evaluated(as_array(values, batch.num_rows), errors)


@lru_cache(maxsize=4096)
def can_raise(expression: Expression) -> bool:
    """Return whether ``expression`` can fail on some row."""
    if isinstance(expression, SparkExpression):
        return True
    if not isinstance(expression, Call):
        return False
    return FUNCTIONS[expression.function].raises(expression) or any(map(can_raise, expression.arguments))


@lru_cache(maxsize=4096)
def _constant(literal: Literal) -> pa.Scalar:
    return pa.scalar(literal.value, to_arrow_type(literal.type))


def _evaluate(expression: Expression, batch: pa.RecordBatch, length: int) -> tuple[Operand, Errors | None]:
    if isinstance(expression, ColumnRef):
        return batch.column(expression.index), None
    if isinstance(expression, Literal):
        return _constant(expression), None
    if isinstance(expression, SparkExpression):
        raise NotPortable("expression", f"{expression.sql} needs Spark")
    function = FUNCTIONS[expression.function]
    parts = [_evaluate(argument, batch, length) for argument in expression.arguments]
    if all(isinstance(values, pa.Scalar) for values, _ in parts):
        return _fold(function, expression, parts, length)
    return _apply(function, expression, parts, length)


def _fold(
    function: Function, call: Call, parts: Sequence[tuple[Operand, Errors | None]], length: int
) -> tuple[Operand, Errors | None]:
    """Return the constant that a call of constants is, computed on one row."""
    single: list[tuple[Operand, Errors | None]] = []
    for values, errors in parts:
        one = None if errors is None else Errors(np.ones(1, dtype=bool), errors.reasons[:1])
        single.append((as_array(values, 1), one))
    result, failed = _apply(function, call, single, 1)
    constant = result[0] if isinstance(result, pa.Array) else result
    if failed is None or length == 0:
        return constant, None
    return constant, failing(np.ones(length, dtype=bool), str(failed.reasons[0]))


def _apply(
    function: Function, call: Call, parts: Sequence[tuple[Operand, Errors | None]], length: int
) -> tuple[Operand, Errors | None]:
    if function.lazy is not None:
        evaluated = [Evaluated(as_array(values, length), errors) for values, errors in parts]
        outcome = function.lazy(call, evaluated, length)
        return outcome.values, outcome.errors
    assert function.kernel is not None
    errors = _reached(function.strict, parts, length)
    outcome = function.kernel(call, [values for values, _ in parts], length)
    if errors is None:
        return outcome.values, outcome.errors
    return blank(outcome.values, errors.rows), merge(errors, outcome.errors)


def _reached(strict: str, parts: Sequence[tuple[Operand, Errors | None]], length: int) -> Errors | None:
    """Return the errors of arguments that Spark would have computed."""
    if all(errors is None for _, errors in parts):
        return None
    found: Errors | None = None
    going = np.ones(length, dtype=bool)
    for values, errors in reversed(parts) if strict == "right" else parts:
        if errors is not None:
            found = merge(found, errors.only(going))
            going = going & ~errors.rows
        if strict != "all":
            going = going & validity(values)
    return found
