"""ROWS and RANGE of a window: which rows a function sees, as distances before and behind the current row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Expression, Literal, Scalar, columns_of
from viewkeeper.expressions.user_calls import is_foldable
from viewkeeper.expressions.zones import is_known
from viewkeeper.operators.windows.call import Bound, CalendarDistance
from viewkeeper.plan.context import Context
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import SqlType

_DAY = 86_400_000_000
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
_INTERVALS = ("INTERVAL_DAY_TIME", "INTERVAL_YEAR_MONTH")


@dataclass(frozen=True)
class Frame:
    """A frame as ``WindowCall`` has it.

    Args:
        unit: ``rows`` or ``range``.
        start: the distance before the current row; None for the partition's start; negative for behind it.
        stop: the distance behind the current row; None for the partition's end; negative for before it.
    """

    unit: str
    start: Bound
    stop: Bound


WHOLE = Frame("range", None, None)
_RUNNING = Frame("range", None, 0)


def frame_of(window: exp.Window, order: Sequence[SqlType], translator: Translator, context: Context) -> Frame:
    """Return the frame of ``window``: by default the partition, or with an order all up to the current row's peers.

    Args:
        window: the call.
        order: the types of the window's ORDER BY items.
        translator: for the bounds.
        context: the statement.

    Raises:
        SqlError: bounds of wrong types or in the wrong order.
        UnsupportedSql: ``WINDOW_FUNCTION_NOT_YET`` for a time zone that only Java knows.
    """
    spec = window.args.get("spec")
    if spec is None:
        return _RUNNING if order else WHOLE
    unit = str(spec.args.get("kind") or "").lower()
    if unit not in ("rows", "range"):
        raise context.refusal("CLAUSE_NOT_YET", window, f"the frame unit {unit.upper()}")
    bounds = _Bounds(unit, order, translator, context)
    start = bounds.distance(spec.args.get("start"), spec.args.get("start_side"), "PRECEDING", window)
    end = spec.args.get("end")
    stop = bounds.distance("CURRENT ROW" if end is None else end, spec.args.get("end_side"), "FOLLOWING", window)
    _check_order(start, stop, window, context)
    if unit == "range" and not order and (start is not None or stop is not None):
        message = "A RANGE frame compares values of the order: add ORDER BY to the window."
        raise context.error("DATATYPE_MISMATCH", message, window)
    return Frame(unit, start, stop)


def _check_order(start: Bound, stop: Bound, window: exp.Window, context: Context) -> None:
    if start is None or stop is None:
        return
    (months, first), (others, last) = _measured(start), _measured(stop)
    if first and last and months != others:
        message = "One bound of the frame counts months, the other does not: write both alike."
        raise context.error("DATATYPE_MISMATCH", message, window)
    if -first > last:
        message = "The frame starts behind its end: exchange its bounds."
        raise context.error("DATATYPE_MISMATCH", message, window)


def _measured(bound: Bound) -> tuple[bool, int | float | Decimal]:
    """Return whether a distance counts months, and how long it is."""
    if isinstance(bound, CalendarDistance):
        return bound.is_months, bound.count
    assert isinstance(bound, int | float | Decimal)
    return False, bound


@dataclass(frozen=True)
class _Bounds:
    unit: str
    order: Sequence[SqlType]
    translator: Translator
    context: Context

    def distance(self, bound: object, side: object, towards: str, window: exp.Window) -> Bound:
        """Return the distance that a bound tells, counted ``towards`` its own side."""
        side = str(side or "").upper()
        if isinstance(bound, str):
            if bound.upper() == "CURRENT ROW":
                return 0
            if side != towards:
                end = "start" if towards == "PRECEDING" else "end"
                message = f"UNBOUNDED {side} cannot be the {end} of a frame: exchange its bounds."
                raise self.context.error("DATATYPE_MISMATCH", message, window)
            return None
        assert isinstance(bound, exp.Expr)
        value = self._rows(bound) if self.unit == "rows" else self._range(bound, window)
        return value if side == towards else -value  # type: ignore[operator]

    def _rows(self, tree: exp.Expr) -> int:
        expression = self.translator.expression(tree)
        value = constant_of(expression, self.context)
        if not isinstance(value, int) or not expression.type.is_integer or expression.type == types.BIGINT:
            message = "ROWS takes a constant INT as its bound."
            raise self.context.error("DATATYPE_MISMATCH", message, tree)
        return value

    def _range(self, tree: exp.Expr, window: exp.Window) -> Bound:
        if len(self.order) != 1:
            message = "A RANGE frame with a distance needs exactly one ORDER BY item in its window."
            raise self.context.error("DATATYPE_MISMATCH", message, window)
        sql_type = self.order[0]
        expression = self.translator.expression(tree)
        kind = expression.type.name
        if sql_type.is_numeric and (expression.type.is_numeric or kind == "STRING"):
            expression = self.translator.cast(tree, expression, sql_type)
        elif not (sql_type.name == "DATE" and (expression.type.is_integer or kind in _INTERVALS)) and not (
            sql_type.name in _TIMES and kind in _INTERVALS
        ):
            raise self._mismatch(sql_type, tree)
        value = constant_of(expression, self.context)
        if isinstance(value, bool) or value is None:
            raise self._mismatch(sql_type, tree)
        return self._interval(value, expression.type, tree) if kind in _INTERVALS else value

    def _interval(self, value: Scalar, interval: SqlType, tree: exp.Expr) -> Bound:
        assert isinstance(value, int)
        sql_type = self.order[0]
        zone = self.context.session.time_zone if sql_type == types.TIMESTAMP else "UTC"
        distance = CalendarDistance(value, replace(interval, field_names=()), zone)
        # A day of the session's zone has not always 24 hours.
        if value and (distance.is_months or (zone != "UTC" and abs(value) >= _DAY)):
            if not is_known(zone):
                what = f"a RANGE frame over months or days of TIMESTAMP in the time zone {zone}"
                instead = "Order by a number, as unix_micros(…), with a distance in microseconds."
                raise self.context.refusal("WINDOW_FUNCTION_NOT_YET", tree, what, instead)
            return distance
        if sql_type != types.DATE:
            return value
        if value % _DAY:
            raise self._mismatch(sql_type, tree)
        return value // _DAY

    def _mismatch(self, sql_type: SqlType, tree: exp.Expr) -> Exception:
        message = f"This is no distance between values of type {str(sql_type).upper()}: it must be a constant."
        return self.context.error("DATATYPE_MISMATCH", message, tree)


def constant_of(expression: Expression, context: Context) -> Scalar:
    """Return the value of an expression without columns, as ``Literal`` holds it; None where it has none or is NULL."""
    if isinstance(expression, Literal):
        return expression.value
    if columns_of(expression) or not is_foldable(expression):
        return None
    one = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["one"])
    result = evaluate(expression, one, context.session)
    value = result.values.cast(pa.int64()) if pa.types.is_duration(result.values.type) else result.values
    found: Scalar = None if result.errors is not None else value[0].as_py()
    return found
