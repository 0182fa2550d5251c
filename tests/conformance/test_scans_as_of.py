"""A base table as it was at a position, read while writers go on: one suite for every raw space."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.store.examples import ITEMS, PAIRS, many, rows_of
from viewkeeper.errors import ConflictError
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.store import scans
from viewkeeper.store.key_value import Space
from viewkeeper.store.scans import split_table
from viewkeeper.store.tables import drop_rows
from viewkeeper.store.transactions import DeleteBatch, DeleteRow, PutBatch, PutRow, TableStore, Truncate


def test_scan_as_of_shows_one_moment_while_writers_go_on(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 3_000))])
    with space.read() as txn:
        expected = rows_of(txn, ITEMS)
    steps: list[Any] = [
        [PutBatch(ITEMS, many(500, 700, "changed")), DeleteBatch(ITEMS, many(1_000, 1_400).select(["k"]))],
        [PutBatch(ITEMS, many(3_000, 3_500, "behind"))],
        [PutRow(ITEMS, (-5, "before", None)), DeleteRow(ITEMS, (2_999,)), DeleteRow(ITEMS, (550,))],
        [PutBatch(ITEMS, many(1_000, 1_200, "again")), PutRow(ITEMS, (2_999, "back", None))],
        [Truncate(ITEMS)],
        [PutBatch(ITEMS, many(2_500, 2_600, "after truncate"))],
    ]
    store.commit(steps.pop(0))
    found: list[tuple[Any, ...]] = []
    for batch in scan_as_of(space, ITEMS, 1, batch_rows=400):
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        if steps:
            store.commit(steps.pop(0))
    assert not steps
    assert found == expected


def test_batches_of_wide_rows_are_short(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "BYTES_PER_BATCH", 100_000)
    TableStore(space).commit([PutBatch(ITEMS, many(0, 8_000, "x" * 50))])
    with space.read() as txn:
        batches = [*scans.scan_batches(ITEMS, txn)]
        there = rows_of(txn, ITEMS)
    for found in (batches, [*scan_as_of(space, ITEMS, 1)]):
        assert [batch.num_rows for batch in found[:-1]] == [2_048] * 3
        keys = [key for batch in found for key in batch.column(0).to_pylist()]
        assert keys == [row[0] for row in there]


def test_a_scan_whose_table_is_dropped_says_so(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 3_000))])
    batches = scan_as_of(space, ITEMS, 1, batch_rows=400)
    assert next(batches).num_rows == 400
    with space.write() as txn:
        store.log_ddl(txn, b"of another table", [PAIRS.id])
    assert next(batches).num_rows == 400
    with space.write() as txn:
        store.log_ddl(txn, b"drop", [ITEMS.id])
        drop_rows(txn, ITEMS.id)
    with pytest.raises(
        ConflictError, match="'table_1' was dropped, or altered without rows, while it was read"
    ) as caught:
        next(batches)
    assert caught.value.code == "TABLE_CHANGED"


def test_scan_as_of_a_key_range_against_a_thread(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 2_000))])
    with space.read() as txn:
        expected = rows_of(txn, ITEMS)
        ranges = split_table(txn, ITEMS, 3)
    started, stop = threading.Event(), threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            key = n * 7919 % 4_000
            store.commit([PutRow(ITEMS, (key, f"writer {n}", None)), DeleteRow(ITEMS, (key * 31 % 2_000,))])
            started.set()

    writer = threading.Thread(target=write)
    writer.start()
    started.wait()
    try:
        found: list[tuple[Any, ...]] = []
        for part in ranges:
            for batch in scan_as_of(space, ITEMS, 1, part, batch_rows=100):
                found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    finally:
        stop.set()
        writer.join()
    assert found == expected
