"""Payloads give back the very delta, and take no more room than its numbers need."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from viewkeeper.executors.spark.payload import ALIGNMENT, from_payload, to_payload
from viewkeeper.zset.delta import Delta

ENDS = [0, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1]


def same(delta: Delta) -> None:
    back = from_payload(to_payload(delta), delta.schema)
    assert back.rows.equals(delta.rows)
    assert back.schema.equals(delta.schema)
    assert back.weights.tolist() == delta.weights.tolist()


@pytest.mark.parametrize("end", [*ENDS, -(2**63)])
@pytest.mark.parametrize("rows", [1, 300])
def test_numbers_come_back(end: int, rows: int) -> None:
    values = np.zeros(rows, np.int64)
    values[-1] = end
    nulls = pa.array(values, mask=np.arange(rows) % 3 == 1)
    batch = pa.record_batch({"a": values, "b": nulls, "c": [f"é{i}" for i in range(rows)]})
    same(Delta(batch, values if end else np.ones(rows, np.int64)))


def test_slices_and_nulls_only_come_back() -> None:
    batch = pa.record_batch({"a": pa.nulls(600, pa.int64()), "b": np.arange(600), "d": np.arange(600) / 7})
    delta = Delta(batch, np.arange(600) - 300)
    same(delta)
    same(delta.slice(299, 599))


def test_rows_without_columns_come_back() -> None:
    batch = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
    back = from_payload(to_payload(Delta(batch, np.array([1, -1, 3]))), batch.schema)
    assert back.weights.tolist() == [1, -1, 3]


def test_small_numbers_take_little_room() -> None:
    rows = 10_000
    batch = pa.record_batch({f"c{i}": np.arange(rows) % 100 for i in range(7)})
    payload = to_payload(Delta.from_rows(batch))
    assert len(payload) < 8 * rows + 4096
    assert len(payload) % 8 == 0


def test_many_columns_have_a_longer_header() -> None:
    batch = pa.record_batch({f"c{i}": np.arange(300) * (1 << i % 50) for i in range(ALIGNMENT + 1)})
    same(Delta.from_rows(batch))
