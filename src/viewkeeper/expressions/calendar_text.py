"""Dates and times as texts and names: DATE_FORMAT with plain patterns, DAYNAME, NEXT_DAY, and EXTRACT's seconds.

Source: Spark 4.3, ``DateFormatClass``, ``DayName``, ``MonthName``, ``NextDay``, ``MonthsBetween``,
``SecondWithFraction``; patterns are those of ``java.time.format.DateTimeFormatter``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.dates import date_field
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY, civil, month_length
from viewkeeper.expressions.implicit import accept, check_count
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import (
    Evaluated,
    Operand,
    Vector,
    all_valid,
    column,
    decimal_column,
    numbers,
    validity,
)
from viewkeeper.expressions.zones import is_known, to_local, to_utc
from viewkeeper.zset.schema import BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_NTZ, decimal

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_NAMES = {
    name: number
    for number, names in enumerate((
        ("MO", "MON", "MONDAY"), ("TU", "TUE", "TUESDAY"), ("WE", "WED", "WEDNESDAY"), ("TH", "THU", "THURSDAY"),
        ("FR", "FRI", "FRIDAY"), ("SA", "SAT", "SATURDAY"), ("SU", "SUN", "SUNDAY"),
    ))
    for name in names
}  # fmt: skip
_PARTS = re.compile(r"yyyy|MM|dd|HH|mm|ss|S{1,6}|[^A-Za-z'\[\]{}#\\]+")


def _zone(function: str, session: Session) -> str:
    if not is_known(session.time_zone):
        raise NotPortable(function, f"time zone {session.time_zone}")
    return session.time_zone


@rule("dayname", "monthname")
def _name_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(function, [accept(function, arguments[0], session, DATE)], STRING)


@kernel("dayname", "monthname")
def _name(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    days = np.broadcast_to(numbers(operands[0], DATE), (length,))
    by_day = call.function == "dayname"
    number = date_field("weekday", days) if by_day else date_field("month", days) - 1
    absent = ~np.broadcast_to(validity(operands[0]), (length,))
    return Evaluated(pa.array(_DAYS if by_day else _MONTHS).take(pa.array(number, pa.int64(), mask=absent)))


@rule("next_day")
def _next_day_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    name = arguments[1].value if isinstance(arguments[1], Literal) else None
    day = _DAY_NAMES.get(name.upper()) if isinstance(name, str) else None
    if day is None:
        raise NotPortable(function, "a day that is not the constant name of one")
    return make(function, [accept(function, arguments[0], session, DATE)], DATE, True, day=day)


@kernel("next_day")
def _next_day(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    days, wanted = numbers(operands[0], DATE).astype(np.int64), call.option("day")
    assert isinstance(wanted, int)
    moved = days + 1 + (wanted - date_field("weekday", days + 1)) % 7
    return Evaluated(column(moved.astype(np.int32), DATE, validity(operands[0]), length))


@rule("months_between")
def _months_between_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 3)
    rounds = arguments[2] if len(arguments) == 3 else Literal(True, BOOLEAN)
    if not isinstance(rounds, Literal) or not isinstance(rounds.value, bool):
        raise NotPortable(function, "rounding that is not a constant")
    moments = [accept(function, a, session, TIMESTAMP) for a in arguments[:2]]
    return make(function, moments, DOUBLE, time_zone=_zone(function, session), rounds=rounds.value)


@kernel("months_between")
def _months_between(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    zone = str(call.option("time_zone"))
    instants = [numbers(operand, TIMESTAMP) for operand in operands]
    days = [to_local(instant, zone) // MICROSECONDS_A_DAY for instant in instants]
    # Seconds that have gone by since the day began: another number than its clock shows where that was changed.
    since = [(at - to_utc(day * MICROSECONDS_A_DAY, zone)) // 1_000_000 for at, day in zip(instants, days, strict=True)]
    parts = list(zip(map(civil, days), since, strict=True))
    ((year, month, day), seconds), ((other_year, other_month, other_day), other_seconds) = parts
    months = (year - other_year) * 12 + month - other_month
    last = (day == month_length(year, month)) & (other_day == month_length(other_year, other_month))
    spread = (day - other_day) * 86_400 + seconds - other_seconds
    exact = months + spread / float(31 * 86_400)
    if call.option("rounds"):
        exact = np.floor(exact * 1e8 + 0.5) / 1e8
    values = np.where((day == other_day) | last, months.astype(np.float64), exact)
    return Evaluated(column(values, DOUBLE, all_valid(*operands), length))


@rule("second_with_fraction")
def _fraction_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    argument = accept(function, arguments[0], session, TIMESTAMP, TIMESTAMP_NTZ)
    zone = _zone(function, session) if argument.type == TIMESTAMP else "UTC"
    return make(function, [argument], decimal(8, 6), time_zone=zone)


@kernel("second_with_fraction")
def _fraction(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    local = to_local(numbers(operands[0], TIMESTAMP), str(call.option("time_zone")))
    return Evaluated(decimal_column(np.asarray(local % 60_000_000), call.type, validity(operands[0]), length)[0])


@rule("date_format")
def _format_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    pattern = arguments[1].value if isinstance(arguments[1], Literal) else None
    if not isinstance(pattern, str) or not pattern or "".join(_PARTS.findall(pattern)) != pattern:
        raise NotPortable(function, "a pattern of other parts than yyyy, MM, dd, HH, mm, ss, S")
    if arguments[0].type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise NotPortable(function, f"{arguments[0].type} argument")
    moment = accept(function, arguments[0], session, TIMESTAMP)
    return make(function, [moment], STRING, pattern=pattern, time_zone=_zone(function, session))


@kernel("date_format")
def _format(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    local = np.broadcast_to(to_local(numbers(operands[0], TIMESTAMP), str(call.option("time_zone"))), (length,))
    texts = [_written(part, local, length) for part in _PARTS.findall(str(call.option("pattern")))]
    joined = pc.binary_join_element_wise(*texts, "")
    absent = ~np.broadcast_to(validity(operands[0]), (length,))
    return Evaluated(pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), joined))


def _written(part: str, local: Vector, length: int) -> pa.Array:
    """Return one part of the pattern for each local time."""
    if not part[0].isalpha():
        return pa.repeat(pa.scalar(part), length)
    days, within = local // MICROSECONDS_A_DAY, local % MICROSECONDS_A_DAY
    if part == "yyyy":
        return pa.array([_year(int(year)) for year in date_field("year", days)], pa.string())
    if part[0] == "S":
        values, width = within % 1_000_000 // 10 ** (6 - len(part)), len(part)
    else:
        width = 2
        values = {
            "MM": lambda: date_field("month", days), "dd": lambda: date_field("day", days),
            "HH": lambda: within // 3_600_000_000, "mm": lambda: within // 60_000_000 % 60,
            "ss": lambda: within // 1_000_000 % 60,
        }[part]()  # fmt: skip
    texts = pc.cast(pa.array(np.asarray(values, dtype=np.int64)), pa.string())
    return pc.utf8_lpad(texts, width=width, padding="0")


def _year(year: int) -> str:
    """Return a year as Java's ``uuuu`` writes it: four digits, or more behind a plus."""
    if year > 9999:
        return f"+{year}"
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"
