"""Changes a second: changes of a log written beforehand ÷ seconds from planned to published; an update is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.data import peer_data
from bench.feeding import CUSTOMERS, EVENTS, ORDERS, Changes, Feed, changes_of, make_feed, measure
from bench.harness import Bench, Row
from bench.workloads.beside import recompute


def maintained(name: str, query: str) -> str:
    """Return the statement of a view that follows the changes always.

    Each repetition meets the store's first large epoch, which policy AUTO would use to try what recomputing costs.
    """
    return f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {query}"


SUM_COUNT = maintained("agg", "SELECT g, SUM(v) AS s, COUNT(*) AS n FROM events GROUP BY g")
SELECTION = "SELECT id, g, v + 1 AS w FROM events WHERE v >= 50000"
INDEX = "SELECT id, g, v FROM events"
MINMAX = "SELECT g, MIN(v) AS low, MAX(v) AS high FROM events GROUP BY g"
JOINED = maintained(
    "joined", "SELECT o.id, o.cust, o.amount, c.region, c.name FROM orders o JOIN customers c ON o.cust = c.id"
)
REGIONS = maintained(
    "agg",
    "SELECT c.region, SUM(o.amount) AS s, COUNT(*) AS n FROM orders o JOIN customers c ON o.cust = c.id"
    " GROUP BY c.region",
)
ROWS_A_TRANSACTION = 1_000
# With one change a transaction, fewer changes do: the writer alone takes 10 µs for each.
SINGLES_PART = 10


def batches(bench: Bench, workload: str) -> list[Changes]:
    """Return the batches of W1 or W2."""
    paths = sorted(Path(peer_data(bench), workload).glob("batch_*.parquet"))
    return [changes_of(path, "events") for path in paths]


def _report(
    bench: Bench, name: str, what: str, feed: Feed, target: str = "", executors: Sequence[str] = ("spark", "local")
) -> dict[str, float]:
    """Measure the epochs of a feed, and return the seconds that they take by executor."""
    seconds: dict[str, float] = {}
    for executor in bench.scale.executors:
        if executor not in executors:
            continue
        done = measure(bench, feed, executor)
        row = Row(name, what, feed.changes / done.seconds, "changes/s", executor, feed.durability)
        row.target = target
        row.details = {
            "changes": feed.changes,
            "log_rows": done.log_rows,
            "seconds": done.seconds,
            "core_seconds": done.core_seconds,
            "epochs": len(done.outcomes),
            "view_rows": sum(outcome.view_rows for outcome in done.outcomes),
        }
        bench.add(row)
        seconds[executor] = done.seconds
    return seconds


def _beside_recomputation(bench: Bench, name: str, query: str, what: str) -> None:
    first, *rest = batches(bench, "W1")
    with bench.temporary(name) as folder:
        feed = make_feed(folder, [EVENTS], [maintained("v", query)], [first], rest, ROWS_A_TRANSACTION)
        recompute(bench, name, what, feed, [query], _report(bench, name, what, feed, name))


def _sums(bench: Bench, name: str, what: str) -> None:
    first, *rest = batches(bench, name)
    with bench.temporary(name) as folder:
        feed = make_feed(folder, [EVENTS], [SUM_COUNT], [first], rest, ROWS_A_TRANSACTION)
        _report(bench, name, f"{what}, log in transactions of 1,000", feed, name)
    for size in bench.scale.fed:
        some = rest[: max(1, len(rest) // SINGLES_PART)] if size == 1 else rest
        with bench.temporary(name) as folder:
            feed = make_feed(folder, [EVENTS], [SUM_COUNT], [first], some, size)
            _report(bench, name, f"{what}, log in transactions of {size:,}", feed, executors=("spark",))


def w1(bench: Bench) -> None:
    """SUM and COUNT by 10,000 groups, also with every commit forced to disk."""
    _sums(bench, "W1", "SUM+COUNT, 10,000 groups")
    first, *rest = batches(bench, "W1")
    with bench.temporary("W1") as folder:
        feed = make_feed(folder, [EVENTS], [SUM_COUNT], [first], rest, ROWS_A_TRANSACTION, "commit")
        _report(bench, "W1", "SUM+COUNT, 10,000 groups, durable", feed)


def w2(bench: Bench) -> None:
    """SUM and COUNT by a million possible groups."""
    _sums(bench, "W2", "SUM+COUNT, 1 M groups")


def selection(bench: Bench) -> None:
    """A filter that half of the rows pass, and a computed column."""
    _beside_recomputation(bench, "selection", SELECTION, "selection and projection, half of the rows pass")


def index(bench: Bench) -> None:
    """One row of the view for each base row."""
    _beside_recomputation(bench, "index", INDEX, "one view row a base row")


def w3(bench: Bench) -> None:
    """A join on a foreign key, both sides changing: joined rows, and sums by region."""
    folder = Path(peer_data(bench), "W3")
    load = changes_of(folder / "customers" / "load.parquet", "customers")
    pairs: list[Changes] = []
    for orders in sorted((folder / "orders").glob("batch_*.parquet")):
        pairs += [changes_of(orders, "orders"), changes_of(folder / "customers" / orders.name, "customers")]
    with bench.temporary("W3") as place:
        views = [JOINED, REGIONS]
        feed = make_feed(place, [ORDERS, CUSTOMERS], views, [load, *pairs[:2]], pairs[2:], ROWS_A_TRANSACTION)
        what = "join on a foreign key, both sides changing, joined rows and sums by region"
        _report(bench, "W3", what, feed, "W3")


def minmax(bench: Bench) -> None:
    """MIN and MAX where half of the changes delete the minimum of a group."""
    base, changes = _minimum_deletes(bench.scale.changes)
    with bench.temporary("minmax") as folder:
        feed = make_feed(folder, [EVENTS], [maintained("ends", MINMAX)], [base], [changes], ROWS_A_TRANSACTION)
        what = "MIN+MAX, 10,000 groups, half of the changes delete a group's minimum"
        recompute(bench, "minmax", what, feed, [MINMAX], _report(bench, "minmax", what, feed))


def _minimum_deletes(count: int) -> tuple[Changes, Changes]:
    """Return ``count`` // 2 base rows, then deletes of minima and inserts in turn, half as many."""
    random = np.random.default_rng(17)
    rows = max(count // 2, 100)
    groups = random.integers(0, min(10_000, rows // 10), rows)
    values = random.integers(0, 10**9, rows)
    base = _table(np.ones(rows, np.int8), np.arange(rows), groups, values)
    # The smallest values of each group, the very smallest of all groups first.
    order = np.lexsort((values, groups))
    starts = np.r_[0, np.flatnonzero(np.diff(groups[order])) + 1]
    rank = np.arange(rows) - np.repeat(starts, np.diff(np.r_[starts, rows]))
    victims = order[np.argsort(rank, kind="stable")][: rows // 4]
    fresh = np.arange(rows, rows + len(victims))
    width = 2 * len(victims)
    op, ids, new_groups, new_values = (np.empty(width, np.int64) for _ in range(4))
    op[0::2], op[1::2] = -1, 1
    ids[0::2], ids[1::2] = victims, fresh
    new_groups[0::2], new_groups[1::2] = groups[victims], random.integers(0, groups.max() + 1, len(fresh))
    new_values[0::2], new_values[1::2] = values[victims], random.integers(10**8, 10**9, len(fresh))
    return base, _table(op, ids, new_groups, new_values)


def _table(op: np.ndarray, ids: np.ndarray, groups: np.ndarray, values: np.ndarray) -> Changes:
    return Changes("events", pa.table({"op": op, "id": ids, "g": groups, "v": values}))
