"""What the tasks of a fill read: every piece is cut among them, nothing is left out and nothing read twice."""

from __future__ import annotations

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.executors.spark.shares import ROWS_WORTH_SPLITTING, shares_of
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, fence
from viewkeeper.pipeline.intake import Share, deltas_of
from viewkeeper.pipeline.loans import published_state
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

TASKS = 3
PIECE_ROWS = 2_000
ORDERS = 5_000


class _Divided(LocalExecutor):
    """Notes what each of several tasks would read of a piece, before it reads the whole piece itself."""

    pieces: list[list[list[int]]]

    def run(self, plan: EpochPlan) -> EpochResult:
        if plan.scan is not None and not plan.scan.is_empty:
            with self._base.read() as base, self._views.read() as views:
                shares = shares_of(base, views, plan, TASKS)
            self.pieces.append([self._keys(plan, task) for task in shares])
        return super().run(plan)

    def _keys(self, plan: EpochPlan, shares: tuple[Share, ...]) -> list[int]:
        with published_state(self._views, plan.members.borrowed, plan.after, fence(plan)) as lookups:
            deltas = deltas_of(self._base, lookups, plan, shares)
        return [key for delta in deltas.values() for key in delta.rows.column(0).to_pylist()]


@pytest.fixture
def shop() -> tuple[Database, _Divided]:
    store = memory_store()
    executor = _Divided(store.base, store.views)
    executor.pieces = []
    store.executors = {"local": lambda: executor}
    db = Database(store, Settings(executor="local", build_rows=PIECE_ROWS))
    db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT)")
    db.put_batch("orders", [{"id": id_, "customer": id_ % 40} for id_ in range(ORDERS)])
    return db, executor


def test_each_task_reads_its_part_of_each_piece_of_a_table(shop: tuple[Database, _Divided]) -> None:
    db, executor = shop
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
    assert [sum(map(len, piece)) for piece in executor.pieces] == [2_000, 2_000, 1_000]
    read = [key for piece in executor.pieces for task in piece for key in task]
    # The pieces in order, the tasks in order: together the table as it stands, so no key twice and none left out.
    assert read == list(range(ORDERS))
    assert [list(map(len, piece)) for piece in executor.pieces] == [[666, 667, 667], [666, 667, 667], [1_000, 0, 0]]
    assert ROWS_WORTH_SPLITTING > 1_000, "the last piece is not worth a second reading"


def test_each_task_reads_its_part_of_rows_that_another_view_keeps(shop: tuple[Database, _Divided]) -> None:
    db, executor = shop
    groups = "SELECT id DIV 2 AS pair, COUNT(*) AS n FROM orders GROUP BY id DIV 2"
    db.sql(f"CREATE MATERIALIZED VIEW lends AS {groups}")
    executor.pieces.clear()
    db.sql(f"CREATE MATERIALIZED VIEW borrows AS SELECT pair FROM ({groups}) WHERE n > 0")
    assert len(list(db.scan("borrows"))) == ORDERS // 2
    assert [sum(map(len, piece)) for piece in executor.pieces] == [2_000, 500], "groups are read, no longer orders"
    assert sorted(key for piece in executor.pieces for task in piece for key in task) == list(range(ORDERS // 2))
    assert [min(map(len, piece)) > 600 for piece in executor.pieces] == [True, False]
