"""REFRESH POLICY: stepping against recomputing by how much has changed, where they cross, and what AUTO takes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import CUSTOMERS, LOG_ROWS_AN_EPOCH, ORDERS, fill
from bench.harness import Bench, Row, median
from viewkeeper.clock import SYSTEM_CLOCK

SHAPES = {
    "SUM and COUNT": "SELECT cust, SUM(amount) AS s, COUNT(*) AS n FROM orders GROUP BY cust",
    "join": "SELECT o.id, o.amount, c.region, c.name FROM orders o JOIN customers c ON o.cust = c.id",
    "window": "SELECT id, cust, SUM(amount) OVER (PARTITION BY cust ORDER BY id) AS s FROM orders",
}
POLICIES = ("INCREMENTAL", "FULL", "AUTO")
_ROWS_A_TRANSACTION = 10_000


@dataclass(frozen=True)
class _Way:
    """By which executor epochs are measured, and over what.

    Args:
        executor: its name.
        part_of_changes: base rows ÷ the scale's changes.
        parts: of the rows, how many change, in the order in which the views meet them; beyond 1 each row has changed
            several times since the last epoch.
        first_rounds: rounds that AUTO gets to measure both ways, as it does in a store's first epochs.
        rounds: how often each is measured behind them.
    """

    executor: str
    part_of_changes: float
    parts: tuple[float, ...]
    first_rounds: int
    rounds: int


_HERE = _Way("local", 0.1, (0.01, 0.1, 0.5, 1.0, 4.0), 4, 5)
# Small epochs first, then by far the largest: of a million rows little is known then.
_BY_SPARK = _Way("spark", 1.0, (0.001, 0.6, 0.1, 0.01), 3, 3)


@dataclass(frozen=True)
class _Orders:
    """Orders with their amounts drawn anew, a part of them at a time, spread over the table."""

    count: int
    customers: int

    def rows(self, part: float, number: int) -> pa.Table:
        some = np.arange(max(round(self.count * min(part, 1.0)), 1))
        ids = some * self.count // len(some)
        amounts = (ids * 7 + number * 13) % 1_000
        return pa.table({"id": ids, "cust": (ids * 31 + number) % self.customers, "amount": amounts})


def run(bench: Bench) -> None:
    """Measure how long each policy takes to follow 1, 10, 50, 100 and 400 % of the rows changed, in process."""
    for shape in SHAPES:
        _measure(bench, "policy", shape, _HERE)


def sums_by_spark(bench: Bench) -> None:
    """Measure how long each policy takes by Spark to follow 0.1 to 60 % of the rows changed: SUM and COUNT."""
    _measure(bench, "policy-spark-sums", "SUM and COUNT", _BY_SPARK)


def join_by_spark(bench: Bench) -> None:
    """Measure how long each policy takes by Spark to follow 0.1 to 60 % of the rows changed: a join."""
    _measure(bench, "policy-spark-join", "join", _BY_SPARK)


def _measure(bench: Bench, measure: str, shape: str, way: _Way) -> None:
    def add(what: str, value: float, unit: str) -> None:
        bench.add(Row(measure, what, value, unit, way.executor, "none"))

    rows = round(bench.scale.changes * way.part_of_changes)
    orders = _Orders(rows, max(rows // 20, 1))
    seconds = _followed(bench, orders, SHAPES[shape], way)
    for part in sorted(way.parts):
        for policy in POLICIES:
            add(f"{shape}, {_percent(part)} of {orders.count:,} rows changed, {policy}", seconds[policy][part], "s")
        better = min(seconds[policy][part] for policy in ("INCREMENTAL", "FULL"))
        add(f"{shape}, {_percent(part)} changed: AUTO ÷ the better one", seconds["AUTO"][part] / better, "×")
    crossing = _crossing(seconds["INCREMENTAL"], seconds["FULL"])
    add(f"{shape}: recomputing is quicker from so much changed on", 100 * crossing, "%")


def _percent(part: float) -> str:
    return f"{100 * part:g}%"


def _followed(bench: Bench, orders: _Orders, query: str, way: _Way) -> dict[str, dict[float, float]]:
    """Return the median seconds of an epoch by policy and by part of the rows changed.

    One view of each policy, each its own cadence, over the same tables: all meet the same machine at the same time.
    """
    found: dict[str, dict[float, float]] = {policy: {} for policy in POLICIES}
    with bench.temporary("policy") as folder:
        settings = {"durability": "none", "executor": way.executor, "epoch_rows_max": LOG_ROWS_AN_EPOCH}
        with vk.connect(folder / "policy.vk", **settings) as db:
            _prepare(db, orders, query)
            for part in way.parts:
                taken: dict[str, list[float]] = {policy: [] for policy in POLICIES}
                for number in range(way.first_rounds + way.rounds):
                    for again in range(max(int(part), 1)):
                        fill(db, "orders", orders.rows(part, 10 * number + again + 1), _ROWS_A_TRANSACTION)
                    # What waits makes recomputing no dearer.
                    policies = POLICIES if number >= way.first_rounds else ("INCREMENTAL", "AUTO")
                    for turn in range(len(policies)):
                        policy = policies[(number + turn) % len(policies)]
                        taken[policy].append(_refreshed(db, policy))
                for policy in POLICIES:
                    found[policy][part] = median(taken[policy][-way.rounds :])
    return found


def _prepare(db: vk.Database, orders: _Orders, query: str) -> None:
    db.sql(ORDERS)
    db.sql(CUSTOMERS)
    ids = np.arange(orders.customers)
    names = pa.table({"id": ids, "region": [f"r{i % 10}" for i in ids], "name": [f"customer {i}" for i in ids]})
    fill(db, "customers", names)
    fill(db, "orders", orders.rows(1.0, 0))
    for policy in POLICIES:
        db.sql(f"CREATE MATERIALIZED VIEW v_{policy} REFRESH ON DEMAND REFRESH POLICY {policy} AS {query}")


def _refreshed(db: vk.Database, policy: str) -> float:
    started = SYSTEM_CLOCK.monotonic_seconds()
    db.refresh(f"v_{policy}")
    return SYSTEM_CLOCK.monotonic_seconds() - started


def _crossing(stepping: dict[float, float], recomputing: dict[float, float]) -> float:
    """Return from which part of the rows on recomputing is quicker, on lines between measurements; at most the last."""
    gains = [(part, stepping[part] - recomputing[part]) for part in sorted(stepping)]
    if gains[0][1] > 0:
        return gains[0][0]
    for (below, loss), (above, gain) in pairwise(gains):
        if gain > 0:
            return below + (above - below) * -loss / (gain - loss)
    return gains[-1][0]
