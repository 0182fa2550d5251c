"""Texts to values and back, in the formats that Spark's CAST reads and writes.

Source: Spark 4.3, ``Cast``, ``UTF8String.toLong``, ``SparkDateTimeUtils.stringToDate`` and ``parseTimestampString``;
``java.lang.Double.valueOf``, ``java.math.BigDecimal(String)``. A parser returns None for what Spark refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY, civil, days_from_civil, month_length
from viewkeeper.expressions.vectors import Mask, Vector
from viewkeeper.expressions.zones import is_known, to_utc

BLANKS = "".join(map(chr, range(33)))
_ALL_BLANKS = BLANKS + "\x7f"
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DOUBLE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?\Z")
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\Z", re.DOTALL)
_TIME_OF_DAY = re.compile(r"T?(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::|\Z| ?[A-Za-z+-])")
_TIMESTAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?\Z",
    re.DOTALL,
)
T = TypeVar("T")
_INFINITY = float("inf")
_SPECIAL = {
    "inf": _INFINITY, "+inf": _INFINITY, "infinity": _INFINITY, "+infinity": _INFINITY,
    "-inf": -_INFINITY, "-infinity": -_INFINITY, "nan": float("nan"),
}  # fmt: skip
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
_LONGEST_EXPONENT = 10


def parse_integer(text: str) -> int | None:
    """Return the BIGINT that ``text`` spells."""
    text = text.strip(_ALL_BLANKS)
    if not _INTEGER.match(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    value = int(text) if len(digits) < 20 else 1 << 64
    return value if -(1 << 63) <= value < 1 << 63 else None


def parse_double(text: str) -> float | None:
    """Return the DOUBLE that ``text`` spells; Java's suffixes and hexadecimal form included."""
    text = text.strip(BLANKS)
    match = _DOUBLE.match(text)
    if match:
        return float(match[1])
    if text in ("+NaN", "-NaN"):
        return float("nan")
    hexadecimal = _HEX_DOUBLE.match(text)
    if hexadecimal:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -_INFINITY if text.startswith("-") else _INFINITY
    return _SPECIAL.get(text.lower())


def parse_decimal(text: str) -> Decimal | None:
    """Return the number that ``text`` spells, with all its digits."""
    text = text.strip(BLANKS)
    if not _DECIMAL.match(text):
        return None
    exponent = re.split("[eE]", text)[1:]
    if exponent and len(exponent[0].lstrip("+-")) > _LONGEST_EXPONENT:
        return None
    return Decimal(text)


def whole_digits(number: Decimal) -> int:
    """Return how many digits ``number`` has before the point, by Java's precision less scale: 0e50 has 51."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return len(digits) + exponent


def unscaled_half_up(number: Decimal, scale: int) -> int:
    """Return ``number`` as unscaled integer at ``scale``, rounded half up; 10**39 where it is beyond any DECIMAL."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if not any(digits) or len(digits) + exponent < -scale:
        return 0
    if len(digits) + exponent > 39:
        return -(10**39) if sign else 10**39
    unscaled = int("".join(map(str, digits)))
    shift = exponent + scale
    if shift >= 0:
        unscaled *= int(10**shift)
    else:
        divisor = int(10**-shift)
        quotient, rest = divmod(unscaled, divisor)
        unscaled = quotient + (2 * rest >= divisor)
    return -unscaled if sign else unscaled


def parse_boolean(text: str) -> bool | None:
    """Return the BOOLEAN that ``text`` spells."""
    text = text.strip(_ALL_BLANKS).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def parse_date(text: str) -> int | None:
    """Return the day number of ``[+-]yyyy[-m[-d[Tanything]]]``."""
    match = _DATE.match(text.strip(_ALL_BLANKS))
    if match is None:
        return None
    sign, year, month, day = match[1], int(match[2]), int(match[3] or 1), int(match[4] or 1)
    return _day_number(-year if sign == "-" else year, month, day)


def _day_number(year: int, month: int, day: int) -> int | None:
    if not 1 <= month <= 12 or not 1 <= day <= int(month_length(year, month)):
        return None
    days: int = days_from_civil(year, month, day)
    in_range: bool = -(1 << 31) <= days < 1 << 31
    return days if in_range else None


def parse_timestamp(text: str) -> tuple[int, str | None] | None:
    """Return local microseconds and the zone that ``text`` names, None for the session's.

    A text with a time of day alone, which Spark completes by the current date, is refused: it has no fixed value.
    """
    match = _TIMESTAMP.match(text.strip(_ALL_BLANKS))
    if match is None:
        return None
    year = -int(match[2]) if match[1] == "-" else int(match[2])
    days = _day_number(year, int(match[3] or 1), int(match[4] or 1))
    hour, minute, second = int(match[5] or 0), int(match[6] or 0), int(match[7] or 0)
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int(((match[8] or "") + "000000")[:6])
    zone = match[9]
    if zone is not None:
        zone = zone.strip(BLANKS)
        if not is_known(zone):
            return None
    microseconds = days * MICROSECONDS_A_DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return (microseconds, zone) if -(1 << 63) <= microseconds < 1 << 63 else None


def is_time_of_day(text: str) -> bool:
    """Return whether ``text`` is a time of day without a date, which Spark completes by the current date.

    Example:
        >>> is_time_of_day("12:30"), is_time_of_day("T9:05:00.5"), is_time_of_day("2024-01-01 12:30")
        (True, True, False)
    """
    return _TIME_OF_DAY.match(text.strip(_ALL_BLANKS)) is not None


def parse_instant(text: str, zone: str) -> int | None:
    """Return the TIMESTAMP that ``text`` spells in session time zone ``zone``."""
    found = parse_timestamp(text)
    if found is None:
        return None
    return int(to_utc(np.array(found[0], dtype=np.int64), found[1] or zone))


def parse_local(text: str) -> int | None:
    """Return the TIMESTAMP_NTZ that ``text`` spells; a zone in it is read and ignored."""
    found = parse_timestamp(text)
    return None if found is None else found[0]


def parse_column(texts: pa.Array, parse: Callable[[str], T | None], default: T) -> tuple[list[T], Mask]:
    """Return the parsed value of each row, each distinct text parsed once, and the mask of rows that were refused.

    Args:
        texts: STRING column; the value under NULL is ``default`` and not refused.
        parse: one of the parsers.
        default: what stands where nothing can.
    """
    encoded = texts.dictionary_encode()
    parsed = [parse(text) for text in encoded.dictionary.to_pylist()]
    values = [default if value is None else value for value in parsed]
    refused = np.array([value is None for value in parsed] + [False])
    codes = encoded.indices.fill_null(len(parsed)).to_numpy(zero_copy_only=False)
    values.append(default)
    return [values[code] for code in codes], refused[codes]


def format_dates(days: Vector) -> list[str]:
    """Return each day as ``yyyy-MM-dd``; years of more than four digits carry a sign."""
    years, months, day_numbers = civil(days)
    rows = zip(years.tolist(), months.tolist(), day_numbers.tolist(), strict=True)
    return [f"{_year(year)}-{month:02d}-{day:02d}" for year, month, day in rows]


def _year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"+{year}" if year > 0 else f"-{-year:04d}"


def format_timestamps(local: Vector) -> list[str]:
    """Return each local time as ``yyyy-MM-dd HH:mm:ss`` with as many digits of the second as needed."""
    days = local // MICROSECONDS_A_DAY
    result = []
    for date, rest in zip(format_dates(days), (local - days * MICROSECONDS_A_DAY).tolist(), strict=True):
        seconds, fraction = divmod(rest, 1_000_000)
        tail = f".{fraction:06d}".rstrip("0") if fraction else ""
        result.append(f"{date} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}")
    return result


def format_decimals(values: Vector, scale: int) -> list[str]:
    """Return unscaled integers as plain decimal texts, never with an exponent."""
    if scale == 0:
        return [str(value) for value in values.tolist()]
    result = []
    for value in values.tolist():
        digits = str(abs(value)).rjust(scale + 1, "0")
        result.append(f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}")
    return result
