"""What an epoch reads of both spaces, as the stores count it: as much as its change asks for, whatever the base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.clock import SimulatedClock
from viewkeeper.database import Database
from viewkeeper.runtime import OpenStore, memory_store, open_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction, Space

SETTINGS = Settings(executor="local", durability="none")
GROUP_ROWS = 10
FEW_GROUPS, MANY_GROUPS = 20, 200
# With what each changed row may add to the reads of the views' space.
VIEWS = {
    "aggregate": ("SELECT g, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most FROM t GROUP BY g", 5),
    "join": ("SELECT t.k, t.v, u.v AS factor FROM t JOIN u ON t.g = u.k", 1),
    "join on an OR": ("SELECT t.k, u.k AS other FROM t JOIN u ON t.g = u.k OR t.v = u.v", 3),
    "constant rows": ("SELECT r.id, t.k, t.v FROM range(500) r LEFT JOIN t ON t.g = r.id", 6),
    "values": (f"SELECT t.k, v FROM t FULL JOIN VALUES {', '.join(f'({n})' for n in range(500))} AS c(g) USING (g)", 6),
    "top-k": (
        "SELECT k, g, v FROM "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC) AS place FROM t) WHERE place <= 3",
        4,
    ),
    # Each row falls into two.
    "windows of time": (
        "SELECT window.start AS w, COUNT(*) AS n, SUM(v) AS total FROM t "
        "GROUP BY window(timestamp_seconds(g * 7200), '2 hours', '1 hour')",
        2,
    ),
}


class Watched:
    """A space that remembers its transactions."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._transactions: list[ReadTransaction] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._space, name)

    def read(self) -> Any:
        return self._remembered(self._space.read())

    def write(self) -> Any:
        return self._remembered(self._space.write())

    def _remembered(self, transaction: Any) -> Any:
        self._transactions.append(transaction)
        return transaction

    @property
    def reads(self) -> int:
        return sum(transaction.reads for transaction in self._transactions)


def reads_of_an_epoch(store: OpenStore, query: str, groups: int, changes: int) -> tuple[int, int]:
    """Return what a refresh reads of the base space and of the views' where some rows change, each of another group."""
    base, views = Watched(store.base), Watched(store.views)
    # Of a clock that stands, no slow machine makes a reader begin a further transaction.
    with Database(replace(store, base=base, views=views), SETTINGS, clock=SimulatedClock(1000.0)) as db:
        for name in ("t", "u"):
            db.sql(f"CREATE TABLE {name} (k BIGINT, g BIGINT, v BIGINT, PRIMARY KEY (k))")
        db.put_batch("t", [{"k": k, "g": k // GROUP_ROWS, "v": k % 7} for k in range(groups * GROUP_ROWS)])
        db.put_batch("u", [{"k": k, "g": 0, "v": k} for k in range(groups)])
        db.sql(f"CREATE MATERIALIZED VIEW w AS {query}")
        db.put_batch("t", [{"k": n * GROUP_ROWS, "g": n, "v": 9} for n in range(changes)])
        before = base.reads, views.reads
        db.refresh()
        counts = base.reads - before[0], views.reads - before[1]
        shown, wanted = (db.sql(sql).rows() for sql in ("SELECT * FROM w", query))
        assert sorted(map(repr, shown)) == sorted(map(repr, wanted))
    return counts


@pytest.mark.parametrize("view", VIEWS)
def test_an_epoch_reads_as_much_as_changes_whatever_the_base(view: str, tmp_path: Path) -> None:
    query, per_change = VIEWS[view]
    one, one_of_ten_times, nine = (
        reads_of_an_epoch(memory_store(), query, groups, changes)
        for groups, changes in ((FEW_GROUPS, 1), (MANY_GROUPS, 1), (MANY_GROUPS, 9))
    )
    assert one == one_of_ten_times
    assert one == reads_of_an_epoch(open_store(tmp_path / "store", SETTINGS), query, FEW_GROUPS, 1)
    # The old rows come with the log, in one piece: no row of a table is read for them.
    assert nine[0] == one[0] < FEW_GROUPS * GROUP_ROWS
    assert 0 < nine[1] - one[1] <= per_change * 8
