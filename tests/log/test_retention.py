"""Who holds the log, and what is purged."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from tests.store.examples import delta_of, make_table
from viewkeeper.clock import SimulatedClock
from viewkeeper.errors import ConflictError
from viewkeeper.log import reader, retention
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.store.changes import DDL, LOG, LOG_ROWS
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.transactions import PutRow, TableStore, log_ddl
from viewkeeper.zset.schema import BIGINT, STRING

TABLE = make_table({"k": BIGINT, "a": STRING}, ("k",))


@pytest.fixture
def space() -> MemorySpace:
    made = MemorySpace()
    write(made, 10)
    return made


def write(space: MemorySpace, count: int) -> None:
    store = TableStore(space)
    with space.read() as txn:
        head = reader.head(txn)
    for k in range(head, head + count):
        store.commit([PutRow(TABLE, (k, "x" * 100))])


def hold(space: MemorySpace, name: str, position: int | None = None, **options: Any) -> int:
    with space.write() as txn:
        return retention.hold(txn, name, "cadence", position, **options)


def left(space: MemorySpace) -> list[int]:
    with space.read() as txn:
        return [int.from_bytes(key[:8], "big") for key in txn.scan_keys(LOG)]


def test_purge_stops_at_the_slowest_consumer(space: MemorySpace) -> None:
    assert hold(space, "fast", 8) == 8
    assert hold(space, "slow", 3) == 3
    purged = retention.purge(space, pieces_per_transaction=2)
    assert purged == retention.Purged(3, 3, (), ())
    assert left(space) == list(range(4, 11))
    with space.write() as txn:
        retention.advance(txn, "slow", 9)
        retention.advance(txn, "slow", 5)
    assert retention.purge(space).floor == 8
    assert left(space) == [9, 10]
    with space.write() as txn:
        assert retention.release(txn, "fast")
        assert not retention.release(txn, "fast")
    assert retention.purge(space).floor == 9
    with space.read() as txn:
        assert reader.rows_waiting(txn, 9, 10) == 1
        assert delta_of(txn, TABLE, 9, 10).rows.column(0).to_pylist() == [9]


@pytest.mark.parametrize("dies_after", range(7))
def test_what_a_purge_has_left_that_was_cut_short_goes_with_the_next(space: MemorySpace, dies_after: int) -> None:
    with space.write() as txn:
        log_ddl(txn, b"x", [TABLE.id])
    write(space, 3)
    hold(space, "late", 12)
    left_to_do = dies_after

    def die() -> None:
        nonlocal left_to_do
        left_to_do -= 1
        if left_to_do < 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        retention.purge(space, pieces_per_transaction=4, between=die)
    with space.read() as txn:
        assert reader.purged_to(txn) == 12
        assert reader.rows_waiting(txn, 12, 14) == 2
        assert delta_of(txn, TABLE, 12, 14).rows.num_rows == 2
    retention.purge(space, pieces_per_transaction=4)
    assert left(space) == [13, 14]
    with space.read() as txn:
        assert [txn.count(DDL), txn.count(LOG_ROWS)] == [0, 3]
    assert retention.purge(space) == retention.Purged(12, 0, (), ())


def test_without_consumers_all_goes_and_the_numbers_go_on(space: MemorySpace) -> None:
    with space.write() as txn:
        log_ddl(txn, b"x", [TABLE.id])
    assert retention.purge(space).floor == 11
    assert left(space) == []
    with space.read() as txn:
        assert txn.count(DDL) == 0
        assert txn.count(LOG_ROWS) == 1
    write(space, 2)
    with space.read() as txn:
        assert reader.head(txn) == 13
        assert reader.rows_waiting(txn, 11, 13) == 2
        assert reader.position_for_rows(txn, 11, 13, 1) == 12


def test_what_is_purged_cannot_be_held_or_read(space: MemorySpace) -> None:
    hold(space, "a", 6)
    retention.purge(space)
    with pytest.raises(ConflictError, match="LOG_PURGED") as raised:
        hold(space, "b", 5)
    assert raised.value.details == {"after": 5, "purged_to": 6}
    with space.read() as txn, pytest.raises(ConflictError, match="LOG_PURGED"):
        reader.check_not_purged(txn, 5)
    for register in (True, False):
        with pytest.raises(ConflictError, match="LOG_PURGED"):
            list(scan_as_of(space, TABLE, 5, register=register))
    assert sum(batch.num_rows for batch in scan_as_of(space, TABLE, 6)) == 6


def test_a_position_ahead_of_the_log(space: MemorySpace) -> None:
    with pytest.raises(ConflictError, match="POSITION_AHEAD_OF_LOG"):
        hold(space, "a", 11)
    with pytest.raises(ConflictError, match="POSITION_AHEAD_OF_LOG"):
        list(scan_as_of(space, TABLE, 11, register=False))


def test_a_running_scan_holds_the_log(space: MemorySpace) -> None:
    batches = scan_as_of(space, TABLE, 4, batch_rows=2)
    first = next(batches)
    with space.read() as txn:
        (held,) = retention.consumers(txn)
    assert (held.consumer.kind, held.consumer.position, held.consumer.process_id > 0) == ("scan", 4, True)
    assert held.log_bytes > 600
    assert retention.purge(space).floor == 4
    rest = [k for batch in batches for k in batch.column(0).to_pylist()]
    assert first.column(0).to_pylist() + rest == [0, 1, 2, 3]
    assert retention.purge(space).floor == 10


@pytest.mark.slow
def test_consumers_of_dead_processes_go(space: MemorySpace) -> None:
    hold(space, "mine", 7, of_this_process=True)
    hold(space, "dead", 2, of_this_process=True)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    changed(space, "dead", process_id=child.pid, process_mark="")
    hold(space, "reused", 3, of_this_process=True)
    changed(space, "reused", process_mark="another start")
    hold(space, "elsewhere", 5, of_this_process=True)
    changed(space, "elsewhere", process_id=child.pid, host="another-machine")
    purged = retention.purge(space)
    assert purged.dropped == ("dead", "reused")
    assert purged.floor == 5


def changed(space: MemorySpace, name: str, **fields: Any) -> None:
    with space.write() as txn:
        consumer = retention.find(txn, name)
        assert consumer is not None
        record = msgspec.msgpack.encode(msgspec.structs.replace(consumer, **fields))
        txn.put(retention.CONSUMERS, name.encode(), record)


def test_who_holds_back_too_much_is_left_behind(space: MemorySpace) -> None:
    clock = SimulatedClock(5.0)
    hold(space, "stuck", 1, clock=clock)
    hold(space, "fine", 9)
    with space.read() as txn:
        sizes = {held.consumer.name: held.log_bytes for held in retention.consumers(txn)}
    assert 9 * 100 < sizes["stuck"] < 9 * 200
    assert retention.purge(space, held_bytes_max=sizes["stuck"]).left_behind == ()
    purged = retention.purge(space, held_bytes_max=sizes["stuck"] - 1)
    assert purged.left_behind == ("stuck",)
    assert purged.floor == 9
    with space.read() as txn:
        stuck = retention.find(txn, "stuck")
        assert stuck is not None
        assert (stuck.needs_rebuild, stuck.held_since_seconds) == (True, 5.0)
    with space.write() as txn, pytest.raises(ConflictError, match="NEEDS_REBUILD"):
        retention.advance(txn, "stuck", 10)
    with space.write() as txn, pytest.raises(ConflictError, match="CONSUMER_NOT_FOUND"):
        retention.advance(txn, "nobody", 10)
    assert hold(space, "stuck") == 10


def test_holding_registers_for_a_block(space: MemorySpace) -> None:
    with retention.holding(space, "verify") as position:
        assert position == 10
        write(space, 3)
        assert retention.purge(space).floor == 10
    assert retention.purge(space).floor == 13
