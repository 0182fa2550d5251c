"""The packed exchange without Spark: every row arrives once, at its key's owner, in few payloads of bounded size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from viewkeeper.executors.spark import packing
from viewkeeper.executors.spark.packing import (
    REPORT,
    Arrivals,
    Parcel,
    TaskReport,
    pack,
    pack_report,
    to_batches,
    unpack_report,
)
from viewkeeper.operators.circuit import Node
from viewkeeper.operators.exchange import Exchange
from viewkeeper.pipeline.ring import Ring
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, DOUBLE, STRING, Column, Schema

SCHEMA = Schema((Column("k", DOUBLE), Column("s", STRING), Column("v", BIGINT)))


def node(columns: tuple[int, ...], level: int = 1) -> Node:
    return Node(7, Exchange(SCHEMA, columns, True, level), (0,), level, "f")


def rows(count: int) -> Delta:
    keys = np.arange(count) % 97 - 0.0
    names = [None if i % 5 == 0 else f"name {i}" for i in range(count)]
    batch = pa.record_batch([pa.array(keys), pa.array(names), pa.array(range(count))], schema=SCHEMA.to_arrow())
    return Delta(batch, np.where(np.arange(count) % 3 == 0, -1, 1))


def travel(parcels: list[Parcel], owner: int, level: int, exchange: Node) -> Delta:
    """Return what the task of ``owner`` gets."""
    arrivals = Arrivals(level)
    for batch in to_batches(p for p in parcels if p.owner == owner):
        assert list(arrivals.take(batch)) == []
    return arrivals.deltas({exchange.id: exchange}).get(exchange.id, Delta.empty(SCHEMA.to_arrow()))


@pytest.mark.parametrize("owners", [1, 2, 5])
@pytest.mark.parametrize("columns", [(), (0,), (1, 0)])
def test_every_row_arrives_once_at_its_owner(owners: int, columns: tuple[int, ...]) -> None:
    exchange, delta = node(columns), rows(1000)
    parcels = list(pack(exchange, delta, Ring(owners)))
    arrived = [travel(parcels, owner, 1, exchange) for owner in range(owners)]
    everything = Delta.concat([*arrived, delta.negate()], SCHEMA.to_arrow())
    assert everything.consolidate().num_rows == 0
    assert sum(d.num_rows for d in arrived) == 1000
    key = columns or (0,)
    owners_of_key: dict[tuple[object, ...], set[int]] = {}
    for owner, some in enumerate(arrived):
        for row in zip(*(some.rows.column(i).to_pylist() for i in key), strict=True):
            owners_of_key.setdefault(row, set()).add(owner)
    assert all(len(found) == 1 for found in owners_of_key.values())
    if owners > 1 and columns:
        assert all(d.num_rows > 0 for d in arrived)


def test_equal_keys_of_different_bits_have_one_owner() -> None:
    keys = pa.array([0.0, -0.0] * 4 + [np.nan, -np.nan] * 4)
    batch = pa.record_batch([keys, pa.nulls(16, pa.string()), pa.array(range(16))], schema=SCHEMA.to_arrow())
    parcels = list(pack(node((0,)), Delta.from_rows(batch), Ring(64)))
    assert len(parcels) <= 2


def test_payloads_are_few_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PAYLOAD_BYTES", 4096)
    exchange, delta = node((0,)), rows(2000)
    parcels = list(pack(exchange, delta, Ring(2)))
    assert max(len(p.payload) for p in parcels) < 2 * 4096
    assert len(parcels) < 4 * delta.byte_size / 4096
    assert sum(travel(parcels, owner, 1, exchange).num_rows for owner in (0, 1)) == 2000


def test_a_stage_passes_on_what_is_for_others() -> None:
    early, late = node((0,), level=1), node((0,), level=2)
    report = TaskReport(0, 3, "path", 10, 0.5)
    parcels = [*pack(early, rows(10), Ring(1)), *pack(late, rows(20), Ring(1)), pack_report(report, 0)]
    arrivals = Arrivals(1)
    passed = [batch for batch in to_batches(parcels) for batch in arrivals.take(batch)]
    assert [level for batch in passed for level in batch.column("level").to_pylist()] == [2, REPORT]
    assert not arrivals.failed
    assert arrivals.deltas({7: early})[7].num_rows == 10
    later = Arrivals(2)
    again = [batch for batch in passed for batch in later.take(batch)]
    assert unpack_report(again[0].column("payload")[0].as_py()) == report
    assert later.deltas({7: late})[7].num_rows == 20


def test_a_failed_report_is_heard_by_all() -> None:
    report = TaskReport(0, 0, None, 0, 0.0, b"an error")
    arrivals = Arrivals(1)
    for batch in to_batches([pack_report(report, 0)]):
        assert [b.num_rows for b in arrivals.take(batch)] == [1]
    assert arrivals.failed


def test_payloads_keep_their_alignment() -> None:
    parcels = [*pack(node((0,)), rows(33), Ring(1)), pack_report(TaskReport(0, 0, "p" * 33, 1, 0.1), 0)]
    assert {len(p.payload) % 8 for p in parcels} == {0}
