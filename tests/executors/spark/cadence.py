"""A store in a folder with one cadence over hand-made tables: enough to run epochs without the layers above."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from viewkeeper.adapters.lmdb.folder import open_folder
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.expressions.tree import Session
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, Members, plan_epoch
from viewkeeper.pipeline.publish import publish
from viewkeeper.pipeline.records import CadenceRecord, write_cadence
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import compile_views
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation, ViewPlan
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.model import Table
from viewkeeper.store.transactions import Operation, TableStore
from viewkeeper.zset.schema import BIGINT, INT, STRING, Column, Schema, decimal
from viewkeeper.zset.versions import first_layout

CADENCE = "continuous"
OPTIONS = EnvironmentOptions(durability="none")


def table(id_: int, name: str, columns: Sequence[Column]) -> Table:
    """Return a table whose first column is its key."""
    nothing = (None,) * len(columns)
    return Table(id_, name, Schema(tuple(columns)), (0,), nothing, (first_layout([c.type for c in columns]),), nothing)


ORDERS = table(
    1,
    "orders",
    [Column("id", BIGINT, False), Column("customer", INT), Column("amount", decimal(12, 2)), Column("status", STRING)],
)
CUSTOMERS = table(2, "customers", [Column("id", BIGINT, False), Column("name", STRING), Column("region", STRING)])

VIEWS = {
    "by_status": "SELECT status, COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS low, MAX(amount) AS high"
    " FROM orders GROUP BY status",
    "joined": "SELECT o.id, c.name, c.region, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "by_region": "SELECT region, COUNT(*) AS n, SUM(amount) AS total FROM joined GROUP BY region",
    "largest": "SELECT MAX(total) AS total, COUNT(*) AS regions FROM by_region",
    "everything": "SELECT id, status AS label FROM orders UNION ALL SELECT id, region AS label FROM customers",
    "distinct": "SELECT COUNT(DISTINCT customer) AS customers, COUNT(*) AS n, STDDEV(amount) AS sd FROM orders",
    "ordered": "SELECT status, COUNT(DISTINCT customer) AS customers, MEDIAN(amount) AS mid, MODE(customer) AS often,"
    " MIN_BY(id, amount) AS cheapest, LISTAGG(amount, ' ') AS amounts FROM orders GROUP BY status",
    "near": "SELECT o.id, p.id AS other FROM orders o LEFT JOIN orders p ON o.customer = p.customer"
    " AND p.id BETWEEN o.id + 1 AND o.id + 50",
    "above": "SELECT o.id, r.region, r.total FROM orders o JOIN by_region r ON o.amount > r.total",
    "shares": "SELECT id, 100 / customer AS share FROM orders",
}


def _relation(id_: int, name: str, plan: ViewPlan) -> Relation:
    types = plan.root.schema
    hidden = types.select(tuple(range(plan.visible, len(types))))
    full_key = plan.key if plan.visible_key is None else None
    return Relation(id_, name, "view", plan.schema, plan.visible_key, hidden, full_key)


@dataclass(frozen=True)
class Opener:
    """Opens a folder's spaces in a worker, after doing something to that worker once.

    Args:
        path: the folder.
        before: called first; None does nothing.
    """

    path: str
    before: Callable[[], None] | None = None

    def __call__(self) -> tuple[Space, Space]:
        if self.before is not None:
            self.before()
        folder = open_folder(self.path, create=False, options=OPTIONS)
        return folder.base, folder.views


@dataclass
class Cadence:
    """A store with one cadence; use as a context manager.

    Args:
        path: where its folder is made.
        views: the views by name, in an order in which views come before those that read them.
        tables: the base tables.
    """

    path: Path
    views: Mapping[str, str]
    tables: Sequence[Table] = (ORDERS, CUSTOMERS)
    stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.folder = self.stack.enter_context(open_folder(self.path, options=OPTIONS))
        relations = FixedRelations([Relation(t.id, t.name, "table", t.schema, t.key) for t in self.tables])
        plans, schemas = {}, {t.id: t.schema for t in self.tables}
        for id_, (name, sql) in enumerate(self.views.items(), start=100):
            plans[id_] = plan_view(sql, relations, Session())
            relations.add(_relation(id_, name, plans[id_]))
        compilation = compile_views(plans, tuple(plans), schemas, CADENCE)
        self.members = Members(CADENCE, 1, "signature", compilation, {t.id: t for t in self.tables})
        with self.folder.views.write() as txn:
            write_cadence(txn, CadenceRecord(CADENCE, 0, 0))
        self.store = TableStore(self.folder.base)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.close()

    @property
    def levels(self) -> int:
        return self.members.compilation.circuit.levels

    def commit(self, *operations: Operation) -> None:
        self.store.commit(operations)

    def plan(self) -> EpochPlan:
        with self.read_base() as base, self.folder.views.read() as views:
            plan = plan_epoch(base, views, self.members, 1_000_000)
        assert plan is not None
        return plan

    def read_base(self) -> AbstractContextManager[ReadTransaction]:
        return self.folder.base.read()

    def publish(self, plan: EpochPlan, result: EpochResult) -> int:
        return publish(self.folder.views, plan, result.writes, result.executor, SYSTEM_CLOCK)

    def state(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """Return all published state, but for the records of publishing, which tell executor and time."""
        with self.folder.views.read() as txn:
            return {name: list(txn.scan(name)) for name in txn.databases() if name != "published" and txn.count(name)}
