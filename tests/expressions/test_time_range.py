"""Times at the ends of their range: the true value, or an error of that row; never a value that has wrapped."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from viewkeeper.expressions.evaluate import can_raise, evaluate
from viewkeeper.expressions.gregorian import civil, days_from_civil
from viewkeeper.expressions.literals import interval
from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Session
from viewkeeper.zset.schema import DATE, TIMESTAMP, TIMESTAMP_NTZ, SqlType

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_MOMENTS = [
    edge + step for edge in (_LOWEST, 0, _HIGHEST) for step in (0, 1, -1, _HOUR, -_HOUR, 3 * _DAY, -3 * _DAY)
    if _LOWEST <= edge + step <= _HIGHEST
]  # fmt: skip
_DURATIONS = {
    ("1", "MICROSECOND"): 1, ("1", "HOUR"): _HOUR, ("1", "DAY"): _DAY, ("2", "DAY"): 2 * _DAY,
    ("106751991", "DAY"): 106_751_991 * _DAY,
}  # fmt: skip
_MONTHS = {("1", "MONTH"): 1, ("200000", "YEAR"): 2_400_000, ("600000", "YEAR"): 7_200_000}


def _computed(function: str, sql_type: SqlType, span: tuple[str, str], zone: str) -> list[int | str]:
    session = Session(zone)
    expression = resolve(function, (ColumnRef(0, sql_type), interval(*span)), session)
    assert can_raise(expression)
    arrow = pa.timestamp("us", tz="UTC") if sql_type == TIMESTAMP else pa.timestamp("us")
    batch = pa.record_batch([pa.array(_MOMENTS, pa.int64()).cast(arrow)], names=["t"])
    outcome = evaluate(expression, batch, session)
    values = outcome.values.cast(pa.int64()).to_pylist()
    if outcome.errors is None:
        return values
    return [r if r is not None else v for v, r in zip(values, outcome.errors.reasons.tolist(), strict=True)]


@pytest.mark.parametrize("sql_type", [TIMESTAMP, TIMESTAMP_NTZ], ids=str)
@pytest.mark.parametrize(("span", "microseconds"), _DURATIONS.items(), ids=str)
def test_a_duration_beyond_the_range_is_an_error(sql_type: SqlType, span: tuple[str, str], microseconds: int) -> None:
    for function, sign in (("add", 1), ("subtract", -1)):
        true = [moment + sign * microseconds for moment in _MOMENTS]
        expected = [value if _LOWEST <= value <= _HIGHEST else "DATETIME_OVERFLOW" for value in true]
        assert _computed(function, sql_type, span, "UTC") == expected


@pytest.mark.parametrize(
    ("span", "zone"), list(product([*_DURATIONS, *_MONTHS], ["America/New_York", "+05:30"])), ids=str
)
def test_in_other_zones_nothing_wraps(span: tuple[str, str], zone: str) -> None:
    length = _DURATIONS[span] if span in _DURATIONS else _MONTHS[span] * 30.436875 * _DAY
    slack = 4 * _DAY
    for function, sign in (("add", 1), ("subtract", -1)):
        for moment, value in zip(_MOMENTS, _computed(function, TIMESTAMP, span, zone), strict=True):
            true = moment + sign * length
            if value == "DATETIME_OVERFLOW":
                assert not _LOWEST + slack < true < _HIGHEST - slack
            else:
                assert isinstance(value, int)
                assert abs(value - true) < slack


@pytest.mark.parametrize(("span", "months"), _MONTHS.items(), ids=str)
def test_months_beyond_the_range_are_an_error(span: tuple[str, str], months: int) -> None:
    for function, sign in (("add", 1), ("subtract", -1)):
        for moment, value in zip(_MOMENTS, _computed(function, TIMESTAMP_NTZ, span, "UTC"), strict=True):
            year, month, _ = (int(part) for part in civil(np.asarray(moment // _DAY)))
            count = year * 12 + month - 1 + sign * months
            first = int(days_from_civil(count // 12, count % 12 + 1, 1)) * _DAY
            if value == "DATETIME_OVERFLOW":
                assert not _LOWEST <= first <= _HIGHEST - 31 * _DAY
            else:
                assert isinstance(value, int)
                assert first <= value < first + 31 * _DAY


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_difference_beyond_the_range_is_an_error(zone: str) -> None:
    session = Session(zone)
    expression = resolve("subtract", (ColumnRef(0, TIMESTAMP), ColumnRef(1, TIMESTAMP)), session)
    ends = [_HIGHEST - 2 * _DAY, 0, _LOWEST + 2 * _DAY]
    pairs = list(product(ends, ends))
    arrow = pa.timestamp("us", tz="UTC")
    batch = pa.record_batch(
        [pa.array(side, pa.int64()).cast(arrow) for side in zip(*pairs, strict=True)], names=["a", "b"]
    )
    outcome = evaluate(expression, batch, session)
    assert outcome.errors is not None
    failed = [not _LOWEST <= a - b <= _HIGHEST for a, b in pairs]
    assert outcome.errors.rows.tolist() == failed
    values = outcome.values.cast(pa.int64()).to_pylist()
    assert all(
        v is None if bad else abs(v - (a - b)) <= _DAY for v, bad, (a, b) in zip(values, failed, pairs, strict=True)
    )


def test_a_date_that_a_timestamp_cannot_hold_is_an_error() -> None:
    session = Session()
    expression = resolve("add", (ColumnRef(0, DATE), interval("1", "HOUR")), session)
    batch = pa.record_batch([pa.array([0, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())], names=["d"])
    outcome = evaluate(expression, batch, session)
    assert outcome.errors is not None
    assert outcome.errors.reasons.tolist() == [None, "DATETIME_OVERFLOW", "DATETIME_OVERFLOW"]
    assert outcome.values.cast(pa.int64()).to_pylist() == [_HOUR, None, None]
