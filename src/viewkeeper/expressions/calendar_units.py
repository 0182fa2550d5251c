"""TIMESTAMPADD and TIMESTAMPDIFF: DATEADD and DATEDIFF with a unit, in the session's time zone.

Source: Spark 4.3, ``DateTimeUtils.timestampAdd`` and ``timestampDiff``, ``java.time.LocalDateTime.until``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from viewkeeper.expressions.dates import plus_months, resolve_local
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import always, kernel, make, rule
from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY, civil
from viewkeeper.expressions.implicit import accept, check_count
from viewkeeper.expressions.tree import Call, Expression, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, Vector, all_valid, blank, column, failing, numbers
from viewkeeper.expressions.zones import is_known, to_local
from viewkeeper.zset.schema import BIGINT, TIMESTAMP, TIMESTAMP_NTZ

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MICROSECONDS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": MICROSECONDS_A_DAY, "WEEK": 7 * MICROSECONDS_A_DAY,
}  # fmt: skip
_BY_CLOCK = ("DAY", "WEEK")
"""Units that keep the time of day; hours and below are a time that goes by, also through a change of the clock."""
_YEARS_SAFE = 100_000
"""Moments further away than so many years are left to Spark, which decides where they end."""


def _zone(function: str, arguments: Arguments, session: Session) -> str:
    if not any(argument.type == TIMESTAMP for argument in arguments):
        return "UTC"
    if not is_known(session.time_zone):
        raise NotPortable(function, f"time zone {session.time_zone}")
    return session.time_zone


def _unit(function: str, options: Options) -> str:
    unit = str(options.get("unit"))
    if unit not in _MONTHS and unit not in _MICROSECONDS:
        raise NotPortable(function, f"the unit {unit}")
    return unit


@rule("timestampadd")
def _add_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    unit, count = _unit(function, options), arguments[0]
    if not count.type.is_integer or count.type == BIGINT or not session.ansi:
        raise NotPortable(function, f"a count of type {count.type}")
    moment = accept(function, arguments[1], session, TIMESTAMP, TIMESTAMP_NTZ)
    zone = _zone(function, (moment,), session)
    return make(function, [accept(function, count, session, BIGINT), moment], moment.type, unit=unit, time_zone=zone)


@rule("timestampdiff")
def _diff_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    unit = _unit(function, options)
    moments = [accept(function, argument, session, TIMESTAMP) for argument in arguments]
    return make(function, moments, BIGINT, unit=unit, time_zone=_zone(function, tuple(moments), session))


@kernel("timestampadd", raises=always)
def _add(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    unit, zone = str(call.option("unit")), str(call.option("time_zone"))
    count, instants = numbers(operands[0], BIGINT), numbers(operands[1], TIMESTAMP)
    valid = np.broadcast_to(all_valid(*operands), (length,))
    step = _MONTHS[unit] * 30 * MICROSECONDS_A_DAY if unit in _MONTHS else _MICROSECONDS[unit]
    reach = instants.astype(np.float64) + count.astype(np.float64) * step
    bad = np.broadcast_to(np.abs(reach) > _YEARS_SAFE * 366.0 * MICROSECONDS_A_DAY, (length,)) & valid
    safe = np.where(bad, 0, count)
    local = to_local(instants, zone)
    if unit in _MONTHS:
        days = local // MICROSECONDS_A_DAY
        moved = plus_months(days, safe * _MONTHS[unit]) * MICROSECONDS_A_DAY + (local - days * MICROSECONDS_A_DAY)
        result = resolve_local(moved, local - instants, zone)
    elif unit in _BY_CLOCK:
        result = resolve_local(local + safe * _MICROSECONDS[unit], local - instants, zone)
    else:
        result = instants + safe * _MICROSECONDS[unit]
    return Evaluated(blank(column(result, call.type, valid, length), bad), failing(bad, "DATETIME_OVERFLOW"))


@kernel("timestampdiff")
def _diff(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    unit, zone = str(call.option("unit")), str(call.option("time_zone"))
    start, end = (to_local(numbers(operand, TIMESTAMP), zone) for operand in operands)
    if unit in _MONTHS:
        values = _toward_zero(_whole_months(start, end), _MONTHS[unit])
    else:
        values = _toward_zero(end - start, _MICROSECONDS[unit])
    return Evaluated(column(values, BIGINT, all_valid(*operands), length))


def _toward_zero(values: Vector, divisor: int) -> Vector:
    return np.asarray(np.where(values < 0, -(-values // divisor), values // divisor))


def _whole_months(start: Vector, end: Vector) -> Vector:
    """Return the whole months between two local times: the end's day counts only once its time of day is reached."""
    first, last = start // MICROSECONDS_A_DAY, end // MICROSECONDS_A_DAY
    since, until = start % MICROSECONDS_A_DAY, end % MICROSECONDS_A_DAY
    last = last - ((last > first) & (until < since)) + ((last < first) & (until > since))
    packed = [(year * 12 + month - 1) * 32 + day for year, month, day in (civil(first), civil(last))]
    return _toward_zero(packed[1] - packed[0], 32)
