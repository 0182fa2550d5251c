"""A store under attack, and the proof that it is right: what was confirmed is there, views equal their queries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import viewkeeper as vk
from tests.integration.roles import LOCAL, operations, write_one
from viewkeeper.log import retention
from viewkeeper.pipeline.records import read_cadences, read_views
from viewkeeper.runtime import OpenStore, open_store
from viewkeeper.settings import Settings
from viewkeeper.store.changes import last_change
from viewkeeper.store.key_value import Space
from viewkeeper.store.tables import SAMPLES
from viewkeeper.testing.auditor import Auditor, apply
from viewkeeper.views.catalog import read_catalog

TABLES = (
    "CREATE TABLE orders (id BIGINT, customer INT, amount BIGINT, x INT, PRIMARY KEY (id))",
    "CREATE TABLE customers (id INT, region STRING, PRIMARY KEY (id))",
    "CREATE TABLE progress (id INT, number INT, PRIMARY KEY (id))",
)
VIEWS = (
    "CREATE MATERIALIZED VIEW grouped AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS least,"
    " AVG(amount) AS mean FROM orders GROUP BY customer",
    "CREATE MATERIALIZED VIEW joined AS SELECT o.id, c.region, o.amount FROM orders o"
    " JOIN customers c ON o.customer = c.id",
    "CREATE MATERIALIZED VIEW mirrored REFRESH EVERY 0.01 SECONDS AS SELECT id, amount, amount + x AS more FROM orders",
    "CREATE MATERIALIZED VIEW regions REFRESH ON DEMAND AS SELECT region, COUNT(*) AS n, MAX(amount) AS most"
    " FROM joined GROUP BY region",
    "CREATE MATERIALIZED VIEW bag AS SELECT amount FROM orders",
    "CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.id AS other, a.amount + b.amount AS both FROM orders a"
    " JOIN orders b ON a.customer = b.customer AND a.x = b.x",
)
# For a store that others are killed at: how this process brings it up to date costs little.
QUICK = {"durability": "none", "epoch_rows_max": 10_000, "build_rows": 1_000}
# Ids, and the fingerprints of shared state, which depend on them.
_NUMBERS = re.compile(r"(?<=/[a-z])[0-9a-f]{24}$|\d+")


def settle(space: Space) -> None:
    """Let a commit appear whose writer was killed in the midst of it.

    LMDB's readers see a commit only once its writer has noted it in the lock file; where the kill came just before, the
    next who takes the write lock notes it. Between two looks of a test nothing may appear, so the test takes the lock.
    """
    with space.write():
        pass


class Proof:
    """A store in a folder, its auditor, and how far each writer is known to be; use as a context manager.

    Args:
        path: the folder, made here.
        views: statements that create its views.
        settings: of this process's connection.
    """

    def __init__(self, path: Path, views: Iterable[str] = VIEWS, **settings: Any) -> None:
        self.path = str(path)
        self._settings = {**LOCAL, **settings}
        self.numbers: dict[int, int] = {}
        self._store: OpenStore | None = None
        self.database: vk.Database | None = None
        self._auditor: Auditor | None = None
        self.restart()
        for statement in (*TABLES, *views):
            self.db.sql(statement)

    @property
    def db(self) -> vk.Database:
        assert self.database is not None
        return self.database

    @property
    def auditor(self) -> Auditor:
        assert self._auditor is not None
        return self._auditor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store in this process."""
        if self.database is not None:
            self.database.close()
        if self._store is not None:
            self._store.close()

    def restart(self) -> None:
        """Open the store anew, as after a crash."""
        self.close()
        self.database = vk.connect(self.path, **self._settings)
        self._store = open_store(self.path, Settings.of(self._settings), create=False)
        settle(self._store.base)
        if self._auditor is None:
            self._auditor = Auditor(self._store.base, self._store.views)
        else:
            self._auditor.reopen(self._store.base, self._store.views)

    # ---- writing ----

    def write(self, count: int, seed: int = 0) -> None:
        """Commit some transactions here."""
        for _ in range(count):
            number = self.numbers.get(seed, -1) + 1
            self.confirmed(seed, number, write_one(self.db, seed, number))

    def confirmed(self, seed: int, number: int, position: int) -> None:
        """Note a transaction whose writer was told that it is committed."""
        self.auditor.committed(position, lambda tables: apply(tables, operations(seed, number)))
        self.numbers[seed] = number

    def heard(self, seed: int, lines: Iterable[str]) -> int:
        """Note what a writer said; return how many transactions it confirmed."""
        count = 0
        for line in lines:
            if line.startswith("["):
                number, position = json.loads(line)
                self.confirmed(seed, number, position)
                count += 1
        return count

    def find_unconfirmed(self, seed: int) -> None:
        """Note the transaction that a killed writer has committed and could not tell of, if there is one."""
        assert self._store is not None
        row = self.db.get("progress", seed)
        number = -1 if row is None else row["number"]
        known = self.numbers.get(seed, -1)
        assert number in (known, known + 1), f"writer {seed} confirmed {known}, the store holds {number}"
        if number > known:
            with self._store.base.read() as txn:
                position = last_change(txn, read_catalog(txn).table("progress").id)
            self.confirmed(seed, number, position)

    # ---- what there is ----

    def definitions(self) -> list[str]:
        """Return the catalog's tables and views: names, columns, queries, states; but no ids."""
        assert self._store is not None
        with self._store.base.read() as txn:
            catalog = read_catalog(txn)
        tables = [f"{table.name} {table.schema.names}" for table in catalog.tables.values()]
        return sorted(tables) + sorted(f"{v.name} {v.state} {v.policy} {v.sql}" for v in catalog.views.values())

    def kept(self) -> list[str]:
        """Return the names of what is stored for tables and views, and of who holds the log; numbers taken off."""
        assert self._store is not None
        with self._store.base.read() as base, self._store.views.read() as views:
            names = [name for name in (*base.databases(), *views.databases()) if name != SAMPLES]
            names += [f"hold {held.consumer.name}" for held in retention.consumers(base)]
            names += [f"cadence {record.name}" for record in read_cadences(views)]
            names += [f"view {record.state}" for record in read_views(views)]
        return sorted(_NUMBERS.sub("#", name) for name in names)

    # ---- proof ----

    def check(self) -> None:
        """Compare what is there, as it was left."""
        self.auditor.check()

    def check_fresh(self, check: Callable[[], None] | None = None) -> None:
        """Compare what was left, bring all views up to the log's end, and compare again."""
        assert self._store is not None
        settle(self._store.base)
        (check or self.check)()
        self.db.refresh()
        (check or self.check)()
        for view in self.db.status()["views"]:
            assert view["state"] == "ACTIVE", view
            assert view["behind"] == 0, view
