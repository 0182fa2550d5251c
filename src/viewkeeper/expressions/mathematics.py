"""Rounding, signs, roots and bits.

EXP, LN, LOG, POW and the trigonometric functions are not portable: Java's ``StrictMath`` and the C library differ in
the last bit. SQRT is exact in both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.coercion import tightest
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.function import kernel, make, rule, under_ansi
from viewkeeper.expressions.implicit import ANY_DECIMAL, accept, check_count, types_of
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import (
    Evaluated,
    Mask,
    Operand,
    Vector,
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
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, INTEGER_BITS, MAX_PRECISION, STRING, VOID, SqlType, decimal

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_EXACT_POWER = 22
_WHOLE = 1 << 51
_NEAR_TIE = 1e-3


@rule("floor", "ceil", "ceiling")
def _floor_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 2)
    if len(arguments) == 2:
        raise NotPortable(function, "a scale")
    argument = accept(function, arguments[0], session, DOUBLE, ANY_DECIMAL, BIGINT)
    result = BIGINT
    if argument.type.name == "DECIMAL":
        result = decimal(min(argument.type.precision - argument.type.scale + 1, MAX_PRECISION), 0)
    return make("floor" if function == "floor" else "ceil", [argument], result, True, ansi=session.ansi)


@rule("sqrt", "sign", "signum")
def _double_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if arguments[0].type.name.startswith("INTERVAL"):
        raise NotPortable(function, "intervals")
    name = "sqrt" if function == "sqrt" else "sign"
    return make(name, [accept(function, arguments[0], session, DOUBLE)], DOUBLE, True)


@rule("round", "bround")
def _round_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 2)
    argument = arguments[0]
    if argument.type in (STRING, VOID):
        argument = accept(function, argument, session, DOUBLE)
    if not argument.type.is_numeric:
        raise mismatch(function, types_of(arguments), "it takes a number")
    digits = arguments[1] if len(arguments) == 2 else Literal(0, BIGINT)
    if isinstance(digits, Call) and digits.function == "negate" and isinstance(digits.arguments[0], Literal):
        inner = digits.arguments[0]
        digits = Literal(-inner.value if isinstance(inner.value, int) else None, inner.type)
    if not isinstance(digits, Literal) or not digits.type.is_integer or not isinstance(digits.value, int):
        raise NotPortable(function, "a scale that is not an integer constant")
    if abs(digits.value) > MAX_PRECISION:
        raise NotPortable(function, "a scale beyond 38")
    if argument.type.is_floating and digits.value < 0:
        raise NotPortable(function, "a negative scale: the digits of large numbers depend on the Java version")
    if not session.ansi and argument.type.precision == MAX_PRECISION and digits.value < 0:
        raise NotPortable(function, "38 digits and a negative scale outside ANSI mode")
    result = _rounded_type(argument.type, digits.value)
    return make(function, [argument], result, True, ansi=session.ansi, scale=digits.value)


def _rounded_type(source: SqlType, scale: int) -> SqlType:
    if source.name != "DECIMAL":
        return source
    whole = source.precision - source.scale + 1
    if scale < 0:
        return decimal(min(max(whole, -scale + 1), MAX_PRECISION), 0)
    kept = min(source.scale, scale)
    return decimal(min(whole + kept, MAX_PRECISION), kept)


@rule("bitand", "bitor", "bitxor")
def _bits_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    common = tightest(arguments[0].type, arguments[1].type)
    if STRING in types_of(arguments):
        raise NotPortable(function, "strings")
    if common is None or not common.is_integer:
        raise mismatch(function, types_of(arguments), "it takes integers")
    return make(function, [cast(a, common, session) for a in arguments], common)


@rule("shiftleft", "shiftright", "shiftrightunsigned")
def _shift_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    value, distance = arguments
    if not value.type.is_integer or not distance.type.is_integer or distance.type == BIGINT:
        raise NotPortable(function, "other than integers")
    wide = value.type if value.type == BIGINT else INT
    return make(function, [cast(value, wide, session), cast(distance, INT, session)], wide)


@rule("bit_count")
def _bit_count_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if not arguments[0].type.is_integer:
        raise NotPortable(function, f"{arguments[0].type} argument")
    return make(function, [cast(arguments[0], BIGINT, session)], INT)


@rule("rint")
def _rint_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(function, [accept(function, arguments[0], session, DOUBLE)], DOUBLE, True)


@rule("e", "pi")
def _constant_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 0, 0)
    return Literal(math.e if function == "e" else math.pi, DOUBLE)


@rule("bitnot")
def _bitnot_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if not arguments[0].type.is_integer:
        raise NotPortable(function, f"{arguments[0].type} argument")
    return make(function, arguments, arguments[0].type)


@kernel("shiftleft", "shiftright", "shiftrightunsigned")
def _shift(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    # As in Java only the low bits of the distance count.
    bits = INTEGER_BITS[call.type.name]
    values, distance = numbers(operands[0], call.type), numbers(operands[1], INT) & (bits - 1)
    valid = validity(operands[0]) & validity(operands[1])
    if call.function == "shiftleft":
        moved = np.left_shift(values, distance.astype(values.dtype))
    elif call.function == "shiftright":
        moved = np.right_shift(values, distance.astype(values.dtype))
    else:
        unsigned = values.astype(f"u{bits // 8}")
        moved = np.right_shift(unsigned, distance.astype(unsigned.dtype)).astype(values.dtype)
    return Evaluated(column(np.asarray(moved), call.type, valid, length))


@kernel("bit_count")
def _bit_count(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    counts = np.bitwise_count(numbers(operands[0], BIGINT).astype("u8")).astype(np.int32)
    return Evaluated(column(np.asarray(counts), INT, validity(operands[0]), length))


@kernel("rint")
def _rint(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(column(np.rint(numbers(operands[0], DOUBLE)), DOUBLE, validity(operands[0]), length))


def _floor_raises(call: Call) -> bool:
    return under_ansi(call) and call.arguments[0].type == DOUBLE


@kernel("floor", "ceil", raises=_floor_raises)
def _floor(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    source, valid = call.arguments[0].type, validity(operands[0])
    upwards = call.function == "ceil"
    if source.name == "DECIMAL":
        values = widen(unscaled(operands[0])) if source.scale > 18 else unscaled(operands[0])
        divisor = 10**source.scale
        whole = -(-values // divisor) if upwards else values // divisor
        return Evaluated(decimal_column(np.asarray(whole), call.type, valid, length)[0])
    values = numbers(operands[0], source)
    if source == BIGINT:
        return Evaluated(column(values, BIGINT, valid, length))
    with np.errstate(invalid="ignore"):
        whole = np.ceil(values) if upwards else np.floor(values)
        inside = (whole >= -(2.0**63)) & (whole < 2.0**63)
        integers = np.where(inside, whole, 0).astype(np.int64)
    # NaN becomes 0, as Java converts it.
    bad = np.broadcast_to(~inside & ~np.isnan(whole) & valid, (length,))
    if not call.option("ansi"):
        limits = np.where(whole > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        integers = np.where(inside | np.isnan(whole), integers, limits)
        return Evaluated(column(integers, BIGINT, valid, length))
    result = column(integers, BIGINT, valid, length)
    return Evaluated(blank(result, bad), failing(bad, "ARITHMETIC_OVERFLOW"))


@kernel("sqrt", "sign")
def _double(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    values = numbers(operands[0], DOUBLE)
    with np.errstate(invalid="ignore"):
        result = np.sqrt(values) if call.function == "sqrt" else np.where(values == 0, values, np.sign(values))
    return Evaluated(column(result, DOUBLE, validity(operands[0]), length))


def _rounds_can_raise(call: Call) -> bool:
    scale = call.option("scale")
    if not call.option("ansi") or call.type.is_floating:
        return False
    if call.type.name == "DECIMAL" and call.type.precision == MAX_PRECISION:
        return True
    return isinstance(scale, int) and scale < 0


@kernel("round", "bround", raises=_rounds_can_raise)
def _round(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    source, valid = call.arguments[0].type, validity(operands[0])
    scale = call.option("scale")
    assert isinstance(scale, int)
    even = call.function == "bround"
    if source.is_floating:
        values = np.broadcast_to(numbers(operands[0], source), (length,))
        return Evaluated(column(_round_doubles(values, scale, even), source, valid, length))
    if source.name == "DECIMAL":
        target = call.type.scale if scale >= 0 else scale
        rounded = _round_unscaled(unscaled(operands[0]), source.scale, target, even)
        if scale < 0:
            rounded = widen(rounded) * 10**-scale
        result, bad = decimal_column(np.asarray(rounded), call.type, valid, length)
        return _checked(call, result, bad, "NUMERIC_VALUE_OUT_OF_RANGE")
    values = numbers(operands[0], source)
    if scale >= 0:
        return Evaluated(column(values, source, valid, length))
    exact = np.asarray(_round_unscaled(widen(np.asarray(values)), 0, scale, even) * 10**-scale, dtype=object)
    limit = 1 << (INTEGER_BITS[source.name] - 1)
    over = ((exact >= limit) | (exact < -limit)).astype(bool)
    if not call.option("ansi"):
        exact = (exact + limit) % (2 * limit) - limit
    kept = np.where(over, 0, exact) if call.option("ansi") else exact
    result = column(np.asarray(kept).astype(np.int64), source, valid, length)
    return _checked(call, result, np.broadcast_to(over & valid, (length,)) if call.option("ansi") else None)


def _checked(call: Call, result: object, bad: Mask | None, reason: str = "ARITHMETIC_OVERFLOW") -> Evaluated:
    if bad is None or not bad.any():
        return Evaluated(result)
    return Evaluated(blank(result, bad), failing(bad, reason) if call.option("ansi") else None)


def _round_unscaled(values: Vector, scale: int, target: int, even: bool) -> Vector:
    if target >= scale or not even:
        return rescale(values, scale, target)
    values, divisor = widen(values), 10 ** (scale - target)
    quotient = abs(values) // divisor
    twice = (abs(values) - quotient * divisor) * 2
    quotient = quotient + ((twice > divisor) | ((twice == divisor) & (quotient % 2 == 1)))
    return np.asarray(np.where(values < 0, -quotient, quotient))


def _round_doubles(values: Vector, scale: int, even: bool) -> Vector:
    """Round the shortest decimal text of each number, as Spark does.

    Far from a tie that is the nearest multiple, computed with one correctly rounded division; the few rows near a tie,
    very large ones and large scales are rounded on their texts.
    """
    doubles = values.astype(np.float64)
    result = doubles.copy()
    with np.errstate(all="ignore"):
        if 0 <= scale <= _EXACT_POWER:
            scaled = doubles * 10.0**scale
            whole = np.floor(scaled + 0.5)
            near = np.abs(scaled - np.floor(scaled) - 0.5) < _NEAR_TIE
            easy = (np.abs(scaled) < _WHOLE) & ~near
            result[easy] = whole[easy] / 10.0**scale
        else:
            easy = np.zeros(doubles.shape, dtype=bool)
    mode = ROUND_HALF_EVEN if even else ROUND_HALF_UP
    for index in np.flatnonzero(~easy & np.isfinite(doubles)):
        result[index] = _round_text(float(doubles[index]), scale, mode)
    with np.errstate(over="ignore"):
        return (result + 0.0).astype(values.dtype)


def _round_text(value: float, scale: int, mode: str) -> float:
    number = Decimal(repr(value))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent >= -scale:
        return value
    sign, digits, _ = number.as_tuple()
    unscaled_value = int("".join(map(str, digits)))
    divisor = 10 ** (-scale - exponent)
    quotient, rest = divmod(unscaled_value, divisor)
    up = 2 * rest > divisor or (2 * rest == divisor and (mode == ROUND_HALF_UP or quotient % 2 == 1))
    rounded = quotient + up
    return (-1.0 if sign else 1.0) * float(Decimal(rounded).scaleb(-scale))


@kernel("bitand", "bitor", "bitxor", "bitnot")
def _bits(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    valid = validity(operands[0])
    first = numbers(operands[0], call.type)
    if call.function == "bitnot":
        return Evaluated(column(~first, call.type, valid, length))
    second = numbers(operands[1], call.type)
    combine = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[call.function]
    combined = combine(first, second)
    return Evaluated(column(np.asarray(combined), call.type, valid & validity(operands[1]), length))
