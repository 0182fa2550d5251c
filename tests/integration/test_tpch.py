"""All of TPC-H's 22 queries as views of one store, equal to Spark's answers after every round of refreshes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from bench.tpch.data import generate, load
from bench.tpch.queries import NUMBERS, query
from bench.tpch.refreshes import Refreshes, Round
from bench.tpch.tables import NAMES, create_table
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.executors.spark.types import from_spark_schema, to_spark_schema
from viewkeeper.zset.schema import Schema

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCALE = 0.01
QUERIES = {f"q{number:02d}": query(number, SCALE) for number in NUMBERS}
# How many of the orders are inserted and how many deleted, of customer, part and supplier updated; by which executor.
ROUNDS = ((0.002, "local"), (0.01, "spark"), (0.1, "local"), (0.0001, "local"))
# The rows of an answer are a bag: TPC-H's LIMITs stand behind orders without ties.
Answer = tuple[Schema, Counter[tuple[Any, ...]]]


def answer(schema: Schema, rows: pa.Table) -> Answer:
    return schema, Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = spark_session().newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    for name in NAMES:
        session.catalog.dropTempView(name)


def answers_of_spark(session: SparkSession, db: vk.Database) -> dict[str, Answer]:
    """Return Spark's own answers over the base rows."""
    for name in NAMES:
        base = db.table(name)
        frame = session.createDataFrame(base.to_arrow(), to_spark_schema(base.schema))
        frame.createOrReplaceTempView(name)

    def answer_of(text: str) -> Answer:
        frame = session.sql(text)
        return answer(from_spark_schema(frame.schema), frame.toArrow())

    # Most of a small query's time Spark spends planning it and starting tasks.
    with ThreadPoolExecutor(4) as threads:
        return dict(zip(QUERIES, threads.map(answer_of, QUERIES.values()), strict=True))


def write(db: vk.Database, changes: Round) -> None:
    """Write a round in one transaction."""
    with db.transaction() as tx:
        for name, keys in changes.deletes.items():
            for key in keys.to_pylist():
                tx.delete(name, key)
        for name, rows in changes.puts.items():
            tx.put_batch(name, rows)


def check(session: SparkSession, db: vk.Database, base: dict[str, pa.Table]) -> None:
    assert {name: len(db.table(name).to_arrow()) for name in NAMES} == {name: len(rows) for name, rows in base.items()}
    expected = answers_of_spark(session, db)
    found = {name: answer(db.table(name).schema, db.table(name).to_arrow()) for name in QUERIES}
    differing = [name for name in QUERIES if found[name] != expected[name]]
    assert not differing, {name: (found[name], expected[name]) for name in differing}
    assert sum(bool(rows) for _, rows in found.values()) >= 20


def test_all_queries_are_maintained_under_refreshes(tmp_path: Path, spark: SparkSession) -> None:
    tables = load(generate(tmp_path, SCALE))
    settings: dict[str, Any] = {"durability": "none"}
    with vk.connect(tmp_path / "tpch.vk", executor="local", **settings) as db:
        for name in NAMES:
            db.sql(create_table(name))
            db.put_batch(name, tables[name])
        for name, text in QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {text}")
        check(spark, db, tables)
    stream = Refreshes(tables, seed=8)
    for part, executor in ROUNDS:
        with vk.connect(tmp_path / "tpch.vk", executor=executor, **settings) as db:
            write(db, stream.take(part))
            done = db.refresh()
            assert (done.epochs, done.executors) == (1, (executor,))
            check(spark, db, stream.tables)
