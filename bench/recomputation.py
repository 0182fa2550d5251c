"""Full recomputation as a user would do it: by Spark from Parquet to Parquet, by DuckDB from table to table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb

from bench.harness import median
from viewkeeper.executors.spark.session import spark_session


def by_spark(tables: Mapping[str, Path], query: str, folder: Path, repeats: int) -> float:
    """Return the seconds that Spark takes in a warm session, as a scheduled job would run.

    Args:
        tables: the Parquet file of each table.
        query: the view's query.
        folder: where the answer is written.
        repeats: how often it is measured; the median counts.
    """
    spark = spark_session().newSession()
    # What our fused jobs set is not what a user's SQL runs with.
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for name, path in tables.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)

    def recompute() -> None:
        spark.sql(query).write.mode("overwrite").parquet(str(folder / "recomputed"))

    return _middle_but_first(recompute, repeats)


def by_duckdb(connection: duckdb.DuckDBPyConnection, query: str, repeats: int) -> float:
    """Return the seconds that DuckDB takes with two threads; the answer stays as the table ``recomputed``.

    Args:
        connection: a database that has the tables.
        query: the view's query.
        repeats: how often it is measured; the median counts.
    """
    connection.execute("SET threads = 2")
    return _middle_but_first(lambda: connection.execute(f"CREATE OR REPLACE TABLE recomputed AS {query}"), repeats)


def _middle_but_first(recompute: Callable[[], object], repeats: int) -> float:
    """Return the median of some runs behind a first one, which warms."""
    recompute()
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        recompute()
        taken.append(time.perf_counter() - started)
    return median(taken)
