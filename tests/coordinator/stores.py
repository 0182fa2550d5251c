"""A small store in memory for tests of what views of a cadence keep together; it counts what is written where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.database.connection import Database
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import CadenceRecord, read_cadences
from viewkeeper.runtime import OpenStore
from viewkeeper.settings import Settings
from viewkeeper.store.memory import MemorySpace

SETTINGS = Settings(executor="local", build_rows=4)
JOIN = "orders o JOIN customers c ON o.customer = c.id"
ROWS = f"SELECT o.id, c.region, o.amount FROM {JOIN}"
SUMS = f"SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total FROM {JOIN} GROUP BY c.region"


class CountingSpace(MemorySpace):
    """Counts what is written, by sub-database."""

    def __init__(self) -> None:
        super().__init__()
        self.written: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()

    @contextmanager
    def write(self) -> Iterator[Any]:
        with super().write() as txn:
            yield _CountingTransaction(txn, self.written, self.deleted)


@dataclass
class _CountingTransaction:
    txn: Any
    written: Counter[str]
    deleted: Counter[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.txn, name)

    def put(self, database: str, key: bytes, value: bytes) -> None:
        self.written[database] += 1
        self.txn.put(database, key, value)

    def multi_put(self, database: str, pairs: Iterable[tuple[bytes, bytes]], append: bool = False) -> None:
        all_ = list(pairs)
        self.written[database] += len(all_)
        self.txn.multi_put(database, all_, append)

    def multi_delete(self, database: str, keys: Iterable[bytes]) -> None:
        all_ = list(keys)
        self.deleted[database] += len(all_)
        self.txn.multi_delete(database, all_)


@dataclass
class Shop:
    """Orders and customers, with connections of two processes."""

    base: MemorySpace = field(default_factory=MemorySpace)
    views: CountingSpace = field(default_factory=CountingSpace)
    settings: Settings = SETTINGS

    def __post_init__(self) -> None:
        self.db, self.other = self.connect(), self.connect()
        self.db.sql("CREATE TABLE customers (id INT, region STRING, PRIMARY KEY (id))")
        self.db.sql("CREATE TABLE orders (id BIGINT, customer INT, amount BIGINT, PRIMARY KEY (id))")
        for id_ in range(4):
            self.db.put("customers", {"id": id_, "region": "north" if id_ % 2 else "south"})
        for id_ in range(20):
            self.db.put("orders", {"id": id_, "customer": id_ % 5, "amount": id_})

    def connect(self) -> Database:
        return Database(OpenStore(None, self.base, self.views, None, None, lambda: None), self.settings)

    def create(self, name: str, query: str, clauses: str = "") -> None:
        self.db.sql(f"CREATE MATERIALIZED VIEW {name} {clauses} AS {query}")

    def tables(self) -> dict[str, int]:
        """Return the state tables with their numbers of rows."""
        with self.views.read() as txn:
            return {name: txn.count(name) for name in txn.databases() if name != "published"}

    def cadences(self) -> dict[str, CadenceRecord]:
        with self.views.read() as txn:
            return {record.name: record for record in read_cadences(txn)}

    def build(self) -> CadenceRecord | None:
        """Return the record of the view that is being filled."""
        return next((r for name, r in self.cadences().items() if name.startswith("build-")), None)

    def create_seen(self, name: str, query: str) -> list[CadenceRecord]:
        """Create a view, and return the record of its build as it was behind each publishing."""
        seen: list[CadenceRecord] = []

        def look(arrival: int) -> None:
            record = self.build()
            if record is not None:
                seen.append(record)

        with self.at("publish:after", look):
            self.create(name, query)
        return seen

    def shows(self, name: str, query: str) -> bool:
        """Return whether a view shows what its query gives."""
        shown, wanted = (self.db.sql(sql).rows() for sql in (f"SELECT * FROM {name}", query))
        return sorted(map(repr, shown)) == sorted(map(repr, wanted))

    def epoch(self, cadence: str = "continuous") -> None:
        """One epoch by the other process, which has not asked for any lock."""
        with hooked(lambda name: None):
            self.other._engine.coordinator.epoch(cadence)

    @contextmanager
    def at(self, point: str, happens: Callable[[int], None]) -> Iterator[None]:
        """Let something happen at each arrival at a failpoint while a view is filled, told which arrival it is."""
        arrivals = 0

        def hook(name: str) -> None:
            nonlocal arrivals
            if name == point and self.build() is not None:
                arrivals += 1
                with hooked(lambda name: None):
                    happens(arrivals)

        with hooked(hook):
            yield
