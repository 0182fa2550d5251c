"""Comparisons: NaN equals NaN and is greater than all, -0.0 equals 0.0, strings compare as UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.coercion import decimal_of_literal, promoted, tightest, wider_decimal
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import check_count
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, Vector, all_valid, as_array, column, numbers, validity
from viewkeeper.zset.schema import BIGINT, BOOLEAN, DOUBLE, STRING, VOID

_ROUNDING = {
    ("gt", False): ROUND_FLOOR, ("ge", False): ROUND_CEILING, ("lt", False): ROUND_CEILING, ("le", False): ROUND_FLOOR,
    ("gt", True): ROUND_CEILING, ("ge", True): ROUND_FLOOR, ("lt", True): ROUND_FLOOR, ("le", True): ROUND_CEILING,
}  # fmt: skip
_MIRRORED = {"lt": "gt", "le": "ge"}


def comparable(function: str, one: Expression, other: Expression, session: Session) -> tuple[Expression, Expression]:
    """Return both sides cast to the type in which Spark compares them.

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` where they cannot be compared.
    """
    left, right = one.type, other.type
    if left.contains_map or right.contains_map:
        raise mismatch(function, [left, right], "maps cannot be compared")
    if STRING in (left, right) and left != right and VOID not in (left, right) and not session.ansi:
        raise NotPortable(function, "strings beside other types outside ANSI mode")
    if left == VOID and right == VOID:
        raise NotPortable(function, "two bare NULLs")
    decimals = "DECIMAL" in (left.name, right.name)
    if decimals and left.is_numeric and right.is_numeric and left != right:
        if left.is_floating or right.is_floating:
            return cast(one, DOUBLE, session), cast(other, DOUBLE, session)
        whole = _whole_bound(function, one, other)
        if whole is not None:
            return comparable(function, *whole, session)
        target = wider_decimal(decimal_of_literal(one), decimal_of_literal(other))
        return _through(one, target, session), _through(other, target, session)
    found = promoted(left, right) or tightest(left, right)
    if found is None:
        raise mismatch(function, [left, right], "the two types cannot be compared")
    return cast(one, found, session), cast(other, found, session)


def _through(expression: Expression, target: Any, session: Session) -> Expression:
    return cast(cast(expression, decimal_of_literal(expression), session), target, session)


def _whole_bound(function: str, one: Expression, other: Expression) -> tuple[Expression, Expression] | None:
    """Return an integer beside a decimal constant as two integers: ``i > 2.5`` means ``i > 2``, without a cast."""
    for integer, constant, swapped in ((one, other, False), (other, one, True)):
        is_constant = isinstance(constant, Literal) and isinstance(constant.value, Decimal)
        rounding = _ROUNDING.get((function, swapped))
        if not (integer.type.is_integer and is_constant and rounding):
            continue
        assert isinstance(constant, Literal)
        assert isinstance(constant.value, Decimal)
        value = int(constant.value.to_integral_value(rounding))
        if not -(1 << 63) <= value < 1 << 63:
            raise NotPortable(function, "an integer beside a constant beyond BIGINT")
        bound = Literal(value, BIGINT)
        return (bound, integer) if swapped else (integer, bound)
    return None


@rule("eq", "lt", "le", "gt", "ge", "ne", "eq_null_safe")
def _compare(
    function: str, arguments: tuple[Expression, ...], session: Session, options: Mapping[str, Scalar]
) -> Expression:
    check_count(function, arguments, 2, 2)
    pair = comparable(function, arguments[0], arguments[1], session)
    if pair[0].type.is_nested:
        raise NotPortable(function, "comparison of nested types")
    return make(function, pair, BOOLEAN, False if function == "eq_null_safe" else None)


_ARROW: dict[str, Callable[..., pa.Array]] = {
    "eq": pc.equal, "ne": pc.not_equal, "lt": pc.less, "le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal,
}  # fmt: skip


def _floats(function: str, left: Vector, right: Vector) -> Vector:
    if function in _MIRRORED:
        return _floats(_MIRRORED[function], right, left)
    nan_left, nan_right = np.isnan(left), np.isnan(right)
    if function in ("eq", "ne"):
        equal: Vector = (left == right) | (nan_left & nan_right)
        return equal if function == "eq" else ~equal
    if function == "gt":
        return (left > right) | (nan_left & ~nan_right)
    return (left >= right) | nan_left


def compared(function: str, call: Call, operands: Sequence[Operand], length: int) -> pa.Array:
    """Return the column of a comparison of two operands of one type."""
    sql_type = call.arguments[0].type
    if sql_type.is_floating:
        left, right = (numbers(operand, sql_type) for operand in operands)
        return column(_floats(function, left, right), BOOLEAN, all_valid(*operands), length)
    if sql_type == VOID:
        return pa.nulls(length, pa.bool_())
    return as_array(_ARROW[function](operands[0], operands[1]), length)


@kernel("eq", "ne", "lt", "le", "gt", "ge")
def _comparison(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(compared(call.function, call, operands, length))


@kernel("eq_null_safe", strict="all")
def _null_safe(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    left, right = (np.broadcast_to(validity(operand), (length,)) for operand in operands)
    equal = pc.fill_null(compared("eq", call, operands, length), False).to_numpy(zero_copy_only=False)
    return Evaluated(column(np.where(left & right, equal, left == right), BOOLEAN, np.bool_(True), length))
