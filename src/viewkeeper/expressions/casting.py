"""CAST and TRY_CAST: which casts exist, when the result can be NULL, and the portable form of each.

Source: Spark 4.3, ``Cast.canAnsiCast``, ``Cast.forceNullable``. Casts whose text form depends on the Java version
(FLOAT and DOUBLE to STRING) and rare pairs are not portable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from viewkeeper.expressions import text
from viewkeeper.expressions.coercion import decimal_of
from viewkeeper.expressions.errors import TIME_WITHOUT_DATE, NotPortable, mismatch
from viewkeeper.expressions.function import kernel
from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY
from viewkeeper.expressions.tree import Call, Expression, Literal, Session
from viewkeeper.expressions.vectors import (
    Evaluated,
    Mask,
    Operand,
    Vector,
    as_array,
    blank,
    column,
    decimal_column,
    failing,
    numbers,
    rescale,
    unscaled,
    validity,
    widen,
)
from viewkeeper.expressions.zones import is_known, to_local, to_utc
from viewkeeper.zset.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER_BITS,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
    to_arrow_type,
)

_NUMERIC_SOURCES = ("BOOLEAN", "TIMESTAMP", "INTERVAL_DAY_TIME", "INTERVAL_YEAR_MONTH")
_DATETIME = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_INVALID, _OVERFLOW, _RANGE = "CAST_INVALID_INPUT", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE"
_SECOND = 1_000_000
_JAVA_DIGITS = 15  # digits of a DOUBLE that Java before 19 prints right
Converted = tuple[pa.Array, Mask | None, str | NDArray[np.object_]]


def exists(source: SqlType, target: SqlType) -> bool:
    """Return whether Spark has this cast under ANSI."""
    if source == target or source.name == "VOID" or target == STRING:
        return True
    if source == STRING:
        return not target.is_nested and target.name != "VOID"
    if target.name == "BOOLEAN":
        return source.is_numeric
    if target.is_numeric:
        return source.is_numeric or source.name in _NUMERIC_SOURCES
    if target.name in _DATETIME:
        return source.name in _DATETIME or (target == TIMESTAMP and source.is_numeric)
    return source.is_nested and source.name == target.name


def _refusal(source: SqlType, target: SqlType, session: Session, safe: bool) -> str | None:
    """Return why a cast that exists is not portable."""
    if source == target or source.name == "VOID":
        return None
    pair = (source.name, target.name)
    if pair == ("STRING", "TIMESTAMP") and (safe or not session.ansi):
        return "a time of day alone would take the current date"
    if source.is_nested or target.is_nested or any("INTERVAL" in name for name in pair):
        return "casts of nested types and intervals"
    if target == STRING and (source.is_floating or source.name == "BINARY"):
        return "its text depends on the Java version" if source.is_floating else "bytes need not be UTF-8"
    if target == STRING and source.name == "DECIMAL" and not session.ansi and source.scale > 6:
        return "exponents outside ANSI mode"
    if pair == ("STRING", "FLOAT") or (target.name == "FLOAT" and source.name == "DECIMAL" and source.precision > 7):
        return "rounding to FLOAT in one step"
    if target.name == "DECIMAL" and source.is_floating and target.precision > _JAVA_DIGITS:
        return "the digits beyond 15 depend on the Java version"
    if target == TIMESTAMP and (source.is_floating or source.name == "DECIMAL"):
        return "fractions of seconds from numbers"
    if source == TIMESTAMP and (target.name in ("FLOAT", "DECIMAL") or (target.is_integer and not session.ansi)):
        return "seconds as such a number"
    if not session.ansi and (target.is_integer and source.name in ("STRING", "DECIMAL")):
        return "rounding and wrapping outside ANSI mode"
    local = {"STRING", "DATE", "TIMESTAMP_NTZ"}.intersection(pair)
    if "TIMESTAMP" in pair and local and not is_known(session.time_zone):
        return f"time zone {session.time_zone}"
    return None


def _decimal_cannot_overflow(source: SqlType, target: SqlType) -> bool:
    if source.name == "DECIMAL":
        return target.precision - target.scale > source.precision - source.scale or _is_wider(target, source)
    if source.is_integer:
        return _is_wider(target, decimal_of(source))
    return source.name == "BOOLEAN" and target.precision > target.scale


def _is_wider(target: SqlType, source: SqlType) -> bool:
    return target.precision - target.scale >= source.precision - source.scale and target.scale >= source.scale


def _force_nullable(source: SqlType, target: SqlType) -> bool:
    if source == target or target == STRING or source.name == "VOID":
        return False
    if source == STRING:
        return target.name != "BINARY"
    if (source, target) == (DATE, TIMESTAMP_NTZ):
        return True
    if target == DATE:
        return source != TIMESTAMP
    if source == TIMESTAMP and target.is_integer:
        return target != BIGINT
    if target.name == "DECIMAL":
        return not _decimal_cannot_overflow(source, target)
    if source.is_floating and target == TIMESTAMP:
        return True
    return (source.is_floating or source.name == "DECIMAL") and target.is_integer


def can_fail(source: SqlType, target: SqlType) -> bool:
    """Return whether a cast can meet a value that it cannot convert."""
    if source == target or source.name == "VOID" or (source.name == "BOOLEAN" and target.name != "DECIMAL"):
        return False
    if source == STRING:
        return target not in (STRING, SqlType("BINARY"))
    if target.name == "DECIMAL":
        return not _decimal_cannot_overflow(source, target)
    if target.is_integer:
        bits = INTEGER_BITS[target.name]
        return INTEGER_BITS[source.name] > bits if source.is_integer else source != TIMESTAMP or bits < 64
    return source == DATE and target in (TIMESTAMP, TIMESTAMP_NTZ)


def cast(expression: Expression, target: SqlType, session: Session, safe: bool = False) -> Expression:
    """Return ``expression`` cast to ``target``; the expression itself where it has that type.

    Args:
        expression: what to cast.
        target: the type wanted.
        session: ANSI mode and time zone.
        safe: TRY_CAST: NULL instead of an error.

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` where Spark has no such cast.
        NotPortable: where only Spark is proven to compute it.
    """
    source = expression.type
    name = "try_cast" if safe else "cast"
    if source == target:
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(None, target)
    if not exists(source, target):
        if not session.ansi:
            raise NotPortable(name, f"{source} to {target} outside ANSI mode")
        raise mismatch(name, [source], f"there is no cast to {str(target).upper()}")
    refusal = _refusal(source, target, session, safe)
    if refusal is not None:
        raise NotPortable(name, f"{source} to {target}: {refusal}")
    # What Spark says for TRY_CAST: only an up-cast keeps its child's nullability.
    gains_null = not _is_up_cast(source, target) if safe else _force_nullable(source, target)
    nullable = expression.nullable or gains_null
    options = (("ansi", session.ansi and not safe), ("safe", safe), ("time_zone", session.time_zone))
    return Call("cast", (expression,), target, nullable, options)


def _is_up_cast(source: SqlType, target: SqlType) -> bool:
    order = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
    if source.name in order and target.name in order:
        return order.index(source.name) <= order.index(target.name)
    if target.name == "DECIMAL":
        return (source.is_integer or source.name == "DECIMAL") and _is_wider(target, decimal_of(source))
    if source.name == "DECIMAL" and target.is_integer:
        return False
    if (source, target) == (DATE, TIMESTAMP_NTZ) or {source, target} == {TIMESTAMP, BIGINT}:
        return True
    return (
        target == STRING
        or (source == STRING and target.name == "BINARY")
        or (source.name in _DATETIME and target in (TIMESTAMP, TIMESTAMP_NTZ))
    )


def _cast_can_raise(call: Call) -> bool:
    return bool(call.option("ansi")) and can_fail(call.arguments[0].type, call.type)


@kernel("cast", raises=_cast_can_raise)
def _cast(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    operand = as_array(operands[0], length)
    source, target = call.arguments[0].type, call.type
    if source.name == "VOID" or operand.null_count == length:
        return Evaluated(pa.nulls(length, to_arrow_type(target)))
    values, bad, reason = _converter(source, target)(call, operand, length)
    if bad is None or not bad.any():
        return Evaluated(values)
    values = blank(values, bad)
    return Evaluated(values, failing(bad, reason) if call.option("ansi") else None)


def _converter(source: SqlType, target: SqlType) -> Callable[[Call, pa.Array, int], Converted]:
    if source == STRING:
        return _from_string
    if target == STRING:
        return _to_string
    if target.name == "DECIMAL":
        return _to_decimal
    if target.name in _DATETIME or source.name in _DATETIME:
        return _datetime
    return _to_number


def _to_number(call: Call, operand: pa.Array, length: int) -> Converted:
    source, target, valid = call.arguments[0].type, call.type, validity(operand)
    bad: Mask | None = None
    if source.name == "DECIMAL":
        values = unscaled(operand)
        if target.name == "BOOLEAN":
            values = values != 0
        elif target.is_floating:
            values = _decimal_to_double(values, source.scale)
        else:
            values = _truncate(values, source.scale)
    else:
        values = numbers(operand, source)
    if target.is_integer:
        values, bad = _to_integer(values, target, bool(call.option("ansi") or call.option("safe")))
        bad = None if bad is None else bad & valid
    elif target.name == "BOOLEAN":
        values = values.astype(bool)
    else:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32 if target.name == "FLOAT" else np.float64)
    return column(values, target, valid, length), bad, _OVERFLOW


def _truncate(values: Vector, scale: int) -> Vector:
    divisor = 10**scale
    if values.dtype != object and divisor >= 1 << 63:
        return np.zeros_like(values)
    return np.asarray(np.where(values < 0, -(abs(values) // divisor), abs(values) // divisor))


def _decimal_to_double(values: Vector, scale: int) -> Vector:
    """Return the nearest DOUBLE: one division of two exact numbers is rounded once."""
    if values.dtype != object and scale <= 22 and np.abs(values).max(initial=0) < 1 << 53:
        return values / np.float64(10**scale)
    divisor = 10**scale
    return np.array([int(value) / divisor for value in values.tolist()], dtype=np.float64)


def _to_integer(values: Vector, target: SqlType, checked: bool) -> tuple[Vector, Mask | None]:
    bits = INTEGER_BITS[target.name]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if values.dtype == bool:
        return values.astype(f"i{bits // 8}"), None
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        with np.errstate(invalid="ignore"):
            fits = (np.floor(values) <= float(high)) & (np.ceil(values) >= float(low))
            inside = np.where(fits, values, 0)
            # 2**63 as a DOUBLE passes Java's comparison and then saturates.
            whole = np.where(
                inside >= 2.0**63, np.iinfo(np.int64).max, np.where(inside < 2.0**63, inside, 0).astype("i8")
            )
        if not checked:
            whole = _saturated(values, max(32, bits))
        return whole.astype(f"i{bits // 8}"), (~fits if checked else None)
    if checked and values.size and (int(values.min()) < low or int(values.max()) > high):
        bad = ((values < low) | (values > high)).astype(bool)
        return np.where(bad, 0, values).astype(f"i{bits // 8}"), bad
    return values.astype(f"i{bits // 8}"), None


def _saturated(values: Vector, bits: int) -> Vector:
    """Return doubles as Java converts them to ``int`` or ``long``: cut, clamped to its range, NaN as 0."""
    edge = 1 << (bits - 1)
    with np.errstate(invalid="ignore"):
        inside = (values < edge) & (values >= -edge)
        beyond = np.where(np.isnan(values), 0, np.where(values > 0, edge - 1, -edge))
    return np.where(inside, np.where(inside, values, 0).astype("i8"), beyond)


def _to_decimal(call: Call, operand: pa.Array, length: int) -> Converted:
    source, target, valid = call.arguments[0].type, call.type, validity(operand)
    if source.name == "DECIMAL":
        values = rescale(unscaled(operand), source.scale, target.scale)
    elif source.is_floating:
        doubles = numbers(operand, source).astype(np.float64)
        # Spark gives NULL for NaN and the infinities, under ANSI too.
        valid = np.isfinite(doubles) & valid
        finite = np.where(valid, doubles, 0.0)
        exact = [text.unscaled_half_up(Decimal(repr(value)), target.scale) for value in finite.tolist()]
        values = np.array(exact, dtype=object)
    else:
        values = rescale(numbers(operand, source).astype(np.int64), 0, target.scale)
    result, too_large = decimal_column(values, target, valid, length)
    return result, too_large, _RANGE


def _datetime(call: Call, operand: pa.Array, length: int) -> Converted:
    source, target, valid = call.arguments[0].type, call.type, validity(operand)
    zone = str(call.option("time_zone"))
    values = numbers(operand, source).astype(np.int64)
    bad: Mask | None = None
    if source == TIMESTAMP and target.is_numeric:
        if target == DOUBLE:
            return column(values / float(_SECOND), target, valid, length), None, ""
        values, bad = _to_integer(values // _SECOND, target, True)
        return column(values, target, valid, length), None if bad is None else bad & valid, _OVERFLOW
    if source.is_integer:
        limit = ((1 << 63) - 1) // _SECOND
        saturated = np.where(values > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        result = np.where((values > limit) | (values < -limit), saturated, np.clip(values, -limit, limit) * _SECOND)
        return column(result, target, valid, length), None, ""
    if source == DATE:
        bad = (np.abs(values) > 106_751_990) & valid
        values = np.where(np.abs(values) > 106_751_990, 0, values) * MICROSECONDS_A_DAY
    if target == TIMESTAMP:
        values = to_utc(values, zone)
    elif source == TIMESTAMP:
        values = to_local(values, zone)
    if target == DATE:
        values = values // MICROSECONDS_A_DAY
    return column(values, target, valid, length), bad, "DATETIME_OVERFLOW"


def _to_string(call: Call, operand: pa.Array, length: int) -> Converted:
    source = call.arguments[0].type
    if source.is_integer or source.name == "BOOLEAN":
        return pc.cast(operand, pa.string()), None, ""
    if source.name == "DECIMAL":
        texts = text.format_decimals(widen(unscaled(operand)), source.scale)
    elif source == DATE:
        texts = text.format_dates(numbers(operand, source))
    else:
        values = numbers(operand, source)
        local = to_local(values, str(call.option("time_zone"))) if source == TIMESTAMP else values
        texts = text.format_timestamps(local)
    return pa.array(texts, pa.string(), mask=~np.broadcast_to(validity(operand), (length,))), None, ""


def _from_string(call: Call, operand: pa.Array, length: int) -> Converted:
    target, valid = call.type, validity(operand)
    if target.name == "BINARY":
        return pc.cast(operand, pa.binary()), None, ""
    if target.name == "DECIMAL":
        return _string_to_decimal(operand, target, length)
    zone = str(call.option("time_zone"))
    parsers: dict[str, Callable[[str], object]] = {
        "BOOLEAN": text.parse_boolean,
        "DOUBLE": text.parse_double,
        "DATE": text.parse_date,
        "TIMESTAMP": lambda value: text.parse_instant(value, zone),
        "TIMESTAMP_NTZ": text.parse_local,
    }
    default: object = False if target.name == "BOOLEAN" else 0
    parsed, bad = text.parse_column(operand, parsers.get(target.name, text.parse_integer), default)
    dtype = {"BOOLEAN": np.dtype(bool), "DOUBLE": np.dtype("f8")}.get(target.name, np.dtype("i8"))
    values = np.array(parsed, dtype=dtype)
    if target.is_integer:
        values, overflow = _to_integer(values, target, True)
        bad = bad if overflow is None else bad | overflow
    reasons = _why_no_instant(operand, bad) if target == TIMESTAMP and bad.any() else _INVALID
    return column(values, target, valid, length), bad, reasons


def _why_no_instant(operand: pa.Array, bad: Mask) -> NDArray[np.object_]:
    times = [row for row in np.flatnonzero(bad) if text.is_time_of_day(operand[int(row)].as_py())]
    reasons = np.full(len(bad), _INVALID, dtype=object)
    reasons[times] = TIME_WITHOUT_DATE
    return reasons


def _string_to_decimal(operand: pa.Array, target: SqlType, length: int) -> Converted:
    parsed, bad = text.parse_column(operand, text.parse_decimal, Decimal(0))
    values = np.array([text.unscaled_half_up(value, target.scale) for value in parsed], dtype=object)
    result, too_large = decimal_column(values, target, validity(operand), length)
    unsupported = np.array([text.whole_digits(value) > MAX_PRECISION for value in parsed], dtype=bool)
    reasons = np.where(too_large, _RANGE, _INVALID).astype(object)
    reasons[unsupported] = "NUMERIC_OUT_OF_SUPPORTED_RANGE"
    return result, bad | too_large | unsupported, reasons
