"""Logs written beforehand, and epochs measured over them.

A *feed* is a store whose tables are filled, whose views are there, and whose log waits: first some small transactions
for the workers to get warm on, then the changes that are measured. Each repetition copies the store, so that a feed is
written once and every repetition meets the same state.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import viewkeeper as vk
from bench.harness import Bench, median
from viewkeeper.coordinator.core import Outcome

EVENTS = "CREATE TABLE events (id BIGINT, g BIGINT, v BIGINT, PRIMARY KEY (id))"
ORDERS = "CREATE TABLE orders (id BIGINT, cust BIGINT, amount BIGINT, PRIMARY KEY (id))"
CUSTOMERS = "CREATE TABLE customers (id BIGINT, region STRING, name STRING, PRIMARY KEY (id))"
COLUMNS = {"events": ["id", "g", "v"], "orders": ["id", "cust", "amount"], "customers": ["id", "region", "name"]}
LOG_ROWS_AN_EPOCH = 8_000_000
# The JVM compiles what it runs often: its first epochs cost several times the later ones.
WARM_EPOCHS = 6
# Keys of warming rows, which no workload uses.
_WARM_KEY = 1 << 60


@dataclass(frozen=True)
class Changes:
    """Some changes of one table, in order; ``op`` is 1 insert, 0 update, −1 delete."""

    table: str
    rows: pa.Table


def changes_of(path: str | Path, table: str) -> Changes:
    """Return a batch of the peers' generator."""
    return Changes(table, pq.read_table(path).select(["op", *COLUMNS[table]]))


def transactions(changes: Changes, size: int) -> Iterator[tuple[pa.Table, list[int]]]:
    """Cut changes into transactions of ``size`` and yield what each comes to: rows to put, keys to delete."""
    columns = COLUMNS[changes.table]
    for start in range(0, len(changes.rows), size):
        part = changes.rows.slice(start, size)
        ids, op = part["id"].to_numpy(), part["op"].to_numpy()
        last = len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]
        stays = op[last] >= 0
        yield part.select(columns).take(pa.array(last[stays])), ids[last[~stays]].tolist()


def write(db: vk.Database, changes: Changes, size: int) -> None:
    """Write changes in transactions of ``size``."""
    for rows, gone in transactions(changes, size):
        with db.transaction() as tx:
            if len(rows) == 1:
                tx.put(changes.table, rows.to_pylist()[0])
            elif len(rows):
                tx.put_batch(changes.table, rows)
            for key in gone:
                tx.delete(changes.table, key)


def fill(db: vk.Database, table: str, rows: pa.Table, rows_a_transaction: int = 500_000) -> None:
    """Put whole rows in large transactions."""
    for start in range(0, len(rows), rows_a_transaction):
        db.put_batch(table, rows.slice(start, rows_a_transaction))


@dataclass(frozen=True)
class Feed:
    """A store with a waiting log.

    Args:
        path: the store's folder.
        stops: log positions at which the warming epochs end.
        changes: how many changes wait behind them.
        durability: how the store is opened.
    """

    path: Path
    stops: tuple[int, ...]
    changes: int
    durability: str = "none"


def make_feed(
    folder: Path,
    define: Iterable[str],
    views: Iterable[str],
    before: Iterable[Changes],
    measured: Iterable[Changes],
    size: int,
    durability: str = "none",
) -> Feed:
    """Write a feed.

    Args:
        folder: where.
        define: CREATE TABLE statements.
        views: CREATE MATERIALIZED VIEW statements.
        before: changes that the views show already when the log is measured.
        measured: the changes to be measured.
        size: changes a transaction.
        durability: how the store is opened for measuring; it is written without forcing anything to disk.
    """
    path = folder / "feed.vk"
    stops, count = [], 0
    measured = list(measured)
    with vk.connect(path, durability="none", executor="local", epoch_rows_max=LOG_ROWS_AN_EPOCH) as db:
        for statement in (*define, *views):
            db.sql(statement)
        for changes in before:
            write(db, changes, 100_000)
        db.refresh()
        for number in range(WARM_EPOCHS):
            tables = dict.fromkeys(changes.table for changes in measured)
            stops += [db.put(table, _warming_row(table, number)).sequence_number for table in tables]
        for changes in measured:
            write(db, changes, size)
            count += len(changes.rows)
    return Feed(path, tuple(stops), count, durability)


def _warming_row(table: str, number: int) -> dict[str, Any]:
    """Return a row that differs from the one before: one that does not would leave nothing in the log."""
    texts = {"region", "name"}
    *others, last = COLUMNS[table]
    row: dict[str, Any] = {name: "warm" if name in texts else _WARM_KEY for name in others}
    return {**row, last: f"warm {number}" if last in texts else number}


@dataclass(frozen=True)
class Measured:
    """One measured catching up.

    Args:
        seconds: planned to published, all epochs of all cadences.
        core_seconds: processor time of this process, its JVM and its workers meanwhile: unlike ``seconds`` it tells
            little of what else the machine was doing.
        outcomes: the epochs.
    """

    seconds: float
    core_seconds: float
    outcomes: tuple[Outcome, ...]

    @property
    def log_rows(self) -> int:
        """Delta rows of the log: an update has two."""
        return sum(outcome.log_rows for outcome in self.outcomes)


def measure(bench: Bench, feed: Feed, executor: str, after: Callable[[vk.Database], None] | None = None) -> Measured:
    """Return the middle one of the scale's repetitions.

    Args:
        bench: the run.
        feed: the store to copy and catch up.
        executor: ``local`` or ``spark``.
        after: called with the caught-up store of the first repetition.
    """
    runs = []
    for number in range(bench.scale.repeats):
        with bench.temporary("copy") as folder:
            shutil.copytree(feed.path, folder / "copy.vk")
            settings: dict[str, Any] = {
                "executor": executor,
                "durability": feed.durability,
                "epoch_rows_max": LOG_ROWS_AN_EPOCH,
            }
            with vk.connect(folder / "copy.vk", **settings) as db:
                for stop in feed.stops:
                    catch_up(db, stop)
                runs.append(catch_up(db))
                if after is not None and number == 0:
                    after(db)
    middle = median([run.seconds for run in runs])
    return min(runs, key=lambda run: abs(run.seconds - middle))


def catch_up(db: vk.Database, position: int | None = None) -> Measured:
    """Run the epochs that wait, in this process, up to ``position`` or the log's end."""
    coordinator = db._engine.coordinator
    position = coordinator.head() if position is None else position
    outcomes: list[Outcome] = []
    before = _core_seconds()
    for cadence in dict.fromkeys(view.cadence for view in coordinator.catalog().views.values()):
        outcomes += coordinator.catch_up(cadence, position)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return Measured(seconds, _core_seconds() - before, tuple(outcomes))


def _core_seconds() -> float:
    """Return the processor time of this process and of all that it has started and that still runs."""
    total = 0.0
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
