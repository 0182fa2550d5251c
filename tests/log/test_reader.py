"""How many rows of which table wait in the log: exact for little, about right for much, whatever its shape."""

from __future__ import annotations

import pytest

from tests.store.examples import make_table
from viewkeeper.log import reader
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.model import Table
from viewkeeper.store.transactions import Operation, PutRow, TableStore, log_ddl
from viewkeeper.zset.schema import BIGINT, STRING

FIRST = make_table({"k": BIGINT, "a": STRING}, ("k",), table_id=1)
SECOND = make_table({"k": BIGINT, "a": STRING}, ("k",), table_id=2)
UNTOUCHED = 3


def put(table: Table, start: int, count: int, text: str = "x") -> list[Operation]:
    return [PutRow(table, (k, text)) for k in range(start, start + count)]


def counted(space: MemorySpace, after: int = 0) -> dict[int, int]:
    with space.read() as txn:
        return reader.rows_by_table(txn, after, reader.head(txn), (1, 2, UNTOUCHED))


def test_little_is_counted_exactly() -> None:
    space = MemorySpace()
    store = TableStore(space)
    assert counted(space) == {1: 0, 2: 0, UNTOUCHED: 0}
    store.commit(put(FIRST, 0, 5))
    with space.write() as txn:
        log_ddl(txn, b"-- nothing", ())
    store.commit([*put(FIRST, 0, 1, "y"), *put(SECOND, 0, 3)])
    assert counted(space) == {1: 7, 2: 3, UNTOUCHED: 0}
    assert counted(space, 1) == {1: 2, 2: 3, UNTOUCHED: 0}


@pytest.mark.parametrize(("transactions", "rows", "text"), [(2_600, 1, "x"), (4, 1_200, "x" * 9_000)])
def test_of_much_some_is_counted(transactions: int, rows: int, text: str) -> None:
    """Many transactions; few large ones, whose pieces lie table by table."""
    space = MemorySpace()
    store = TableStore(space)
    for number in range(transactions):
        part = put(SECOND, number * rows, rows, text) if number % 4 == 3 or rows > 1 else []
        store.commit([*(put(FIRST, number * rows, rows, text) if number % 4 != 3 or rows > 1 else []), *part])
    found = counted(space)
    assert found[UNTOUCHED] == 1  # what was not seen may be there
    total = transactions * rows * (2 if rows > 1 else 1)
    wanted = total / 2 if rows > 1 else total / 4
    assert found[2] == pytest.approx(wanted, rel=0.2)
    assert found[1] + found[2] == pytest.approx(total, rel=0.01)
