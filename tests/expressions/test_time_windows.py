"""Windows at the ends of 64 bits; all others are compared with Spark's arithmetic (test_against_spark.py)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from viewkeeper.expressions.evaluate import can_raise, evaluate
from viewkeeper.expressions.time_windows import WindowSpec, window_of, windows_of
from viewkeeper.expressions.tree import Call, ColumnRef, Session
from viewkeeper.zset.schema import TIMESTAMP_NTZ, to_arrow_type

HOUR = 3_600_000_000
GREATEST = 2**63 - 1
MOMENTS = (GREATEST, GREATEST - HOUR, 0, None, -GREATEST + 2 * HOUR, -GREATEST)
MOMENT = ColumnRef(0, TIMESTAMP_NTZ)


@pytest.mark.parametrize(
    ("call", "failing"),
    [
        (window_of(MOMENT, WindowSpec(HOUR, HOUR)), [True, False, False, False, False, True]),
        (windows_of(MOMENT, WindowSpec(2 * HOUR, HOUR)), [True, True, False, False, False, True]),
    ],
)
def test_windows_beyond_64_bits_fail(call: Call, failing: list[bool]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(MOMENTS, to_arrow_type(TIMESTAMP_NTZ))], names=["ts"])
    found = evaluate(call, batch, Session())
    assert can_raise(call)
    assert found.errors is not None
    assert found.errors.rows.tolist() == failing
    assert set(found.errors.reasons[found.errors.rows]) == {"DATETIME_OVERFLOW"}
    absent = [fails or moment is None for moment, fails in zip(MOMENTS, failing, strict=True)]
    assert found.values.is_null().to_pylist() == absent


def test_the_latest_window_stands_first() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([5, 6], to_arrow_type(TIMESTAMP_NTZ))], names=["ts"])
    made = evaluate(windows_of(MOMENT, WindowSpec(4, 3)), batch, Session())
    counted = made.values.flatten().flatten()
    assert [ends.cast(pa.int64()).to_pylist() for ends in counted] == [[3, 6, 3], [7, 10, 7]]
    assert made.values.value_lengths().to_pylist() == [1, 2]
