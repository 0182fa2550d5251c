"""Values of ``:name`` parameters: Python values → typed constants, and → SQL for Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
from sqlglot import exp

from viewkeeper.errors import InputError
from viewkeeper.expressions.tree import Literal, Session
from viewkeeper.expressions.zones import to_utc
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import MAX_PRECISION, decimal

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - local time of whatever zone
_MICROSECOND = datetime.timedelta(microseconds=1)


def parameter_literal(name: str, value: object, session: Session) -> Literal:
    """Return the constant of a parameter, of the type that Spark gives to such a Python value.

    Args:
        name: the parameter, for messages.
        value: bool, int, float, Decimal, str, bytes, date, datetime (aware: TIMESTAMP; naive: TIMESTAMP in the
            session's zone), or None.
        session: time zone.

    Raises:
        InputError: ``INVALID_PARAMETER`` for other values, and for numbers beyond BIGINT or DECIMAL(38).

    Example:
        >>> str(parameter_literal("n", 5, Session()).type), str(parameter_literal("d", Decimal("1.50"), Session()).type)
        ('bigint', 'decimal(3,2)')
    """
    if value is None:
        return Literal(None, types.VOID)
    if isinstance(value, bool):
        return Literal(value, types.BOOLEAN)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _invalid(name, value, "it does not fit into BIGINT: pass a Decimal")
        return Literal(value, types.BIGINT)
    if isinstance(value, float):
        return Literal(value, types.DOUBLE)
    if isinstance(value, Decimal):
        return _decimal(name, value)
    if isinstance(value, str):
        return Literal(value, types.STRING)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Literal(bytes(value), types.BINARY)
    if isinstance(value, datetime.datetime):
        return Literal(_instant(value, session), types.TIMESTAMP)
    if isinstance(value, datetime.date):
        return Literal((value - _EPOCH.date()).days, types.DATE)
    raise _invalid(name, value, "pass bool, int, float, Decimal, str, bytes, date, datetime or None")


def parameter_tree(value: object) -> exp.Expr:
    """Return the SQL tree of a parameter's value that ``parameter_literal`` accepts, for Spark."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return exp.HexString(this=bytes(value).hex())
    for kind, type_name in (
        (int, "BIGINT"),
        (float, "DOUBLE"),
        (datetime.datetime, "TIMESTAMP"),
        (datetime.date, "DATE"),
    ):
        if isinstance(value, kind):
            return _cast(str(value), type_name)
    if isinstance(value, Decimal):
        return _cast(format(value, "f"), f"DECIMAL{_digits(value)}")
    return exp.Literal.string(str(value))


def _cast(text: str, type_name: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(type_name, dialect="spark"))


def _digits(value: Decimal) -> tuple[int, int]:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return max(len(value.as_tuple().digits) + max(0, exponent), scale), scale


def _decimal(name: str, value: Decimal) -> Literal:
    if not value.is_finite():
        raise _invalid(name, value, "a DECIMAL is finite: pass a float")
    precision, scale = _digits(value)
    if precision > MAX_PRECISION:
        raise _invalid(name, value, f"a DECIMAL has at most {MAX_PRECISION} digits")
    return Literal(Decimal(format(value, "f")), decimal(precision, scale))


def _instant(value: datetime.datetime, session: Session) -> int:
    if value.tzinfo is not None:
        return (value.astimezone(datetime.UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    local = (value - _EPOCH) // _MICROSECOND
    return int(to_utc(np.array(local), session.time_zone))


def _invalid(name: str, value: object, reason: str) -> InputError:
    message = f"The parameter :{name} is {value!r} ({type(value).__name__}): {reason}."
    return InputError("INVALID_PARAMETER", message, {"parameter": name})
