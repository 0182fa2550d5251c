"""Calls of users' functions on Arrow columns: a row for which one fails gets an error, as with any expression.

What a row gives must follow from that row alone, whichever rows are computed beside it: else a deletion would not take
back what its insertion has added. So rows that fail in a call of many are told apart by halving, and whole numbers and
truth values, which pandas has in another form where one is NULL, are handed over apart from rows with NULL.

``capture`` and ``captured`` carry failures of a part of an expression through columns, between us and Spark: as a
structure around the value, NULL where it could not be computed. So a branch that is not taken fails nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeeper.errors import InputError
from viewkeeper.expressions.function import always, lazy, make
from viewkeeper.expressions.tree import Call, Expression, SparkExpression
from viewkeeper.expressions.user_functions import UserFunction, loaded, not_loadable
from viewkeeper.expressions.vectors import Errors, Evaluated, Mask, failing, merge
from viewkeeper.zset.schema import SqlType, to_arrow_type
from viewkeeper.zset.values import from_raw, from_raw_list, is_identity, to_raw, to_raw_list

CALL, CAPTURE, CAPTURED = "user_function", "capture", "captured"
RAISED, UNFIT = "FUNCTION_RAISED", "FUNCTION_RESULT_UNFIT"

_WIDE = Context(prec=100)
# Somebody has asked for the end; all else that a function raises, a panic of Rust's too, is the fault of its row.
_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)
Columns = list[pa.Array]


def call_of(function: UserFunction, arguments: Sequence[Expression]) -> Call:
    """Return the call of ``function``, whose result may always be NULL."""
    return make(CALL, arguments, function.return_type, nullable=True, calls=(function,))


def function_of(call: Call) -> UserFunction:
    """Return the function that a call of ``call_of`` calls."""
    option = call.option("calls")
    assert isinstance(option, tuple)
    assert isinstance(option[0], UserFunction)
    return option[0]


def functions_in(expression: Expression) -> Iterator[UserFunction]:
    """Yield the functions that ``expression`` calls."""
    if isinstance(expression, Call):
        if expression.function == CALL:
            yield function_of(expression)
        for argument in expression.arguments:
            yield from functions_in(argument)
    elif isinstance(expression, SparkExpression):
        for _, call in expression.calls:
            yield from functions_in(call)


def is_foldable(expression: Expression) -> bool:
    """Return whether ``expression`` can be computed while planning: users' code is not run for that, nor needed."""
    if isinstance(expression, Call):
        return expression.function != CALL and all(map(is_foldable, expression.arguments))
    return not isinstance(expression, SparkExpression)


def capture_type(sql_type: SqlType) -> SqlType:
    """Return the type of a captured value."""
    return SqlType("STRUCT", children=(sql_type,), field_names=("value",))


def capture(expression: Expression) -> Call:
    """Return ``expression`` inside a structure that is NULL where it cannot be computed."""
    return make(CAPTURE, [expression], capture_type(expression.type), nullable=True)


def captured(structure: Expression) -> Call:
    """Return what ``capture`` holds, which fails where that failed."""
    return make(CAPTURED, [structure], structure.type.children[0], nullable=True)


@lazy(CAPTURE)
def _capture(call: Call, arguments: Sequence[Evaluated], length: int) -> Evaluated:
    (value,) = arguments
    arrow = to_arrow_type(call.type)
    mask = None if value.errors is None else pa.array(value.errors.rows)
    return Evaluated(pa.StructArray.from_arrays([value.values.cast(arrow[0].type)], fields=[arrow[0]], mask=mask))


@lazy(CAPTURED, raises=always)
def _captured(call: Call, arguments: Sequence[Evaluated], length: int) -> Evaluated:
    structure = arguments[0].values
    failed = structure.is_null().to_numpy(zero_copy_only=False)
    values = structure.flatten()[0]
    return Evaluated(values, merge(arguments[0].errors, failing(failed, "EXPRESSION_FAILED")))


@lazy(CALL, raises=always)
def _call(call: Call, arguments: Sequence[Evaluated], length: int) -> Evaluated:
    errors = merge(*(argument.errors for argument in arguments))
    types = [argument.type for argument in call.arguments]
    columns = [argument.values for argument in arguments]
    if errors is None:
        return apply(function_of(call), columns, types, length)
    good = ~errors.rows
    some = apply(function_of(call), [c.filter(pa.array(good)) for c in columns], types, int(good.sum()))
    return Evaluated(_spread(some.values, good), merge(errors, _spread_errors(some.errors, good)))


def apply(function: UserFunction, columns: Columns, types: Sequence[SqlType], length: int) -> Evaluated:
    """Return the results of ``function``, row by row.

    Args:
        function: the function.
        columns: its arguments.
        types: their types.
        length: the number of rows.

    Raises:
        FunctionUnavailable: it cannot be run in this process.
    """
    if length == 0:
        return Evaluated(pa.nulls(0, to_arrow_type(function.return_type)))
    if function.takes == "values":
        return _row_by_row(function, columns, types, length)
    groups = _alike(columns) if function.takes == "pandas" else None
    if groups is None:
        return _Vectorised(function).evaluated(columns, length)
    values: pa.Array = pa.nulls(length, to_arrow_type(function.return_type))
    errors: Errors | None = None
    for mask in groups:
        rows = pa.array(mask)
        part = _Vectorised(function).evaluated([c.filter(rows) for c in columns], int(mask.sum()))
        values = pa.compute.replace_with_mask(values, rows, part.values)
        errors = merge(errors, _spread_errors(part.errors, mask))
    return Evaluated(values, errors)


def _row_by_row(function: UserFunction, columns: Columns, types: Sequence[SqlType], length: int) -> Evaluated:
    code, fit = loaded(function), _fitting(function.return_type)
    results: list[Any] = [None] * length
    reasons = np.full(length, None, dtype=object)
    for row, values in enumerate(
        zip(*(_python_values(c, t) for c, t in zip(columns, types, strict=True)), strict=True)
    ):
        try:
            result = code(*values)
        except _ENDS:
            raise
        except BaseException as error:
            reasons[row] = _reason(function, error)
            continue
        if result is None:
            continue
        try:
            results[row] = fit(result)
        except InputError as error:
            reasons[row] = _unfit(function, f"{type(result).__name__} ({error.code})")
    failed = reasons != None  # noqa: E711 - element by element
    errors = Errors(failed, reasons) if failed.any() else None
    return Evaluated(from_raw_list(results, function.return_type), errors)


def _python_values(column: pa.Array, sql_type: SqlType) -> list[Any]:
    """Return the values that ``db.get`` shows for a column."""
    raw = to_raw_list(column)
    if is_identity(sql_type):
        return raw
    convert = from_raw(sql_type)
    return [None if value is None else convert(value) for value in raw]


def _fitting(sql_type: SqlType) -> Callable[[Any], Any]:
    """Return the function from a result (not None) to its raw value; Decimals are rounded half up, as Spark does it."""
    convert = to_raw(sql_type)
    if sql_type.name != "DECIMAL":
        return convert
    quantum = Decimal(1).scaleb(-sql_type.scale)

    def rounded(value: Any) -> Any:
        if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < sql_type.precision:
            value = value.quantize(quantum, ROUND_HALF_UP, _WIDE)
        return convert(value)

    return rounded


class _Vectorised:
    """Calls a function of whole columns."""

    def __init__(self, function: UserFunction) -> None:
        self._function = function
        self._code = loaded(function)
        self._type = to_arrow_type(function.return_type)

    def evaluated(self, columns: Columns, length: int) -> Evaluated:
        """Return the results; where the call fails the rows are halved until those that fail stand alone."""
        reasons = np.full(length, None, dtype=object)
        parts = list(self._parts(columns, 0, length, reasons))
        failed = reasons != None  # noqa: E711 - element by element
        return Evaluated(pa.concat_arrays(parts), Errors(failed, reasons) if failed.any() else None)

    def _parts(self, columns: Columns, start: int, stop: int, reasons: np.ndarray) -> Iterator[pa.Array]:
        found = self._tried([c.slice(start, stop - start) for c in columns], stop - start)
        if not isinstance(found, str):
            yield found
        elif stop - start == 1:
            reasons[start] = found
            yield pa.nulls(1, self._type)
        else:
            middle = (start + stop) // 2
            yield from self._parts(columns, start, middle, reasons)
            yield from self._parts(columns, middle, stop, reasons)

    def _tried(self, columns: Columns, length: int) -> pa.Array | str:
        """Return the results of one call, or why there are none."""
        given = columns if self._function.takes == "arrow" else [self._series(column) for column in columns]
        try:
            results = self._code(*given)
        except _ENDS:
            raise
        except BaseException as error:
            return _reason(self._function, error)
        try:
            return self._fitted(results, length)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return _unfit(self._function, f"a column of {type(results).__name__}")

    def _series(self, column: pa.Array) -> Any:
        try:
            return column.to_pandas()
        except ImportError as error:
            remedy = "Install pandas here, or register a function of Arrow arrays (vectorized='arrow')."
            raise not_loadable(self._function, str(error), remedy) from error

    def _fitted(self, results: Any, length: int) -> pa.Array:
        if isinstance(results, pa.ChunkedArray):
            results = results.combine_chunks()
        if not isinstance(results, pa.Array):
            if isinstance(results, str | bytes) or not hasattr(results, "__len__"):
                raise TypeError("no column")
            results = pa.array(results, self._type, from_pandas=True)
        if len(results) != length:
            raise ValueError("another number of rows")
        kinds = pa.types.is_string(results.type), pa.types.is_string(self._type)
        if kinds[0] != kinds[1] and not pa.types.is_null(results.type) and not pa.types.is_large_string(results.type):
            raise TypeError("text is no number")
        return results.cast(self._type)


def _alike(columns: Columns) -> list[Mask] | None:
    """Return masks of rows whose NULLs stand in the same columns, of those that pandas has in two forms; None: all."""
    signature: Any = 0
    for number, column in enumerate(columns):
        if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            signature = signature + column.is_null().to_numpy(zero_copy_only=False).astype(object) * (1 << number)
    if isinstance(signature, int):
        return None
    return [np.asarray(signature == one, dtype=bool) for one in dict.fromkeys(signature.tolist())]


def _reason(function: UserFunction, error: BaseException) -> str:
    """Return the reason of a row for which ``function`` raised.

    Without the error's own words: they may name an address in memory, and the deletion of the row must give the same.
    """
    if isinstance(error, ImportError):
        raise not_loadable(function, f"{type(error).__name__}: {error}", "Install what it needs here.") from error
    return f"{RAISED}: {function.name}() raised {type(error).__name__}"


def _unfit(function: UserFunction, what: str) -> str:
    return f"{UNFIT}: {function.name}() returned {what}, which does not fit {str(function.return_type).upper()}"


def _spread(values: pa.Array, mask: Mask) -> pa.Array:
    """Return ``values`` at the rows of ``mask``, NULL at the others."""
    positions = np.cumsum(mask) - 1
    return values.take(pa.array(positions, pa.int64(), mask=~mask))


def _spread_errors(errors: Errors | None, mask: Mask) -> Errors | None:
    if errors is None:
        return None
    reasons = np.full(len(mask), None, dtype=object)
    reasons[mask] = errors.reasons
    rows = np.zeros(len(mask), dtype=bool)
    rows[mask] = errors.rows
    return Errors(rows, reasons)
