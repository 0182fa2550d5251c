"""A view is filled alone, and beside another one that keeps what it needs: what borrowing saves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import CUSTOMERS, ORDERS, fill
from bench.harness import Bench, Row, median
from viewkeeper.clock import SYSTEM_CLOCK

# Of the scale's changes; a customer has ten orders.
ORDERS_SHARE = 0.3
ORDERS_A_CUSTOMER = 10
JOIN = "FROM orders o JOIN customers c ON o.cust = c.id"
GROUPS = "SELECT cust, COUNT(*) AS n, SUM(amount) AS total, MAX(amount) AS most FROM orders GROUP BY cust"
RANKS = "SELECT id, cust, amount, RANK() OVER (PARTITION BY cust ORDER BY amount) AS r FROM orders"


class Pair(NamedTuple):
    """Two views, of which the second needs what the first keeps."""

    what: str
    first: str
    second: str


PAIRS = (
    Pair(
        "groups over an equal join",
        f"SELECT o.id, c.region, o.amount {JOIN}",
        f"SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total {JOIN} GROUP BY c.region",
    ),
    Pair(
        "groups of equal groups",
        GROUPS,
        f"SELECT n, COUNT(*) AS customers, SUM(total) AS total, MAX(most) AS most FROM ({GROUPS}) GROUP BY n",
    ),
    Pair(
        "groups of equal ranks",
        RANKS,
        f"SELECT r, COUNT(*) AS n, SUM(amount) AS total, MAX(id + cust) AS most FROM ({RANKS}) GROUP BY r",
    ),
)


def run(bench: Bench) -> None:
    """Measure the filling of the second view of each pair, by both executors."""
    count = int(bench.scale.changes * ORDERS_SHARE)
    for executor in bench.scale.executors:
        with (
            bench.temporary("second") as folder,
            vk.connect(folder / "store.vk", durability="none", executor=executor) as db,
        ):
            _fill_tables(db, count)
            for pair in PAIRS:
                _compare(bench, db, pair, count, executor)


def _fill_tables(db: vk.Database, count: int) -> None:
    customers = max(count // ORDERS_A_CUSTOMER, 1)
    db.sql(ORDERS)
    db.sql(CUSTOMERS)
    ids, chance = np.arange(count), np.random.default_rng(17)
    columns = {"id": ids, "cust": chance.integers(0, customers, count), "amount": chance.integers(0, 1_000, count)}
    fill(db, "orders", pa.table(columns))
    numbers = np.arange(customers)
    texts = {"region": [f"r{i % 100}" for i in numbers], "name": [f"customer {i}" for i in numbers]}
    fill(db, "customers", pa.table({"id": numbers, **texts}))


def _compare(bench: Bench, db: vk.Database, pair: Pair, count: int, executor: str) -> None:
    # The first filling of a kind warms workers and caches.
    _filled(db, "second", pair.second)
    alone, beside = [], []
    for _ in range(bench.scale.repeats):
        alone.append(_filled(db, "second", pair.second))
        db.sql(f"CREATE MATERIALIZED VIEW first AS {pair.first}")
        beside.append(_filled(db, "second", pair.second))
        db.sql("DROP MATERIALIZED VIEW first")
    for how, seconds in (("alone", median(alone)), ("beside the one that lends", median(beside))):
        what = f"filling a view, {pair.what}, {how}, {count:,} orders"
        bench.add(Row("second_view", what, seconds * 1e3, "ms", executor, "none"))
    ratio = median(alone) / median(beside)
    what = f"filling alone ÷ filling by borrowing, {pair.what}"
    bench.add(Row("second_view", what, ratio, "×", executor, "none", "", {"alone": alone, "beside": beside}))


def _filled(db: vk.Database, name: str, query: str) -> float:
    """Create a view, drop it again, and return how long the creation took."""
    started = SYSTEM_CLOCK.monotonic_seconds()
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    seconds = SYSTEM_CLOCK.monotonic_seconds() - started
    db.sql(f"DROP MATERIALIZED VIEW {name}")
    return seconds
