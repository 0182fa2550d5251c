"""Full recomputation beside an epoch, of the same views over the tables as the epoch leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow.parquet as pq

import viewkeeper as vk
from bench.feeding import COLUMNS, Feed
from bench.harness import Bench, Row
from bench.recomputation import by_duckdb, by_spark

REPEATS = 3


def recompute(
    bench: Bench, measure: str, what: str, feed: Feed, queries: Sequence[str], epochs: Mapping[str, float]
) -> None:
    """Measure how long Spark and DuckDB take for all views, and print that beside our epochs.

    Args:
        bench: takes the rows.
        measure: the measurement.
        what: what the views are, in words.
        feed: its tables are those that are read.
        queries: of the views, one after the other.
        epochs: the seconds of our epochs by executor.
    """
    with bench.temporary("beside") as folder:
        tables = {}
        with vk.connect(feed.path, durability="none") as db:
            for name in db.tables():
                tables[name] = folder / f"{name}.parquet"
                pq.write_table(db.table(name).to_arrow().select(COLUMNS[name]), tables[name])
        seconds = {}
        if "spark" in bench.scale.executors:
            seconds["Spark"] = sum(by_spark(tables, query, folder, REPEATS) for query in queries)
        with duckdb.connect() as connection:
            for name, path in tables.items():
                connection.execute(f"CREATE TABLE {name} AS FROM '{path}'")
            seconds["DuckDB"] = sum(by_duckdb(connection, query, REPEATS) for query in queries)
    for system, taken in seconds.items():
        details = {"changes": feed.changes, "seconds": taken}
        bench.add(Row(measure, f"{system} recomputes: {what}", taken * 1e3, "ms", details=details))
        for executor, epoch in epochs.items():
            ratio = f"{system}'s recomputation ÷ our epoch of {feed.changes:,} change(s): {what}"
            bench.add(Row(measure, ratio, taken / epoch, "×", executor, feed.durability))
