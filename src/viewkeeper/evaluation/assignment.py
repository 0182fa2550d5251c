"""Store assignment: which values a column takes, and how they are brought to its type, as Spark's ANSI policy has it.

Whatever the session's mode, a value that does not fit is an error, never a NULL or a wrapped number; and types that are
not of one kind (a STRING for an INT) are refused before any row is looked at.
Source: Spark 4.3, ``Cast.canANSIStoreAssign``, ``CheckOverflowInTableInsert``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow as pa

from viewkeeper.errors import EvaluationError, SqlError, UnsupportedSql
from viewkeeper.evaluation.foreign import spark_column
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.expressions import registry
from viewkeeper.expressions.errors import NotPortable, code_of, remedy
from viewkeeper.expressions.evaluate import Errors, evaluate
from viewkeeper.expressions.spark_sql import type_text
from viewkeeper.expressions.tree import ColumnRef, Expression, Session, SparkExpression
from viewkeeper.store.model import Table
from viewkeeper.store.values import null_in_column, place_of
from viewkeeper.zset.schema import FLOAT, STRING, Column, Schema, SqlType
from viewkeeper.zset.values import from_raw_list, to_raw

_DATETIME = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_OVERFLOWS = frozenset(("CAST_OVERFLOW", "ARITHMETIC_OVERFLOW"))


def can_store(source: SqlType, target: SqlType) -> bool:
    """Return whether values of ``source`` may be stored in a column of type ``target``.

    Example:
        >>> from viewkeeper.zset.schema import BIGINT, INT
        >>> can_store(BIGINT, INT), can_store(STRING, INT), can_store(INT, STRING)
        (True, False, True)
    """
    if source == target or source.name == "VOID":
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if target == STRING:
        return not source.is_nested
    if source.name in _DATETIME and target.name in _DATETIME:
        return True
    if source.is_nested and source.name == target.name and len(source.children) == len(target.children):
        return all(map(can_store, source.children, target.children))
    return False


def check_types(context: EvaluationContext, table: Table, columns: Sequence[Column], types: Sequence[SqlType]) -> None:
    """Refuse values whose types cannot be stored, or whose cast only Spark can do where there is none.

    Args:
        context: the store.
        table: where they go.
        columns: the columns that take them.
        types: the types of the values, in that order.

    Raises:
        SqlError: ``INCOMPATIBLE_DATA_FOR_TABLE``.
        UnsupportedSql: ``EXPRESSION_NEEDS_SPARK``.
    """
    for column, source in zip(columns, types, strict=True):
        if not can_store(source, column.type):
            message = (
                f"Column {column.name!r} of {place_of(table)} is {str(column.type).upper()} and takes no"
                f" {str(source).upper()}: write CAST(… AS {str(column.type).upper()})."
            )
            raise SqlError("INCOMPATIBLE_DATA_FOR_TABLE", message, {"column": column.name})
        if context.spark is None and not _is_own(source, column.type):
            message = (
                f"Column {column.name!r} of {place_of(table)} is {str(column.type).upper()}: only Spark can cast"
                f" {str(source).upper()} to it, and there is no Spark here. Write values of that type."
            )
            raise UnsupportedSql("EXPRESSION_NEEDS_SPARK", message, {"column": column.name})


def stored(context: EvaluationContext, table: Table, column: Column, values: pa.Array, source: SqlType) -> pa.Array:
    """Return ``values`` as ``column`` stores them.

    Args:
        context: the store.
        table: where they go.
        column: the column.
        values: the values, of type ``source``.
        source: a type that ``check_types`` let pass.

    Raises:
        EvaluationError: ``CAST_OVERFLOW_IN_TABLE_INSERT`` and others, for values that do not fit.
        InputError: ``NULL_IN_NOT_NULL_COLUMN``.
    """
    if source != column.type and not _is_own(source, column.type):
        session = Session(context.session.time_zone, ansi=True)
        cast = SparkExpression(f"CAST(`_c0` AS {type_text(column.type)})", (0,), column.type)
        batch = pa.record_batch([values], names=["value"])
        values = spark_column(context, cast, batch, Schema((Column("value", source),)), session)
    elif source.name == "DECIMAL" and column.type == FLOAT:
        values = pa.array([None if v is None else nearest_float(v) for v in values.to_pylist()], pa.float32())
    elif source != column.type:
        batch = pa.record_batch([values], names=["value"])
        computed = evaluate(_cast(source, column.type, context.session.time_zone), batch, context.session)
        if computed.errors is not None and computed.errors.rows.any():
            raise _does_not_fit(table, column, values, computed.errors)
        values = computed.values
    if values.null_count and not column.nullable:
        raise null_in_column(column, place_of(table))
    return values


def default_values(table: Table, position: int, count: int) -> pa.Array:
    """Return the DEFAULT of a column, NULL where it has none, for ``count`` rows."""
    column, default = table.schema.columns[position], table.defaults[position]
    raw = None if default is None else to_raw(column.type)(default)
    if raw is None and count and not column.nullable:
        raise null_in_column(column, place_of(table))
    return from_raw_list([raw], column.type).take(pa.array(np.zeros(count, np.int64)))


def raise_first(errors: Errors | None, batch: pa.RecordBatch, names: Sequence[str], what: str) -> None:
    """Raise the error of the first row that cannot be computed.

    Args:
        errors: which rows fail.
        batch: the rows.
        names: names of the first columns of ``batch``, to show the row by.
        what: what could not be computed.

    Raises:
        EvaluationError: with Spark's condition as its code.
    """
    if errors is None or not errors.rows.any():
        return
    row = int(np.flatnonzero(errors.rows)[0])
    reason = str(errors.reasons[row])
    shown = ", ".join(f"{n} = {batch.column(i)[row].as_py()!r}" for i, n in enumerate(names[: batch.num_columns]))
    row_shown = f" for the row with {shown}" if shown else ""
    message = f"{what} cannot be computed ({reason}){row_shown}{remedy(reason)}. Nothing was changed."
    raise EvaluationError(code_of(reason), message, {"row": shown})


def nearest_float(value: Decimal) -> float:
    """Return the FLOAT nearest to ``value``, rounded once: a DOUBLE between them may lie on the other side of a tie.

    Example:
        >>> nearest_float(Decimal("1.000000059604644775390626")) > 1
        True
    """
    double = float(value)
    near = float(np.float32(double))
    if not math.isfinite(near) or near == double:
        return near
    # The neighbour on the other side of ``double``; they tie where both are equally far from it.
    other = float(np.nextafter(np.float32(near), np.float32(math.copysign(math.inf, double - near))))
    if double - near != other - double:
        return near
    exact, tie = Fraction(value), Fraction(double)
    if exact == tie:
        return near
    return max(near, other) if exact > tie else min(near, other)


@lru_cache(maxsize=512)
def _is_own(source: SqlType, target: SqlType) -> bool:
    """Return whether we cast ``source`` to ``target`` ourselves."""
    if source == target or (source.name == "DECIMAL" and target == FLOAT):
        return True
    try:
        _cast(source, target, "UTC")
    except NotPortable:
        return False
    return True


@lru_cache(maxsize=512)
def _cast(source: SqlType, target: SqlType, time_zone: str) -> Expression:
    return registry.cast(ColumnRef(0, source), target, Session(time_zone, ansi=True))


def _does_not_fit(table: Table, column: Column, values: pa.Array, errors: Errors) -> EvaluationError:
    row = int(np.flatnonzero(errors.rows)[0])
    reason = str(errors.reasons[row])
    code = "CAST_OVERFLOW_IN_TABLE_INSERT" if reason in _OVERFLOWS else code_of(reason)
    message = (
        f"The value {values[row].as_py()!r} does not fit into column {column.name!r} of {place_of(table)}, which is"
        f" {str(column.type).upper()}{remedy(reason)}. Nothing was changed."
    )
    return EvaluationError(code, message, {"column": column.name})
