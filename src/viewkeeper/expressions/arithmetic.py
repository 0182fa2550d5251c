"""Arithmetic: types by Spark's rules, overflow and division by zero found for whole columns at once.

Integers wrap outside ANSI mode; under ANSI an overflow is an error, in the TRY functions NULL. Decimals are computed
on their unscaled integers: in int64 where the operands are small enough to be safe, else on Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.coercion import decimal_of_literal, decimal_result, promoted, tightest
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.function import RULES, kernel, make, rule, under_ansi
from viewkeeper.expressions.implicit import check_count
from viewkeeper.expressions.tree import Call, Expression, Scalar, Session
from viewkeeper.expressions.vectors import (
    Evaluated,
    Mask,
    Operand,
    Vector,
    all_valid,
    blank,
    bound,
    column,
    decimal_column,
    divide_half_up,
    failing,
    merge,
    numbers,
    rescale,
    unscaled,
    widen,
)
from viewkeeper.zset.schema import BIGINT, DOUBLE, FLOAT, INTEGER_BITS, MAX_PRECISION, STRING, VOID, SqlType

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_OVERFLOW, _RANGE = "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE"
_DIVISIONS = frozenset(("divide", "mod", "pmod", "integral_divide"))
_SCALA_DIGITS = 34


def _operands(function: str, one: Expression, other: Expression, session: Session) -> tuple[Expression, Expression]:
    left, right = one.type, other.type
    if STRING in (left, right) and left != right and VOID not in (left, right):
        if not session.ansi:
            raise NotPortable(function, "strings beside other types outside ANSI mode")
        target = promoted(left, right)
        if target is not None and target.is_numeric:
            return _operands(function, cast(one, target, session), cast(other, target, session), session)
    if left == VOID and right == VOID:
        raise NotPortable(function, "two bare NULLs")
    if function == "divide" and left == VOID:
        right = DOUBLE  # Spark's rule of division comes before it types the NULL
    if left == VOID or right == VOID:
        common = tightest(left, right)
        assert common is not None
        one, other = cast(one, common, session), cast(other, common, session)
        left = right = common
    if not (left.is_numeric and right.is_numeric):
        raise mismatch(function, [left, right], "it takes numbers")
    if "DECIMAL" in (left.name, right.name):
        if left.is_floating or right.is_floating:
            return cast(one, DOUBLE, session), cast(other, DOUBLE, session)
        return cast(one, decimal_of_literal(one), session), cast(other, decimal_of_literal(other), session)
    target = tightest(left, right)
    assert target is not None
    return cast(one, target, session), cast(other, target, session)


@rule("add", "subtract", "multiply", "mod", "pmod", "divide", "integral_divide")
def _binary(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    temporal = RULES.get(f"{function}_temporal")
    if temporal is not None and any(not (a.type.is_numeric or a.type in (STRING, VOID)) for a in arguments):
        return temporal(function, arguments, session, options)
    pair = _operands(function, arguments[0], arguments[1], session)
    safe = bool(options.get("safe"))
    sql_type = pair[0].type
    if function == "divide" and sql_type.name != "DECIMAL":
        pair, sql_type = (cast(pair[0], DOUBLE, session), cast(pair[1], DOUBLE, session)), DOUBLE
    if function == "integral_divide":
        if not sql_type.is_integer:
            raise NotPortable(function, f"division of {sql_type}")
        pair, sql_type = (cast(pair[0], BIGINT, session), cast(pair[1], BIGINT, session)), BIGINT
    if sql_type.name == "DECIMAL":
        one, other = pair[0].type, pair[1].type
        if function in ("mod", "pmod") and one.precision - one.scale + other.scale > MAX_PRECISION:
            raise NotPortable(function, "a quotient of more than 38 digits, which Spark cannot divide")
        sql_type = decimal_result(function, one, other)
    loses = safe or (not session.ansi and sql_type.name == "DECIMAL")
    nullable = True if function in _DIVISIONS or loses else None
    return make(function, pair, sql_type, nullable, ansi=session.ansi and not safe, safe=safe)


@rule("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod")
def _try(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    if any(not (a.type.is_numeric or a.type == VOID) for a in arguments):
        raise NotPortable(function, "other operands than numbers")
    return _binary(function.removeprefix("try_"), arguments, session, {"safe": True})


@rule("negate", "abs", "positive")
def _unary(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    argument = arguments[0]
    if argument.type == STRING:
        if not session.ansi:
            raise NotPortable(function, "strings outside ANSI mode")
        argument = cast(argument, DOUBLE, session)
    if argument.type == VOID:
        argument = cast(argument, DOUBLE, session)
    if argument.type.name.startswith("INTERVAL"):
        raise NotPortable(function, "intervals")
    if not argument.type.is_numeric:
        raise mismatch(function, [argument.type], "it takes a number")
    if function == "positive":
        return argument
    if argument.type.name == "DECIMAL" and argument.type.precision > _SCALA_DIGITS:
        raise NotPortable(function, "Spark rounds it to 34 digits")
    return make(function, [argument], argument.type, ansi=session.ansi)


def _can_raise(call: Call) -> bool:
    """Say whether a call can fail: floating-point sums and products never do, decimal ones only in capped types."""
    if not call.option("ansi"):
        return False
    if call.function in _DIVISIONS:
        return True
    if call.type.name == "DECIMAL":
        # By Spark's rules a sum's or product's own type has room for every result, up to the largest type there is.
        return call.type.precision >= MAX_PRECISION
    return not call.type.is_floating


def _narrow(exact: Vector, sql_type: SqlType) -> tuple[Vector, Mask]:
    """Return a result computed in more bits as ``sql_type``, and where it does not fit."""
    narrow = exact.astype(f"i{INTEGER_BITS[sql_type.name] // 8}")
    return narrow, narrow != exact


def _add(left: Vector, right: Vector) -> tuple[Vector, Mask]:
    total = left + right
    return total, ((left ^ total) & (right ^ total)) < 0


def _subtract(left: Vector, right: Vector) -> tuple[Vector, Mask]:
    total = left - right
    return total, ((left ^ right) & (left ^ total)) < 0


def _multiply(left: Vector, right: Vector) -> tuple[Vector, Mask]:
    product = left * right
    if bound(left) * bound(right) < 1 << 63:
        return product, np.zeros(product.shape, dtype=bool)
    divisor = np.where(left == 0, 1, left)
    lowest = np.iinfo(np.int64).min
    wrong = (product // divisor != right) | (product % divisor != 0) | ((left == -1) & (right == lowest))
    return product, wrong & (left != 0)


_BIGINT: dict[str, Callable[[Vector, Vector], tuple[Vector, Mask]]] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply,
}  # fmt: skip
_UFUNC: dict[str, Callable[[Vector, Vector], Vector]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
}  # fmt: skip


def _finish(call: Call, values: pa.Array, bad: Mask, reason: str, length: int) -> Evaluated:
    """Return the column with NULL in the ``bad`` rows, and their errors under ANSI."""
    bad = np.broadcast_to(bad, (length,))
    if not bad.any():
        return Evaluated(values)
    return Evaluated(blank(values, bad), failing(bad, reason) if call.option("ansi") else None)


@kernel("add", "subtract", "multiply", raises=_can_raise)
def _sum(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    sql_type, valid = call.type, all_valid(*operands)
    if sql_type.name == "DECIMAL":
        return _decimal_sum(call, operands, valid, length)
    left, right = (numbers(o, sql_type) for o in operands)
    with np.errstate(all="ignore"):
        if sql_type.is_floating:
            return Evaluated(column(_UFUNC[call.function](left, right), sql_type, valid, length))
        if sql_type == BIGINT:
            values, bad = _BIGINT[call.function](left, right)
        else:
            exact = _UFUNC[call.function](left.astype(np.int64), right.astype(np.int64))
            values, bad = _narrow(exact, sql_type)
    result = column(values, sql_type, valid, length)
    if not (call.option("ansi") or call.option("safe")):
        return Evaluated(result)
    small = sql_type.name in ("TINYINT", "SMALLINT")
    return _finish(call, result, bad & valid, f"BINARY_{_OVERFLOW}" if small else _OVERFLOW, length)


def _decimal_sum(call: Call, operands: Sequence[Operand], valid: Mask | np.bool_, length: int) -> Evaluated:
    scales = [a.type.scale for a in call.arguments]
    left, right = (unscaled(o) for o in operands)
    if call.function == "multiply":
        if left.dtype == object or right.dtype == object or bound(left) * bound(right) >= 1 << 63:
            left, right = widen(left), widen(right)
        values, scale = left * right, sum(scales)
    else:
        scale = max(scales)
        left, right = rescale(left, scales[0], scale), rescale(right, scales[1], scale)
        if left.dtype == object or right.dtype == object or bound(left) + bound(right) >= 1 << 63:
            left, right = widen(left), widen(right)
        values = left + right if call.function == "add" else left - right
    values = rescale(np.asarray(values), scale, call.type.scale)
    result, too_large = decimal_column(values, call.type, valid, length)
    return _finish(call, result, too_large, _RANGE, length)


@kernel("divide", "mod", "pmod", "integral_divide", raises=_can_raise, strict="right")
def _divide(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    sql_type, valid = call.type, all_valid(*operands)
    is_decimal = sql_type.name == "DECIMAL"
    left, right = (unscaled(o) if is_decimal else numbers(o, sql_type) for o in operands)
    zero = np.broadcast_to((right == 0).astype(bool) & valid, (length,))
    divisor = np.where(right == 0, np.ones((), dtype=right.dtype), right)
    keep = valid & ~zero
    reason = "DIVIDE_BY_ZERO" if call.function in ("divide", "integral_divide") else "REMAINDER_BY_ZERO"
    errors = failing(zero, reason) if call.option("ansi") else None
    if is_decimal:
        result, bad = decimal_column(_decimal_quotient(call, left, divisor), sql_type, keep, length)
        overflow = _RANGE
    else:
        with np.errstate(all="ignore"):
            values, bad = _quotient(call.function, left, divisor, sql_type)
        result, overflow = column(values, sql_type, keep, length), _OVERFLOW
        bad = np.broadcast_to(bad & valid, (length,))
    if call.option("ansi") or call.option("safe") or is_decimal:
        outcome = _finish(call, result, bad, overflow, length)
        return Evaluated(outcome.values, merge(errors, outcome.errors))
    return Evaluated(result)


def _quotient(function: str, left: Vector, right: Vector, sql_type: SqlType) -> tuple[Vector, Mask]:
    none = np.zeros((), dtype=bool)
    if function == "divide":
        return left / right, none
    if function == "integral_divide":
        lowest = (left == np.iinfo(np.int64).min) & (right == -1)
        safe_left = np.where(lowest, 0, left)
        quotient = safe_left // right
        quotient = quotient + ((quotient * right != safe_left) & ((safe_left < 0) != (right < 0)))
        return np.where(lowest, left, quotient), lowest
    if sql_type.name in ("TINYINT", "SMALLINT"):
        left, right = left.astype(np.int32), right.astype(np.int32)
    rest = np.fmod(left, right)
    if function == "pmod":
        rest = np.where(rest < 0, np.fmod(rest + right, right), rest)
    return rest, none


def _decimal_quotient(call: Call, left: Vector, right: Vector) -> Vector:
    s1, s2 = (a.type.scale for a in call.arguments)
    target = call.type.scale
    if call.function == "divide":
        # Spark cuts the quotient to 39 digits and rounds half up then, which is to round the exact one.
        sign = np.where((left < 0) ^ (right < 0), -1, 1)
        power = target + s2 - s1
        dividend, divisor = abs(widen(left)) * 10 ** max(power, 0), abs(widen(right)) * 10 ** max(-power, 0)
        return np.asarray(divide_half_up(dividend, divisor) * sign, dtype=object)
    scale = max(s1, s2)
    left, right = widen(rescale(left, s1, scale)), widen(rescale(right, s2, scale))
    rest = np.where(left < 0, -(abs(left) % abs(right)), abs(left) % abs(right))
    if call.function == "pmod":
        moved = rest + right
        again = np.where(moved < 0, -(abs(moved) % abs(right)), abs(moved) % abs(right))
        rest = np.where(rest < 0, again, rest)
    return rescale(np.asarray(rest, dtype=object), scale, target)


@kernel("negate", "abs", raises=lambda call: under_ansi(call) and call.type.is_integer)
def _sign_change(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    sql_type, valid = call.type, all_valid(*operands)
    change: Callable[[Vector], Vector] = np.negative if call.function == "negate" else np.absolute
    if sql_type.name == "DECIMAL":
        values = unscaled(operands[0])
        if values.dtype != object and bound(values) == 1 << 63:
            values = widen(values)
        return Evaluated(decimal_column(np.asarray(change(values)), sql_type, valid, length)[0])
    values = numbers(operands[0], sql_type)
    if sql_type in (FLOAT, DOUBLE):
        return Evaluated(column(change(values), sql_type, valid, length))
    with np.errstate(over="ignore"):
        result = column(change(values), sql_type, valid, length)
    lowest = (values == np.iinfo(values.dtype).min) & valid
    return _finish(call, result, lowest, _OVERFLOW, length) if call.option("ansi") else Evaluated(result)
