"""What ``viewkeeper bench`` measures: views over orders and customers, kept fresh and computed anew, on this machine.

For each executor a store of its own is filled. Then the log is fed in transactions, and what is measured is what a user
meets: how many changes a second a view takes in, how long a small batch takes beside computing the view anew, how fresh
a view is with a maintainer, how long a get takes. At the end each view must equal its query, computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa

from viewkeeper.cli.instruments import get_seconds, percentile, seconds_until
from viewkeeper.clock import SYSTEM_CLOCK, seeded
from viewkeeper.database import Database, connect
from viewkeeper.errors import ViewFailed

_TABLES = """
CREATE TABLE customers (id BIGINT, region STRING, name STRING, PRIMARY KEY (id));
CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, PRIMARY KEY (id))
"""
SUMS, JOIN, FRESH = "sums", "joined", "fresh"
_SUMS_QUERY = "SELECT customer, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY customer"
QUERIES = {
    SUMS: _SUMS_QUERY,
    JOIN: "SELECT o.id, o.customer, o.amount, c.name, c.region FROM orders o JOIN customers c ON o.customer = c.id",
}
_KINDS = {SUMS: "sums by customer", JOIN: "orders with their customers"}
# One of so many changes is a customer's, which changes all of its orders' joined rows.
_CUSTOMER_PART = 100
_ORDERS_A_CUSTOMER = 10
_ROWS_A_TRANSACTION = 1_000
# Changes an epoch: a usual small one, and one as large as suits the executor.
_SMALL, _LARGE = 1_000, {"local": 10_000, "spark": 100_000}
_WRITES_A_SECOND = 50
_GETS = 20_000
# Behind the time that is given, measuring ends; so much of it is for each view's changes, and for freshness.
_CHANGES_PART, _FRESH_PART = 0.35, 0.3
_STEPS = 6
# Of any size in process, or of any size by Spark: what computes a view anew is what keeps it.
_QUERY_ROWS = {"local": 1 << 62, "spark": 1}
# What one transaction changes and deletes must be there.
ROWS_MIN = 2 * _ROWS_A_TRANSACTION
_REGIONS = ("north", "east", "south", "west")

Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Figure:
    """One figure.

    Args:
        name: a word for programs.
        what: what was measured, for people.
        executor: what ran the epochs, and the recomputation.
        value: the figure.
        unit: its unit.
    """

    name: str
    what: str
    executor: str
    value: float
    unit: str


def measured(folder: Path, executor: str, rows: int, seconds: float, report: Report) -> Iterator[Figure]:
    """Yield the figures of one executor, as they are measured.

    Args:
        folder: where the store may lie.
        executor: ``local`` or ``spark``.
        rows: orders in the store; at least ``ROWS_MIN``.
        seconds: about how long to measure; filling and starting come on top.
        report: called with steps done, steps in all, and what comes now.

    Raises:
        ViewFailed: ``VIEW_WRONG`` where a view is not what its query gives.
    """
    with connect(folder / "bench.vk", executor=executor, query_rows_local=_QUERY_ROWS[executor]) as db:
        report(0, _STEPS, f"{executor}: filling {rows:,} orders")
        feed = _Feed(db, rows)
        for name, query in QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH ON DEMAND REFRESH POLICY INCREMENTAL AS {query}")
        for number, name in enumerate(QUERIES):
            report(1 + 2 * number, _STEPS, f"{executor}: changes of {_KINDS[name]}")
            yield _throughput(feed, name, executor, seconds * _CHANGES_PART / len(QUERIES))
            report(2 + 2 * number, _STEPS, f"{executor}: {_KINDS[name]} computed anew")
            yield from _against_recomputation(feed, name, executor)
        report(5, _STEPS, f"{executor}: freshness and gets")
        yield from _freshness(feed, executor, seconds * _FRESH_PART)
        taken = get_seconds(db, SUMS, feed.shown_customers(_GETS))
        for word, part in (("p50", 0.5), ("p99", 0.99)):
            yield Figure(f"get_{word}", f"get by key, {word}", executor, percentile(taken, part) * 1e6, "µs")
        report(_STEPS, _STEPS, "done")


def _throughput(feed: _Feed, view: str, executor: str, seconds: float) -> Figure:
    """Return how many changes a second a view takes in, in epochs of many; writing them does not count."""
    feed.write(_SMALL)
    feed.db.refresh(view)  # warm
    over = SYSTEM_CLOCK.monotonic_seconds() + seconds
    changes, spent = 0, 0.0
    while not changes or SYSTEM_CLOCK.monotonic_seconds() < over:
        feed.write(_LARGE[executor])
        spent += feed.db.refresh(view).seconds
        changes += _LARGE[executor]
    what = f"{_KINDS[view]}: changes maintained, {_LARGE[executor]:,} an epoch"
    return Figure(f"{view}_changes", what, executor, changes / spent, "changes/s")


def _against_recomputation(feed: _Feed, view: str, executor: str) -> Iterator[Figure]:
    """Yield how long a small batch takes, how long its query takes anew, and how many times as long that is."""
    refreshing, computing = [], []
    for _ in range(3):
        feed.write(_SMALL)
        refreshing.append(feed.db.refresh(view).seconds)
    for _ in range(2):
        started = SYSTEM_CLOCK.monotonic_seconds()
        expected = feed.db.sql(QUERIES[view]).to_arrow()
        computing.append(SYSTEM_CLOCK.monotonic_seconds() - started)
    check_equal(view, feed.db.table(view).to_arrow(), expected)
    # The first recomputation has warmed the second.
    refresh, recompute = median(refreshing), min(computing)
    kind = _KINDS[view]
    yield Figure(f"{view}_refresh", f"{kind}: {_SMALL:,} changes, refreshed", executor, refresh * 1e3, "ms")
    yield Figure(f"{view}_recompute", f"{kind}: computed anew instead", executor, recompute * 1e3, "ms")
    yield Figure(f"{view}_ratio", f"{kind}: anew ÷ refreshed", executor, recompute / refresh, "×")


def check_equal(view: str, shown: pa.Table, expected: pa.Table) -> None:
    """Raise ViewFailed unless a view's rows are those of its query, whose first column is the key of both."""
    order = [(expected.column_names[0], "ascending")]
    if not shown.sort_by(order).equals(expected.sort_by(order)):
        message = f"View {view!r} is not what its query gives, computed anew: please report it with this command."
        raise ViewFailed("VIEW_WRONG", message)


def _freshness(feed: _Feed, executor: str, seconds: float) -> Iterator[Figure]:
    """Yield percentiles of the time from the return of a put to its view's showing it, a maintainer running."""
    db, clock = feed.db, SYSTEM_CLOCK
    db.sql(f"CREATE MATERIALIZED VIEW {FRESH} REFRESH POLICY INCREMENTAL AS {_SUMS_QUERY}")
    taken: list[float] = []
    with db.maintain():
        feed.seconds_until_fresh()  # warm
        over = clock.monotonic_seconds() + seconds
        while not taken or clock.monotonic_seconds() < over:
            began = clock.monotonic_seconds()
            taken.append(feed.seconds_until_fresh())
            clock.sleep(max(0.0, began + 1 / _WRITES_A_SECOND - clock.monotonic_seconds()))
    for word, part in (("p50", 0.5), ("p99", 0.99)):
        what = f"put returns → get shows it, {word}, one write at a time"
        yield Figure(f"fresh_{word}", what, executor, percentile(taken, part) * 1e3, "ms")


class _Feed:
    """The tables' contents, and changes of them: new, changed and deleted orders, and changed customers.

    Args:
        db: an empty store.
        rows: how many orders it begins with; at least ``ROWS_MIN``.
    """

    def __init__(self, db: Database, rows: int) -> None:
        self.db = db
        self._chance = seeded(17)
        self._customers = rows // _ORDERS_A_CUSTOMER
        self._oldest, self._next, self._newest_customer = 0, rows, self._customers
        db.sql(_TABLES)
        names = [f"customer {number}" for number in range(self._customers)]
        regions = [_REGIONS[number % len(_REGIONS)] for number in range(self._customers)]
        db.put_batch("customers", pa.table({"id": range(self._customers), "region": regions, "name": names}))
        db.put_batch("orders", self._orders(list(range(rows))))

    def _orders(self, ids: list[int]) -> pa.Table:
        customers = [self._chance.randrange(self._customers) for _ in ids]
        amounts = [self._chance.randrange(1, 1_000) for _ in ids]
        return pa.table({"id": ids, "customer": customers, "amount": amounts})

    def shown_customers(self, count: int) -> list[int]:
        """Return the keys of customers who have orders, in no order."""
        there = self.db.table(SUMS).to_arrow()["customer"].to_pylist()
        return self._chance.choices(there, k=count)

    def write(self, count: int) -> None:
        """Write ``count`` changes, in transactions of a usual size."""
        for _ in range(count // _ROWS_A_TRANSACTION):
            self._write_transaction()

    def _write_transaction(self) -> None:
        """Write new orders (a quarter), deletes of the oldest (a quarter), changed customers, and changed orders."""
        fresh = _ROWS_A_TRANSACTION // 4
        moved = _ROWS_A_TRANSACTION // _CUSTOMER_PART
        gone = range(self._oldest, self._oldest + fresh)
        there, added = range(gone.stop, self._next), range(self._next, self._next + fresh)
        self._oldest, self._next = gone.stop, added.stop
        changed = self._chance.sample(there, _ROWS_A_TRANSACTION - 2 * fresh - moved)
        people = [
            {"id": key, "region": self._chance.choice(_REGIONS), "name": f"customer {key} of {added.stop}"}
            for key in self._chance.sample(range(self._customers), moved)
        ]
        with self.db.transaction() as tx:
            tx.put_batch("orders", self._orders([*changed, *added]))
            for key in gone:
                tx.delete("orders", key)
            tx.put_batch("customers", people)

    def seconds_until_fresh(self) -> float:
        """Put an order of a new customer, and return after how long the view shows it."""
        customer = self._newest_customer
        self._newest_customer += 1
        self.db.put("orders", {"id": self._next, "customer": customer, "amount": 7})
        self._next += 1
        return seconds_until(self.db, FRESH, customer, {"total": 7, "orders": 1})
