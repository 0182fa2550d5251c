"""The same delta on base tables of 10⁴ to 10⁷ rows, beside full recomputation as a user would do it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

import viewkeeper as vk
from bench.data import peer_data
from bench.feeding import EVENTS, catch_up, changes_of, fill, write
from bench.harness import Bench, Row, median
from bench.recomputation import by_duckdb, by_spark
from bench.workloads.throughput import SUM_COUNT

QUERY = "SELECT g, SUM(v) AS s, COUNT(*) AS n FROM events GROUP BY g"
DELTA = 1_000
# Of the generator's five batches: the local executor takes some, Spark the others.
BATCHES = {"local": (0, 1, 2), "spark": (3, 4)}
RECOMPUTATIONS = 3


def run(bench: Bench) -> None:
    """Measure epochs of 1,000 changes by both executors at each size, and recomputation by Spark and by DuckDB."""
    folders = sorted(Path(peer_data(bench), "W6").iterdir(), key=lambda path: int(path.name))
    seconds: dict[str, dict[int, float]] = {"spark": {}, "local": {}, "full: spark": {}, "full: duckdb": {}}
    for path in folders:
        size = int(path.name)
        with bench.temporary("base") as folder:
            _epochs(bench, path, folder / "base.vk", seconds)
            if "spark" in bench.scale.executors:
                tables = {"events": path / "base.parquet"}
                seconds["full: spark"][size] = by_spark(tables, QUERY, folder, RECOMPUTATIONS)
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE events AS FROM '{path / 'base.parquet'}'")
            seconds["full: duckdb"][size] = by_duckdb(connection, QUERY, RECOMPUTATIONS)
        for name in ("full: spark", "full: duckdb"):
            if size in seconds[name]:
                what = f"{name.removeprefix('full: ')} recomputes the view over {size:,} base rows"
                bench.add(Row("base_size", what, seconds[name][size] * 1e3, "ms", details={"base_rows": size}))
    if folders:
        _compare(bench, seconds)


def _epochs(bench: Bench, path: Path, store: Path, seconds: dict[str, dict[int, float]]) -> None:
    size = int(path.name)
    with vk.connect(store, durability="none") as db:
        db.sql(EVENTS)
        fill(db, "events", pq.read_table(path / "base.parquet"))
        db.sql(SUM_COUNT)
        db.refresh()
    for executor in bench.scale.executors:
        taken = []
        with vk.connect(store, durability="none", executor=executor) as db:
            for value in range(3):
                db.put("events", {"id": 1 << 60, "g": 0, "v": value})
                catch_up(db)
            for number in BATCHES[executor]:
                write(db, changes_of(path / f"batch_{number}.parquet", "events"), DELTA)
                taken.append(catch_up(db).seconds)
        seconds[executor][size] = median(taken)
        what = f"epoch of {DELTA:,} changes over {size:,} base rows"
        target = "batch_local" if executor == "local" else ""
        row = Row("base_size", what, median(taken) * 1e3, "ms", executor, "none", target, {"base_rows": size})
        bench.add(row)


def _compare(bench: Bench, seconds: dict[str, dict[int, float]]) -> None:
    for executor in bench.scale.executors:
        by_size = seconds[executor]
        ratio = by_size[max(by_size)] / by_size[min(by_size)]
        what = f"epoch of {DELTA:,} changes, {max(by_size):,} ÷ {min(by_size):,} base rows"
        bench.add(Row("base_size", what, ratio, "×", executor, "none", "base_size", {"seconds": by_size}))
        for name in ("full: spark", "full: duckdb"):
            largest = max(by_size)
            if largest not in seconds[name]:
                continue
            what = f"{name.removeprefix('full: ')}'s recomputation ÷ our epoch, {largest:,} base rows"
            bench.add(Row("base_size", what, seconds[name][largest] / by_size[largest], "×", executor, "none"))
