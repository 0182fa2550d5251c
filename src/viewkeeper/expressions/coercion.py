"""Spark's rules for the common type of several, and for the result types of decimal arithmetic.

Source: Spark 4.3, ``AnsiTypeCoercion``, ``AnsiStringPromotionTypeCoercion``, ``DecimalPrecisionTypeCoercion``,
``DecimalType.adjustPrecisionScale``. Session zone, precision loss and literal rules are Spark's defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewkeeper.expressions.tree import Expression, Literal, Session
from viewkeeper.zset.schema import (
    BIGINT,
    DOUBLE,
    FLOAT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    decimal,
)

_MINIMUM_ADJUSTED_SCALE = 6
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_PRECEDENCE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
_ATOMIC_BESIDES_NUMBERS = frozenset({"BOOLEAN", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
_DATETIME = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})

CommonType = Callable[[SqlType, SqlType], SqlType | None]


def adjusted(precision: int, scale: int) -> SqlType:
    """Return the decimal type in 38 digits, giving up digits behind the point, but no more than to 6 of them."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    digits = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - digits, min(scale, _MINIMUM_ADJUSTED_SCALE)))


def wider_decimal(one: SqlType, other: SqlType) -> SqlType:
    """Return the decimal type that holds the values of both; beyond 38 digits those behind the point go first."""
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    excess = max(0, precision - MAX_PRECISION)
    return decimal(precision - excess, max(0, scale - excess))


def decimal_result(function: str, one: SqlType, other: SqlType) -> SqlType:
    """Return the type of a decimal operation, with Spark's allowed loss of precision.

    Example:
        >>> str(decimal_result("multiply", decimal(38, 18), decimal(1, 0)))
        'decimal(38,16)'
    """
    p1, s1, p2, s2 = one.precision, one.scale, other.precision, other.scale
    scale = max(s1, s2)
    if function in ("add", "subtract"):
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if function == "multiply":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if function == "divide":
        scale = max(_MINIMUM_ADJUSTED_SCALE, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def decimal_of(sql_type: SqlType) -> SqlType:
    """Return the decimal type that holds all values of an integer type."""
    return decimal(_INTEGER_DIGITS[sql_type.name], 0) if sql_type.is_integer else sql_type


def decimal_of_literal(expression: Expression) -> SqlType:
    """Return the decimal type of an integer expression; a literal takes only the digits that it has."""
    if isinstance(expression, Literal) and isinstance(expression.value, int) and expression.type.is_integer:
        return decimal(max(1, len(str(abs(expression.value)))), 0)
    return decimal_of(expression.type)


def _is_wider(big: SqlType, integer: SqlType) -> bool:
    return big.precision - big.scale >= _INTEGER_DIGITS[integer.name]


def tightest(one: SqlType, other: SqlType) -> SqlType | None:
    """Return the tightest common type, without loss and without promotion of strings."""
    if one == other:
        return one
    if one == VOID or other == VOID:
        return other if one == VOID else one
    if one.is_numeric and other.is_numeric:
        if "DECIMAL" in (one.name, other.name):
            big, small = (one, other) if one.name == "DECIMAL" else (other, one)
            return big if small.is_integer and _is_wider(big, small) else None
        wider = _PRECEDENCE[max(_PRECEDENCE.index(one.name), _PRECEDENCE.index(other.name))]
        return DOUBLE if wider == "FLOAT" else SqlType(wider)
    if one.name in _DATETIME and other.name in _DATETIME:
        return TIMESTAMP if "TIMESTAMP" in (one.name, other.name) else TIMESTAMP_NTZ
    return _nested(one, other, tightest)


def _nested(one: SqlType, other: SqlType, common: CommonType) -> SqlType | None:
    if one.name != other.name or len(one.children) != len(other.children) or not one.children:
        return None
    if [n.lower() for n in one.field_names] != [n.lower() for n in other.field_names]:
        return None
    children = [common(a, b) for a, b in zip(one.children, other.children, strict=True)]
    found = tuple(child for child in children if child is not None)
    if len(found) < len(children):
        return None
    return SqlType(one.name, children=found, field_names=one.field_names)


def _wider_of_decimals(one: SqlType, other: SqlType) -> SqlType | None:
    if not (one.is_numeric and other.is_numeric and "DECIMAL" in (one.name, other.name)):
        return None
    if one.is_floating or other.is_floating:
        return DOUBLE
    return wider_decimal(decimal_of(one), decimal_of(other))


def promoted(one: SqlType, other: SqlType) -> SqlType | None:
    """Return what Spark makes of a string beside another type under ANSI; None where it does not promote."""
    if one != STRING:
        one, other = other, one
    if one != STRING or other == STRING:
        return None
    if other.is_integer:
        return BIGINT
    if other.is_numeric:
        return DOUBLE
    if other == VOID:
        return STRING
    return other if other.name in _ATOMIC_BESIDES_NUMBERS else None


def without_strings(one: SqlType, other: SqlType) -> SqlType | None:
    """Return the common type of two, as GREATEST and LEAST take it: strings are not promoted."""
    return tightest(one, other) or _wider_of_decimals(one, other) or _nested(one, other, without_strings)


def wider(one: SqlType, other: SqlType) -> SqlType | None:
    """Return the common type of two, as UNION, CASE, COALESCE and IN take it."""
    found = tightest(one, other) or _wider_of_decimals(one, other) or promoted(one, other)
    return found or _nested(one, other, wider)


def fold(types: Sequence[SqlType], common: CommonType) -> SqlType | None:
    """Return the common type of ``types``, taken from left to right."""
    result: SqlType | None = VOID
    for sql_type in types:
        if result is None:
            return None
        result = common(result, sql_type)
    return result


def common_type(types: Sequence[SqlType], session: Session) -> SqlType | None:
    """Return Spark's common type of ``types`` for UNION, CASE, IF, COALESCE and IN; None where there is none.

    Args:
        types: the types, in order (the order matters to Spark).
        session: outside ANSI mode a string beside another type has no common type here, since Spark's older rules
            differ and are left to Spark.
    """
    return fold(types, wider if session.ansi else _legacy)


def _legacy(one: SqlType, other: SqlType) -> SqlType | None:
    """Return the common type outside ANSI mode: there FLOAT beside an integer stays FLOAT."""
    names = {one.name, other.name}
    if "FLOAT" in names and (one.is_integer or other.is_integer):
        return FLOAT
    return without_strings(one, other)
