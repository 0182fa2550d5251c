"""Base tables and their log, one suite for every raw space."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tests.store.examples import (
    ITEMS,
    PAIRS,
    as_counted,
    counted,
    delta_of,
    items,
    make_table,
    many,
    rows_of,
    with_column,
)
from viewkeeper.errors import ConflictError, InputError
from viewkeeper.log import reader
from viewkeeper.store import transactions
from viewkeeper.store.changes import LOG, PIECE_BYTES_MAX, tables_changed_since
from viewkeeper.store.key_value import Space
from viewkeeper.store.model import Table
from viewkeeper.store.scans import KeyRange, scan_batches, split_table
from viewkeeper.store.tables import drop_rows, format_of
from viewkeeper.store.transactions import (
    CheckAndPut,
    DeleteBatch,
    DeleteRow,
    InsertBatch,
    PutBatch,
    PutRow,
    TableStore,
    Truncate,
    UpdateRow,
    log_ddl,
)
from viewkeeper.zset.schema import BINARY, INT, STRING


def log_of(space: Space, table: Table = ITEMS, after: int = 0) -> list[tuple[Any, ...]]:
    """Return the table's log behind ``after`` as written: rows with their weight last."""
    with space.read() as txn:
        delta = delta_of(txn, table, after, reader.head(txn))
    columns = [column.to_pylist() for column in delta.rows.columns]
    return [(*row, w) for *row, w in zip(*columns, delta.weights.tolist(), strict=True)]


# --- one transaction -----------------------------------------------------------------------------------------------


def test_rows_and_log_of_single_operations(space: Space) -> None:
    store = TableStore(space)
    assert store.commit([PutRow(ITEMS, (1, "x", 0.5))]).sequence_number == 1
    assert store.commit([UpdateRow(ITEMS, (1,), {1: "y"})]).sequence_number == 2
    assert store.commit([DeleteRow(ITEMS, (1,))]).sequence_number == 3
    assert log_of(space) == [
        (1, "x", 0.5, 1),
        (1, "x", 0.5, -1),
        (1, "y", 0.5, 1),
        (1, "y", 0.5, -1),
    ]
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == []
        assert reader.head(txn) == 3


def test_what_changes_nothing_leaves_no_trace(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, "x", 0.5))])
    pieces = log_of(space)
    assert store.commit([PutRow(ITEMS, (1, "x", 0.5))]).sequence_number == 1
    assert store.commit([DeleteRow(ITEMS, (9,))]).sequence_number == 1
    assert store.commit([PutRow(ITEMS, (2, "", 0.0)), DeleteRow(ITEMS, (2,))]).sequence_number == 1
    assert store.commit([Truncate(PAIRS)]).sequence_number == 1
    assert store.commit([]).sequence_number == 1
    assert log_of(space) == pieces


def test_several_changes_of_a_key_count_once(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, "first", None))])
    store.commit(
        [
            PutRow(ITEMS, (1, "second", None)),
            DeleteRow(ITEMS, (1,)),
            PutBatch(ITEMS, items((1, "third", None), (1, "fourth", None))),
            UpdateRow(ITEMS, (1,), {2: 4.0}),
        ]
    )
    assert log_of(space, after=1) == [(1, "first", None, -1), (1, "fourth", 4.0, 1)]


def test_operations_see_earlier_ones_and_other_tables(space: Space) -> None:
    store = TableStore(space)
    done = store.commit(
        [
            PutRow(ITEMS, (1, "x", 0.5)),
            PutRow(PAIRS, (7, "x", 1)),
            UpdateRow(ITEMS, (1,), {1: "y"}),
            CheckAndPut(ITEMS, (1, "z", 1.5), {1: "y", 2: 0.5}),
            CheckAndPut(ITEMS, (1, "!", 1.5), {1: "y"}),
            CheckAndPut(PAIRS, (8, "x", 1), None),
            CheckAndPut(PAIRS, (8, "x", 2), None),
            CheckAndPut(PAIRS, (9, "y", 2), {0: 1}),
        ]
    )
    assert done == transactions.Committed(1, (True, False, False, True, False))
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == [(1, "z", 1.5)]
        assert rows_of(txn, PAIRS) == [(7, "x", 1), (8, "x", 2)]
        found = reader.read_many(txn, {1: ITEMS, 2: PAIRS}, reader.range_of(0, 1))
    assert counted(found[1]) == as_counted([(1, "z", 1.5)])
    assert counted(found[2]) == as_counted([(7, "x", 1), (8, "x", 2)])


def test_check_and_put_compares_as_sql_groups(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, None, float("nan")))])
    done = store.commit([CheckAndPut(ITEMS, (1, "new", -0.0), {1: None, 2: float("nan")})])
    assert done.applied == (True,)
    assert store.commit([CheckAndPut(ITEMS, (1, "newer", 1.0), {2: 0.0})]).applied == (True,)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (InsertBatch(ITEMS, items((5, "new", None), (1, "taken", None))), "DUPLICATE_KEY"),
        (InsertBatch(ITEMS, items((5, "new", None), (5, "twice", None))), "DUPLICATE_KEY"),
        (InsertBatch(ITEMS, items((8, "put by this transaction", None))), "DUPLICATE_KEY"),
        (UpdateRow(ITEMS, (5,), {1: "absent"}), "ROW_NOT_FOUND"),
        (UpdateRow(ITEMS, (1,), {0: 2}), "KEY_COLUMN_IN_UPDATE"),
        (PutRow(ITEMS, (1, 7, None)), "WRONG_TYPE"),
        (PutRow(ITEMS, (1, "x")), "WRONG_ROW_LENGTH"),
    ],
)
def test_an_error_leaves_everything_as_it_was(space: Space, operation: Any, code: str) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, items((1, "one", None), (2, "two", None)))])
    before = log_of(space)
    with pytest.raises(InputError) as raised:
        store.commit([PutRow(ITEMS, (8, "put", None)), DeleteRow(ITEMS, (2,)), operation])
    assert raised.value.code == code
    assert log_of(space) == before
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == [(1, "one", None), (2, "two", None)]
    assert store.commit([PutRow(ITEMS, (3, "three", None))]).sequence_number == 2


def test_insert_of_new_keys(space: Space) -> None:
    store = TableStore(space)
    store.commit([InsertBatch(ITEMS, many(0, 10))])
    again = InsertBatch(ITEMS, items((3, "again", 0.0)))
    store.commit([DeleteRow(ITEMS, (3,)), again, InsertBatch(ITEMS, many(10, 20))])
    with space.read() as txn:
        assert [row[0] for row in rows_of(txn, ITEMS)] == list(range(20))
    assert log_of(space, after=1)[:2] == [(3, "row 3", 1.5, -1), (3, "again", 0.0, 1)]


def test_duplicate_key_names_the_key(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(PAIRS, (1, "a", 2))])
    batch = pa.RecordBatch.from_pydict({"x": [1], "k1": ["a"], "k2": [2]}, schema=PAIRS.schema.to_arrow())
    with pytest.raises(InputError, match="k1 = 'a', k2 = 2") as raised:
        store.commit([InsertBatch(PAIRS, batch)])
    assert raised.value.details["key"] == ["a", 2]


def test_truncate_logs_every_row_and_what_was_put_before_it(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 100))])
    store.commit([PutRow(ITEMS, (1000, "gone", None)), Truncate(ITEMS), PutRow(ITEMS, (5, "new", None))])
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == [(5, "new", None)]
        assert counted(delta_of(txn, ITEMS, 0, 2)) == as_counted([(5, "new", None)])
        assert delta_of(txn, ITEMS, 1, 2).num_rows == 101


def test_batches_with_nulls_delete_and_iterators(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, iter([many(0, 50), many(25, 100, "later"), items((100, None, None))]))])
    keys = pa.record_batch({"k": pa.array([0, 100, 999, 0])})
    store.commit([DeleteBatch(ITEMS, keys)])
    with space.read() as txn:
        rows = rows_of(txn, ITEMS)
        assert [row[0] for row in rows] == list(range(1, 100))
        assert rows[24] == (25, "later 25", 12.5)
        assert counted(delta_of(txn, ITEMS, 0, 2)) == as_counted(rows)
        assert delta_of(txn, ITEMS, 0, 1).num_rows == 101
        assert delta_of(txn, ITEMS, 1, 2).num_rows == 2


def test_deletes_together_are_deletes_one_by_one(space: Space) -> None:
    """Two columns of awkward texts, keys that are not there, and one that comes twice."""
    names = ["", "a\x00b", "é", "x" * 300, *(f"name {i}" for i in range(96))]
    store = TableStore(space)
    store.commit([PutRow(PAIRS, (i, name, i - 50)) for i, name in enumerate(names)])
    gone = [(name, i - 50) for i, name in enumerate(names) if i % 2]
    absent = [(name, 1_000) for name in names[:20]]
    store.commit([DeleteRow(PAIRS, key) for key in (*gone, *absent, gone[0])])
    rows = {(i, name, i - 50, 1) for i, name in enumerate(names)}
    assert set(log_of(space, PAIRS, 1)) == {(*row[:3], -1) for row in rows if row[0] % 2}
    with space.read() as txn:
        assert {(*row, 1) for row in rows_of(txn, PAIRS)} == {row for row in rows if not row[0] % 2}


def test_guard_is_called_first_and_ends_the_transaction(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, "x", None))])

    def refuse_if_changed(since: int) -> Any:
        def guard(txn: Any) -> None:
            if tables_changed_since(txn, [ITEMS.id], since):
                raise ConflictError("CHANGED", "somebody was faster")

        return guard

    assert store.commit([PutRow(ITEMS, (2, "y", None))], refuse_if_changed(1)).sequence_number == 2
    with pytest.raises(ConflictError, match="CHANGED"):
        store.commit([PutRow(ITEMS, (3, "z", None))], refuse_if_changed(1))
    store.commit([PutRow(PAIRS, (1, "other table", 1))])
    with space.read() as txn:
        assert [row[0] for row in rows_of(txn, ITEMS)] == [1, 2]
        assert not tables_changed_since(txn, [ITEMS.id], 2)
        assert tables_changed_since(txn, [ITEMS.id, PAIRS.id], 2)


def test_writers_in_threads_get_one_order(space: Space) -> None:
    store = TableStore(space)

    def write(writer: int) -> None:
        for i in range(50):
            store.commit([PutRow(ITEMS, (i, f"writer {writer}", float(i)))])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with space.read() as txn:
        head = reader.head(txn)
        rows = rows_of(txn, ITEMS)
        assert len(rows) == 50
        assert counted(delta_of(txn, ITEMS, 0, head)) == as_counted(rows)
        assert {key[:8] for key in reader.pieces(txn, 0, head)} == {n.to_bytes(8, "big") for n in range(1, head + 1)}


# --- the log's pieces ----------------------------------------------------------------------------------------------


def test_pieces_stay_small_and_one_large_row_is_possible(space: Space) -> None:
    table = make_table({"k": INT, "b": BINARY}, ("k",), table_id=3)
    store = TableStore(space)
    sizes = [10, 3_000, 1_000_000, 40_000, 5, *([700] * 60), *([20] * 3_000)]
    store.commit([PutRow(table, (k, bytes([k % 256]) * size)) for k, size in enumerate(sizes)])
    store.commit([PutRow(table, (k, bytes([k % 255]) * size)) for k, size in enumerate(sizes)])
    with space.read() as txn:
        large = [len(piece) for _, piece in txn.scan(LOG) if len(piece) > PIECE_BYTES_MAX]
        assert len(large) <= 6
        assert counted(delta_of(txn, table, 0, 2)) == as_counted(rows_of(txn, table))
        assert [len(row[1]) for row in rows_of(txn, table)] == sizes


def test_old_and_new_row_of_a_key_share_a_piece(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 2_000))])
    store.commit([PutBatch(ITEMS, many(0, 2_000, "changed"))])
    with space.read() as txn:
        for key in reader.pieces(txn, 1, 2):
            piece = reader.LogRange(key, key + b"\x00")
            (delta,) = reader.read(txn, ITEMS, piece)
            removed = delta.rows.column(0).to_numpy()[delta.weights < 0]
            added = delta.rows.column(0).to_numpy()[delta.weights > 0]
            assert removed.tolist() == added.tolist()


@pytest.mark.parametrize(("bound", "most"), [("KEYS_PER_ROUND", 100), ("BYTES_PER_ROUND", 4_096)])
def test_a_transaction_of_several_rounds(space: Space, monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(transactions, bound, most)
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 1_000))])
    operations: list[Any] = [PutRow(ITEMS, (k % 500, f"new {k}", None)) for k in range(800)]
    store.commit([*operations, PutBatch(ITEMS, many(900, 1_500, "x")), DeleteRow(ITEMS, (1,))])
    with space.read() as txn:
        rows = rows_of(txn, ITEMS)
        assert len(rows) == 1_499
        assert counted(delta_of(txn, ITEMS, 0, 2)) == as_counted(rows)
    store.commit([UpdateRow(ITEMS, (k,), {1: "u"}) for k in range(2, 400)])
    store.commit([Truncate(ITEMS)])
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == []
        assert counted(delta_of(txn, ITEMS, 0, 4)) == {}


# --- reading the log -----------------------------------------------------------------------------------------------


def test_counts_and_positions(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 10))])
    store.commit([PutBatch(ITEMS, many(0, 5, "x"))])
    store.commit([PutBatch(ITEMS, many(10, 40))])
    with space.read() as txn:
        assert [reader.rows_waiting(txn, a, 3) for a in range(4)] == [50, 40, 30, 0]
        assert reader.bytes_waiting(txn, 0, 3) == sum(len(piece) for _, piece in txn.scan(LOG))
        positions = [reader.position_for_rows(txn, 0, 3, n) for n in (1, 10, 19, 20, 49, 50)]
        assert positions == [1, 1, 1, 2, 2, 3]
        assert reader.position_for_rows(txn, 2, 3, 1) == 3
        assert reader.position_for_rows(txn, 3, 3, 1) == 3


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_split_covers_the_range_evenly(space: Space, parts: int) -> None:
    store = TableStore(space)
    for k in range(60):
        store.commit([PutRow(ITEMS, (k, "small", 0.0))])
    store.commit([PutBatch(ITEMS, many(0, 20_000))])
    store.commit([PutBatch(PAIRS, pa.record_batch({"x": [1], "k1": ["a"], "k2": [1]}, PAIRS.schema.to_arrow()))])
    with space.read() as txn:
        head = reader.head(txn)
        ranges = reader.split(txn, 0, head, parts, [ITEMS.id])
        assert len(ranges) == parts
        assert ranges[0].start_key == reader.range_of(0, head).start_key
        assert ranges[-1].stop_key == reader.range_of(0, head).stop_key
        assert all(a.stop_key == b.start_key for a, b in pairwise(ranges))
        counts = [sum(d.num_rows for d in reader.read(txn, ITEMS, part)) for part in ranges]
        assert sum(counts) == 20_000 + 2 * 60
        assert max(counts) < 1.3 * sum(counts) / parts + 700


def test_other_tables_are_stepped_over(space: Space) -> None:
    store = TableStore(space)
    pairs = pa.record_batch(
        {"x": list(range(50_000)), "k1": ["a"] * 50_000, "k2": list(range(50_000))}, PAIRS.schema.to_arrow()
    )
    store.commit([PutBatch(PAIRS, pairs), PutRow(ITEMS, (1, "x", 0.0))])
    third = make_table({"k": INT}, ("k",), table_id=9)
    store.commit([PutBatch(PAIRS, pairs.slice(0, 0)), PutRow(third, (1,)), PutRow(ITEMS, (2, "y", 0.0))])
    store.commit([DeleteBatch(PAIRS, pairs.select(["k1", "k2"])), PutRow(third, (2,))])
    with space.read() as txn:
        whole = reader.range_of(0, 3)
        assert len(reader.pieces(txn, 0, 3)) > 70
        assert [d.rows.column(0).to_pylist() for d in reader.read(txn, ITEMS, whole)] == [[1, 2]]
        assert [d.rows.column(0).to_pylist() for d in reader.read(txn, third, whole)] == [[1, 2]]
        assert list(reader.read(txn, make_table({"k": INT}, ("k",), table_id=77), whole)) == []


def test_ddl_stands_in_the_log(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, "x", 0.0))])
    with space.write() as txn:
        assert log_ddl(txn, b"add column", [ITEMS.id]) == 2
    store.commit([PutRow(ITEMS, (2, "x", 0.0))])
    with space.write() as txn:
        assert store.log_ddl(txn, b"create", [5]) == 4
    with space.read() as txn:
        assert reader.ddl_between(txn, 0, 4, [ITEMS.id, 5]) == 2
        assert reader.ddl_between(txn, 2, 4, [ITEMS.id, 5]) == 4
        assert reader.ddl_between(txn, 0, 4, [5]) == 4
        assert reader.ddl_between(txn, 2, 4, [ITEMS.id]) is None
        assert reader.ddl_between(txn, 0, 1, [ITEMS.id]) is None
        record = reader.read_ddl(txn, 2)
        assert record is not None
        assert (record.payload, record.table_ids) == (b"add column", (ITEMS.id,))
        assert reader.read_ddl(txn, 3) is None
        assert tables_changed_since(txn, [5], 3)
        assert reader.rows_waiting(txn, 0, 4) == 2
        assert [d.num_rows for d in reader.read(txn, ITEMS, reader.range_of(0, 4))] == [2]


def test_rows_and_log_of_old_schema_versions_show_added_defaults(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutRow(ITEMS, (1, "x", 0.0))])
    store.commit([PutBatch(ITEMS, many(100, 200))])
    wider = with_column(ITEMS, "c", INT, 7)
    widest = with_column(wider, "d", STRING)
    store.commit([PutRow(wider, (2, "y", 0.0, 8))])
    store.commit([PutRow(widest, (1, "x", 0.0, 7, "d")), PutBatch(widest, _widest(widest))])
    with space.read() as txn:
        rows = rows_of(txn, widest)
        assert rows[:2] == [(1, "x", 0.0, 7, "d"), (2, "y", 0.0, 8, None)]
        assert rows[2][3:] == (7, "new")
        assert rows[-1] == (199, "row 199", 99.5, 7, None)
        first = delta_of(txn, widest, 0, 2)
        assert set(zip(*(first.rows.column(i).to_pylist() for i in (3, 4)), strict=True)) == {(7, None)}
        assert counted(delta_of(txn, widest, 0, 4)) == as_counted(rows)


def _widest(table: Table) -> pa.RecordBatch:
    columns = [*many(100, 150).columns, pa.array([7] * 50, pa.int32()), pa.array(["new"] * 50)]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema.to_arrow())


# --- parts and moments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 50, 20_000])
def test_split_table_is_even(space: Space, rows: int) -> None:
    store = TableStore(space)
    if rows:
        store.commit([PutBatch(ITEMS, many(0, rows))])
    with space.read() as txn:
        ranges = split_table(txn, ITEMS, 4)
        assert (ranges[0].start, ranges[-1].stop) == (None, None)
        assert all(a.stop == b.start for a, b in pairwise(ranges))
        counts = [sum(b.num_rows for b in scan_batches(ITEMS, txn, part, 1_000)) for part in ranges]
        assert sum(counts) == rows
        assert max(counts) <= rows / 4 * 1.5 + 1


@pytest.mark.parametrize("rows", [60, 40_000])
def test_a_part_of_a_table_is_split_evenly(space: Space, rows: int) -> None:
    """By walking its keys where it is small, else by sampled ones; whatever the rest of the table holds."""
    TableStore(space).commit([PutBatch(ITEMS, many(0, rows))])
    with space.read() as txn:
        database = format_of(ITEMS).database
        keys = list(txn.scan_keys(database))
        for first, last in ((0, rows // 2), (rows // 3, rows - 1), (rows // 2, None)):
            within = KeyRange(keys[first], None if last is None else keys[last])
            ranges = split_table(txn, ITEMS, 3, within)
            assert (ranges[0].start, ranges[-1].stop) == (within.start, within.stop)
            assert all(a.stop == b.start for a, b in pairwise(ranges))
            counts = [len(list(txn.scan_keys(database, part.start, part.stop))) for part in ranges]
            wanted = (rows if last is None else last) - first
            assert sum(counts) == wanted
            assert max(counts) <= wanted / 3 * 2 + 1
        assert split_table(txn, ITEMS, 3, KeyRange(keys[5], keys[5])) == [KeyRange(keys[5], keys[5])]


def test_samples_follow_deletes_and_drop(space: Space) -> None:
    store = TableStore(space)
    store.commit([PutBatch(ITEMS, many(0, 20_000)), PutRow(PAIRS, (1, "a", 1))])
    store.commit([DeleteBatch(ITEMS, many(0, 10_000).select(["k"]))])
    with space.read() as txn:
        ranges = split_table(txn, ITEMS, 2)
        counts = [sum(b.num_rows for b in scan_batches(ITEMS, txn, part)) for part in ranges]
    assert min(counts) > 2_000
    with space.write() as txn:
        drop_rows(txn, ITEMS.id)
    with space.read() as txn:
        assert rows_of(txn, ITEMS) == []
        assert split_table(txn, ITEMS, 2) == [KeyRange(None, None)]
        assert rows_of(txn, PAIRS) == [(1, "a", 1)]
