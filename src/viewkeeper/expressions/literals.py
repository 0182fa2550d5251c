"""Spark's literals: from the text in a statement to a typed constant."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from viewkeeper.errors import SqlError
from viewkeeper.expressions import text as texts
from viewkeeper.expressions.tree import Literal, Session
from viewkeeper.zset.schema import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGER_BITS,
    INTERVAL_DAY_TIME,
    INTERVAL_YEAR_MONTH,
    MAX_PRECISION,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
    decimal,
)

INTERVAL_DAYS = SqlType("INTERVAL_DAY_TIME", field_names=("DAY",))
"""The type of an interval of whole days, which a DATE takes without becoming a TIMESTAMP."""
_NUMBER = re.compile(r"([+-]?)(\d+|\d+\.\d*|\.\d+)(?:[eE]([+-]?\d+))?(BD|[LSYFD])?\Z", re.IGNORECASE)
_INTEGER_SUFFIX = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT}
_MICROSECONDS = {
    "WEEK": 604_800_000_000, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
_MONTHS = {"YEAR": 12, "MONTH": 1}
# Of the fields of an interval, with what stands before it: the first may be any number, the others have their bounds.
_DAY_TIME = {"DAY": ("", 0), "HOUR": (" ", 24), "MINUTE": (":", 60), "SECOND": (":", 60)}


_FORMS = {
    "DATE": ": write it as DATE'2024-12-31'",
    "TIMESTAMP": ": write it as TIMESTAMP'2024-12-31 23:59:59'",
    "TIMESTAMP_NTZ": ": write it as TIMESTAMP_NTZ'2024-12-31 23:59:59'",
    "BINARY": ": write pairs of hexadecimal digits, as X'00FF'",
    "DECIMAL": ": it has more than 38 digits, write it as DOUBLE with D behind it",
}


def _invalid(kind: str, text: str) -> SqlError:
    hint = _FORMS.get(kind, ": correct it")
    return SqlError("INVALID_LITERAL", f"{text!r} is not a {kind} literal of Spark SQL{hint}.", {"near": text})


def number(text: str) -> Literal:
    """Return the constant of a number as Spark reads it.

    Args:
        text: digits with optional sign, point, exponent and suffix (``L S Y F D BD``).

    Raises:
        SqlError: ``INVALID_LITERAL`` for other texts and values beyond their type.

    Example:
        >>> str(number("1.50").type), str(number("3000000000").type), str(number("1e3").type)
        ('decimal(3,2)', 'bigint', 'double')
    """
    match = _NUMBER.match(text)
    if match is None:
        raise _invalid("number", text)
    sign, digits, exponent, suffix = match.groups()
    suffix = (suffix or "").upper()
    plain = sign + digits + (f"e{exponent}" if exponent else "")
    if suffix in ("F", "D") or (not suffix and exponent):
        value = float(plain)
        return Literal(float(np.float32(value)) if suffix == "F" else value, FLOAT if suffix == "F" else DOUBLE)
    if suffix in _INTEGER_SUFFIX or (not suffix and "." not in digits):
        if "." in digits or exponent:
            raise _invalid("number", text)
        return _integer(int(plain), _INTEGER_SUFFIX.get(suffix), text)
    return _decimal(Decimal(plain), text)


def _integer(value: int, sql_type: SqlType | None, text: str) -> Literal:
    for candidate in (INT, BIGINT) if sql_type is None else (sql_type,):
        limit = 1 << (INTEGER_BITS[candidate.name] - 1)
        if -limit <= value < limit:
            return Literal(value, candidate)
    if sql_type is not None:
        raise _invalid(sql_type.name, text)
    return _decimal(Decimal(value), text)


def _decimal(value: Decimal, text: str) -> Literal:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    unscaled_digits = len(str(int("".join(map(str, digits))) or 0)) + max(exponent, 0)
    precision = max(unscaled_digits, scale)
    if precision > MAX_PRECISION:
        raise _invalid("DECIMAL", text)
    return Literal(value.quantize(Decimal(1)) if exponent > 0 else value, decimal(precision, scale))


def date(text: str) -> Literal:
    """Return the constant of ``DATE'...'``.

    Raises:
        SqlError: ``INVALID_LITERAL``.
    """
    days = texts.parse_date(text)
    if days is None:
        raise _invalid("DATE", text)
    return Literal(days, DATE)


def timestamp(text: str, session: Session) -> Literal:
    """Return the constant of ``TIMESTAMP'...'``: an instant, read in the session's zone unless the text names one.

    Raises:
        SqlError: ``INVALID_LITERAL``.
    """
    instant = texts.parse_instant(text, session.time_zone)
    if instant is None:
        if texts.is_time_of_day(text):
            message = f"{text!r} has no date, and today's date would not stay the same: write a date before the time."
            raise SqlError("INVALID_LITERAL", message, {"near": text})
        raise _invalid("TIMESTAMP", text)
    return Literal(instant, TIMESTAMP)


def timestamp_ntz(text: str) -> Literal:
    """Return the constant of ``TIMESTAMP_NTZ'...'``.

    Raises:
        SqlError: ``INVALID_LITERAL``.
    """
    local = texts.parse_timestamp(text)
    if local is None or local[1] is not None:
        raise _invalid("TIMESTAMP_NTZ", text)
    return Literal(local[0], TIMESTAMP_NTZ)


def timestamp_ltz(text: str, session: Session) -> Literal:
    """Return the constant of ``TIMESTAMP_LTZ'...'``.

    Raises:
        SqlError: ``INVALID_LITERAL``.
    """
    return timestamp(text, session)


def binary(text: str) -> Literal:
    """Return the constant of ``X'...'``.

    Raises:
        SqlError: ``INVALID_LITERAL``.
    """
    try:
        return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), BINARY)
    except ValueError:
        raise _invalid("BINARY", text) from None


def interval(value: str, unit: str, negative: bool = False) -> Literal:
    """Return the constant of ``INTERVAL 'value' UNIT`` or ``INTERVAL value UNIT``.

    Args:
        value: a number; with two units the fields between them (``1 12:30:00`` for ``DAY TO SECOND``).
        unit: ``YEAR``, ``MONTHS``, ``DAY``, ``WEEK``, ``HOUR`` ... or two joined by `` TO ``.
        negative: whether a minus stands before the interval.

    Raises:
        SqlError: ``INVALID_LITERAL``.

    Example:
        >>> interval("90", "MINUTE").value
        5400000000
    """
    sign = -1 if negative else 1
    unit = " TO ".join(part.strip().removesuffix("S") for part in unit.upper().split(" TO "))
    value = value.strip()
    if unit in _MONTHS and re.fullmatch(r"[+-]?\d+", value):
        return Literal(sign * int(value) * _MONTHS[unit], INTERVAL_YEAR_MONTH)
    if unit in _MICROSECONDS and re.fullmatch(r"[+-]?\d+" + (r"(\.\d{0,9})?" if unit == "SECOND" else ""), value):
        # A date plus whole days stays a date; plus hours it becomes a timestamp, were they 24: the type must tell.
        sql_type = INTERVAL_DAYS if unit in ("DAY", "WEEK") else INTERVAL_DAY_TIME
        return Literal(sign * int(Decimal(value) * _MICROSECONDS[unit]), sql_type)
    if unit == "YEAR TO MONTH" and (match := re.fullmatch(r"([+-]?)(\d+)-(\d{1,2})", value)) and int(match[3]) < 12:
        inner = -1 if match[1] == "-" else 1
        return Literal(sign * inner * (int(match[2]) * 12 + int(match[3])), INTERVAL_YEAR_MONTH)
    total = _microseconds(value, unit)
    if total is not None:
        return Literal(sign * total, INTERVAL_DAY_TIME)
    raise _invalid("INTERVAL", f"{value} {unit}")


def _microseconds(value: str, unit: str) -> int | None:
    """Return an interval of several fields, such as ``1 12:30`` for ``DAY TO MINUTE``; None where it is none."""
    names = list(_DAY_TIME)
    first, _, last = unit.partition(" TO ")
    if first not in names or last not in names[names.index(first) + 1 :]:
        return None
    fields = names[names.index(first) : names.index(last) + 1]
    pattern = r"([+-]?)(\d+)" + "".join(rf"{_DAY_TIME[name][0]}(\d{{1,2}})" for name in fields[1:])
    match = re.fullmatch(pattern + (r"(?:\.(\d{1,9}))?" if last == "SECOND" else ""), value)
    if match is None:
        return None
    numbers = [int(match[i + 2]) for i in range(len(fields))]
    if any(number >= _DAY_TIME[name][1] for number, name in zip(numbers[1:], fields[1:], strict=True)):
        return None
    total = sum(number * _MICROSECONDS[name] for number, name in zip(numbers, fields, strict=True))
    if last == "SECOND":
        total += int((match[len(fields) + 2] or "0").ljust(6, "0")[:6])
    return -total if match[1] == "-" else total
