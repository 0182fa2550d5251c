"""Functions of dates and times, in the session's time zone and the proleptic Gregorian calendar.

Patterns (DATE_FORMAT, TO_DATE with a format) are not portable: they are Java's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.function import always, kernel, make, rule, under_ansi
from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY, civil, days_from_civil, month_length
from viewkeeper.expressions.implicit import accept, check_count, types_of
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import (
    Evaluated,
    Mask,
    Operand,
    Vector,
    all_valid,
    blank,
    column,
    failing,
    numbers,
    validity,
)
from viewkeeper.expressions.zones import is_known, offset_microseconds, to_local, to_utc
from viewkeeper.zset.schema import (
    BIGINT,
    DATE,
    INT,
    INTERVAL_DAY_TIME,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
)

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_DATE_FIELDS = {
    "year": "year", "month": "month", "day": "day", "dayofmonth": "day", "quarter": "quarter",
    "dayofweek": "dayofweek", "weekday": "weekday", "dayofyear": "dayofyear", "weekofyear": "weekofyear",
}  # fmt: skip
_TIME_FIELDS = ("hour", "minute", "second")
_UNITS = {
    "YEAR": "YEAR", "YYYY": "YEAR", "YY": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "MON": "MONTH", "MM": "MONTH",
    "WEEK": "WEEK", "DAY": "DAY", "DD": "DAY", "HOUR": "HOUR", "MINUTE": "MINUTE", "SECOND": "SECOND",
    "MILLISECOND": "MILLISECOND", "MICROSECOND": "MICROSECOND",
}  # fmt: skip
_DATE_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK")
_LENGTH = {
    "DAY": MICROSECONDS_A_DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1000, "MICROSECOND": 1,
}  # fmt: skip
_THURSDAY = 4
_HALF_RANGE = 2.0**62  # microseconds that have wrapped are 2^64 away from the true ones


def _zone(function: str, session: Session) -> str:
    if not is_known(session.time_zone):
        raise NotPortable(function, f"time zone {session.time_zone}")
    return session.time_zone


@rule(*_DATE_FIELDS)
def _date_field_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    return make(_DATE_FIELDS[function], [accept(function, arguments[0], session, DATE)], INT)


@rule(*_TIME_FIELDS)
def _time_field_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    argument = accept(function, arguments[0], session, TIMESTAMP, TIMESTAMP_NTZ)
    zone = _zone(function, session) if argument.type == TIMESTAMP else "UTC"
    return make(function, [argument], INT, time_zone=zone)


@rule("date_add", "date_sub", "dateadd")
def _date_add_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    start = accept(function, arguments[0], session, DATE)
    if arguments[1].type.is_numeric and arguments[1].type not in (INT, SMALLINT, TINYINT):
        raise mismatch(function, types_of(arguments), "the days are INT, SMALLINT or TINYINT")
    days = accept(function, arguments[1], session, INT, SMALLINT, TINYINT)
    return make("date_sub" if function == "date_sub" else "date_add", [start, days], DATE)


@rule("datediff", "date_diff")
def _datediff_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    return make("datediff", [accept(function, a, session, DATE) for a in arguments], INT)


@rule("add_months")
def _add_months_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    pair = [accept(function, arguments[0], session, DATE), accept(function, arguments[1], session, INT)]
    return make(function, pair, DATE)


@rule("last_day", "unix_date")
def _last_day_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if function == "unix_date" and arguments[0].type != DATE:
        raise NotPortable(function, f"{arguments[0].type} argument")
    return make(function, [accept(function, arguments[0], session, DATE)], DATE if function == "last_day" else INT)


def _unit(function: str, argument: Expression) -> str | None:
    if not isinstance(argument, Literal) or argument.type != STRING or argument.value is None:
        raise NotPortable(function, "a unit that is not a string constant")
    return _UNITS.get(str(argument.value).upper())


@rule("trunc")
def _trunc_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    unit = _unit(function, arguments[1])
    start = accept(function, arguments[0], session, DATE)
    if unit not in _DATE_UNITS:
        raise NotPortable(function, "a unit other than YEAR, QUARTER, MONTH, WEEK")
    return make(function, [start], DATE, True, unit=unit)


@rule("date_trunc")
def _date_trunc_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    unit = _unit(function, arguments[0])
    if unit is None:
        raise NotPortable(function, "an unknown unit")
    instant = accept(function, arguments[1], session, TIMESTAMP)
    return make(function, [instant], TIMESTAMP, True, unit=unit, time_zone=_zone(function, session))


@rule("to_date", "date", "to_timestamp", "timestamp")
def _to_date_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    if len(arguments) == 2:
        raise NotPortable(function, "a format")
    check_count(function, arguments, 1, 1)
    if arguments[0].type.name not in ("STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "VOID"):
        raise NotPortable(function, f"{arguments[0].type} argument")
    return cast(arguments[0], DATE if function in ("to_date", "date") else TIMESTAMP, session)


@rule("make_date")
def _make_date_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 3, 3)
    parts = [accept(function, a, session, INT) for a in arguments]
    return make(function, parts, DATE, None if session.ansi else True, ansi=session.ansi)


@rule("unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros")
def _unix_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    if len(arguments) != 1 or not session.ansi:
        raise NotPortable(function, "other than one argument in ANSI mode")
    argument = arguments[0]
    parses = function in ("unix_timestamp", "to_unix_timestamp")
    if argument.type != TIMESTAMP and not (parses and argument.type == DATE):
        raise NotPortable(function, f"{argument.type} argument")
    return make("unix_timestamp" if parses else function, [accept(function, argument, session, TIMESTAMP)], BIGINT)


@rule("timestamp_seconds", "timestamp_millis", "timestamp_micros", "date_from_unix_date")
def _from_unix_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if not arguments[0].type.is_integer:
        raise NotPortable(function, f"{arguments[0].type} argument")
    if function == "date_from_unix_date":
        return make(function, [accept(function, arguments[0], session, INT)], DATE)
    return make(function, [cast(arguments[0], BIGINT, session)], TIMESTAMP)


@rule("from_utc_timestamp", "to_utc_timestamp")
def _shift_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    zone = arguments[1]
    if not isinstance(zone, Literal) or not isinstance(zone.value, str) or not is_known(zone.value):
        raise NotPortable(function, "a time zone that is not a known constant")
    return make(function, [accept(function, arguments[0], session, TIMESTAMP)], TIMESTAMP, time_zone=zone.value)


@rule("add_temporal", "subtract_temporal")
def _temporal_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    """Type ``+`` and ``-`` where an operand is a date, a time or an interval."""
    one, other = arguments
    minus = function.startswith("subtract")
    if not minus and (one.type.name.startswith("INTERVAL") or one.type.is_integer):
        one, other = other, one
    names = (one.type.name, other.type.name)
    if one.type == DATE and other.type.name in ("INT", "SMALLINT", "TINYINT"):
        return make("date_sub" if minus else "date_add", [one, other], DATE)
    if one.type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ") and names[1].startswith("INTERVAL"):
        return _plus_interval(one, other, minus, session)
    instants = ("TIMESTAMP", "TIMESTAMP_NTZ")
    if minus and names[0] == names[1] and names[0] in instants:
        zone = _zone(function, session) if one.type == TIMESTAMP else "UTC"
        return make("subtract_timestamps", [one, other], INTERVAL_DAY_TIME, time_zone=zone)
    if names in (("DATE", "DATE"), ("DATE", "STRING"), ("STRING", "DATE")) or set(names) <= {*instants, "DATE"}:
        raise NotPortable(function, f"{names[0]} beside {names[1]}")
    if any(n.startswith("INTERVAL") or n in ("STRING", "VOID") for n in names):
        raise NotPortable(function, f"{names[0]} beside {names[1]}")
    raise mismatch(function.removesuffix("_temporal"), types_of(arguments), "it takes numbers, dates or intervals")


def _plus_interval(start: Expression, interval: Expression, minus: bool, session: Session) -> Expression:
    by_month = interval.type.name == "INTERVAL_YEAR_MONTH"
    if start.type == DATE and not by_month:
        if interval.type.field_names == ("DAY",):
            return make("date_plus_days", [start, interval], DATE, minus=minus)
        start = cast(start, TIMESTAMP, session)
    zone = _zone("add", session) if start.type == TIMESTAMP else "UTC"
    name = "plus_months" if by_month else "plus_duration"
    return make(name, [start, interval], start.type, minus=minus, time_zone=zone)


def date_field(name: str, days: Vector) -> Vector:
    """Return a field of each day: ``year``, ``quarter``, ``dayofweek`` (Sunday is 1), ``weekday`` (Monday is 0) ..."""
    days = days.astype(np.int64)
    if name == "dayofweek":
        return np.asarray((days + 4) % 7 + 1)
    if name == "weekday":
        return np.asarray((days + 3) % 7)
    if name == "weekofyear":
        thursday = days - (days + 3) % 7 + _THURSDAY - 1
        return np.asarray((thursday - days_from_civil(civil(thursday)[0], 1, 1)) // 7 + 1)
    year, month, day = civil(days)
    if name == "dayofyear":
        return np.asarray(days - days_from_civil(year, 1, 1) + 1)
    return {"year": year, "month": month, "day": day, "quarter": (month + 2) // 3}[name]


@kernel(*dict.fromkeys(_DATE_FIELDS.values()))
def _date_field(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    values = date_field(call.function, numbers(operands[0], DATE))
    return Evaluated(column(values, INT, validity(operands[0]), length))


@kernel(*_TIME_FIELDS)
def _time_field(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    local = to_local(numbers(operands[0], TIMESTAMP), str(call.option("time_zone")))
    span = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}[call.function]
    return Evaluated(column(local // span[0] % span[1], INT, validity(operands[0]), length))


@kernel("date_add", "date_sub")
def _date_add(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    days = numbers(operands[0], DATE).astype(np.int64)
    change = numbers(operands[1], call.arguments[1].type).astype(np.int64)
    moved = days + change if call.function == "date_add" else days - change
    return Evaluated(column(moved.astype(np.int32), DATE, all_valid(*operands), length))


@kernel("date_plus_days")
def _date_plus_days(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    change = numbers(operands[1], INTERVAL_DAY_TIME) // MICROSECONDS_A_DAY
    moved = numbers(operands[0], DATE).astype(np.int64) + (-change if call.option("minus") else change)
    return Evaluated(column(moved.astype(np.int32), DATE, all_valid(*operands), length))


@kernel("datediff")
def _datediff(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    end, start = (numbers(o, DATE).astype(np.int64) for o in operands)
    return Evaluated(column((end - start).astype(np.int32), INT, all_valid(*operands), length))


def plus_months(days: Vector, months: Vector) -> Vector:
    """Return the day ``months`` later, or the month's last one where it has no such day."""
    year, month, day = civil(days)
    count = year * 12 + month - 1 + months
    year, month = count // 12, count % 12 + 1
    result: Vector = days_from_civil(year, month, np.minimum(day, month_length(year, month)))
    return result


def _dates(values: Vector, valid: Mask | np.bool_, length: int) -> Evaluated:
    values = np.broadcast_to(values, (length,))
    bad = (values != values.astype(np.int32)) & valid
    days = blank(column(values.astype(np.int32), DATE, valid, length), bad)
    return Evaluated(days, failing(bad, "DATETIME_OVERFLOW"))


@kernel("add_months", raises=always)
def _add_months(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    days, months = numbers(operands[0], DATE), numbers(operands[1], INT).astype(np.int64)
    return _dates(plus_months(days, months), all_valid(*operands), length)


@kernel("last_day")
def _last_day(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    year, month, _ = civil(numbers(operands[0], DATE))
    values = days_from_civil(year, month, month_length(year, month))
    return Evaluated(column(values.astype(np.int32), DATE, validity(operands[0]), length))


@kernel("unix_date", "date_from_unix_date")
def _unix_date(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(column(numbers(operands[0], DATE), call.type, validity(operands[0]), length))


def truncate_days(days: Vector, unit: str) -> Vector:
    """Return the first day of the year, quarter, month or ISO week of each day."""
    days = days.astype(np.int64)
    if unit == "WEEK":
        return np.asarray(days - (days + 3) % 7)
    year, month, _ = civil(days)
    first = {"YEAR": np.ones_like(month), "QUARTER": (month - 1) // 3 * 3 + 1, "MONTH": month}[unit]
    result: Vector = days_from_civil(year, first, 1)
    return result


@kernel("trunc")
def _trunc(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    values = truncate_days(numbers(operands[0], DATE), str(call.option("unit")))
    return Evaluated(column(values.astype(np.int32), DATE, validity(operands[0]), length))


def resolve_local(local: Vector, offset: Vector, zone: str) -> Vector:
    """Return the instant of each local time, keeping the offset that it had where that is valid still."""
    kept = local - offset
    return np.where(offset_microseconds(kept, zone) == offset, kept, to_utc(local, zone))


@kernel("date_trunc")
def _date_trunc(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    instants, zone, unit = numbers(operands[0], TIMESTAMP), str(call.option("time_zone")), str(call.option("unit"))
    local = to_local(instants, zone)
    if unit in _DATE_UNITS:
        values = to_utc(truncate_days(local // MICROSECONDS_A_DAY, unit) * MICROSECONDS_A_DAY, zone)
    elif unit in ("DAY", "HOUR", "MINUTE"):
        values = resolve_local(local - local % _LENGTH[unit], local - instants, zone)
    else:
        values = instants - instants % _LENGTH[unit]
    return Evaluated(column(values, TIMESTAMP, validity(operands[0]), length))


@kernel("make_date", raises=under_ansi)
def _make_date(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    valid = all_valid(*operands)
    year, month, day = (np.broadcast_to(numbers(o, INT), (length,)).astype(np.int64) for o in operands)
    right = (month >= 1) & (month <= 12)
    safe_month = np.where(right, month, 1)
    right &= (day >= 1) & (day <= month_length(year, safe_month))
    days = days_from_civil(year, safe_month, np.where(right, day, 1))
    right &= days == days.astype(np.int32)
    bad = ~right & valid
    result = blank(column(days.astype(np.int32), DATE, valid, length), bad)
    return Evaluated(result, failing(bad, "DATETIME_FIELD_OUT_OF_BOUNDS") if call.option("ansi") else None)


@kernel("unix_timestamp")
def _unix_timestamp(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    # Unlike UNIX_SECONDS this one rounds towards zero.
    instants = numbers(operands[0], TIMESTAMP)
    seconds = np.where(instants < 0, -(-instants // 1_000_000), instants // 1_000_000)
    return Evaluated(column(seconds, BIGINT, validity(operands[0]), length))


@kernel("unix_seconds", "unix_millis", "unix_micros")
def _unix(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    divisor = {"unix_seconds": 1_000_000, "unix_millis": 1000, "unix_micros": 1}[call.function]
    return Evaluated(column(numbers(operands[0], TIMESTAMP) // divisor, BIGINT, validity(operands[0]), length))


def _not_micros(call: Call) -> bool:
    return call.function != "timestamp_micros"


@kernel("timestamp_seconds", "timestamp_millis", "timestamp_micros", raises=_not_micros)
def _from_unix(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    factor = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}[call.function]
    values = np.broadcast_to(numbers(operands[0], BIGINT), (length,))
    with np.errstate(over="ignore"):
        product = values * factor
    bad = (product // factor != values) & validity(operands[0])
    result = blank(column(product, TIMESTAMP, validity(operands[0]), length), bad)
    return Evaluated(result, failing(bad, "DATETIME_OVERFLOW"))


@kernel("from_utc_timestamp", "to_utc_timestamp")
def _shift(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    move: Callable[[Vector, str], Vector] = to_local if call.function == "from_utc_timestamp" else to_utc
    values = move(numbers(operands[0], TIMESTAMP), str(call.option("time_zone")))
    return Evaluated(column(values, TIMESTAMP, validity(operands[0]), length))


def in_range(values: Vector, about: Vector, sql_type: SqlType, valid: Mask | np.bool_, length: int) -> Evaluated:
    """Return microseconds; rows whose true value, near ``about``, is beyond 64 bits have failed.

    Args:
        values: the microseconds, which may have wrapped by a multiple of 2^64.
        about: their true values as floats, right to within a day.
        sql_type: the type of the result.
        valid: where it is not NULL.
        length: of the column.
    """
    values, about = (np.broadcast_to(v, (length,)) for v in (values, about))
    bad = (np.abs(values.astype(np.float64) - about) > _HALF_RANGE) & valid
    return Evaluated(blank(column(values, sql_type, valid, length), bad), failing(bad, "DATETIME_OVERFLOW"))


@kernel("subtract_timestamps", raises=always)
def _subtract_timestamps(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    zone = str(call.option("time_zone"))
    end, start = (to_local(numbers(o, TIMESTAMP), zone) for o in operands)
    with np.errstate(over="ignore"):
        span = end - start
    about = end.astype(np.float64) - start.astype(np.float64)
    return in_range(span, about, INTERVAL_DAY_TIME, all_valid(*operands), length)


@kernel("plus_months", raises=always)
def _plus_months(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    valid = all_valid(*operands)
    months = numbers(operands[1], call.arguments[1].type).astype(np.int64)
    months = -months if call.option("minus") else months
    if call.type == DATE:
        return _dates(plus_months(numbers(operands[0], DATE), months), valid, length)
    instants, zone = numbers(operands[0], TIMESTAMP), str(call.option("time_zone"))
    with np.errstate(over="ignore"):
        # The local time itself may be beyond 64 bits: its days and its time of day are not.
        offset = to_local(instants, zone) - instants
        time_of_day = instants % MICROSECONDS_A_DAY + offset
        moved_days = plus_months(instants // MICROSECONDS_A_DAY + time_of_day // MICROSECONDS_A_DAY, months)
        moved = moved_days * MICROSECONDS_A_DAY + time_of_day % MICROSECONDS_A_DAY
        resolved = resolve_local(moved, offset, zone)
    about = np.asarray(moved_days, np.float64) * MICROSECONDS_A_DAY
    return in_range(resolved, about, call.type, valid, length)


@kernel("plus_duration", raises=always)
def _plus_duration(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    valid = all_valid(*operands)
    duration = numbers(operands[1], INTERVAL_DAY_TIME)
    duration = -duration if call.option("minus") else duration
    instants, zone = numbers(operands[0], TIMESTAMP), str(call.option("time_zone"))
    days = np.sign(duration) * (np.abs(duration) // MICROSECONDS_A_DAY)
    local = to_local(instants, zone)
    with np.errstate(over="ignore"):
        moved = resolve_local(local + days * MICROSECONDS_A_DAY, local - instants, zone)
        values = moved + (duration - days * MICROSECONDS_A_DAY)
    about = instants.astype(np.float64) + duration.astype(np.float64)
    return in_range(values, about, call.type, valid, length)
