"""All of TPC-H's 22 queries as views of one store, equal to Spark's answers after every round of refreshes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from bench.suites.prepared import write
from bench.tpch.data import generate, load
from bench.tpch.queries import NUMBERS, query
from bench.tpch.refreshes import Refreshes
from bench.tpch.tables import NAMES, create_table
from tests.integration.answers import check_views, session_of_tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCALE = 0.01
QUERIES = {f"q{number:02d}": query(number, SCALE) for number in NUMBERS}
# How many of the orders are inserted and how many deleted, of customer, part and supplier updated; by which executor.
ROUNDS = ((0.002, "local"), (0.01, "spark"), (0.1, "local"), (0.0001, "local"))


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    with session_of_tables(NAMES) as session:
        yield session


def check(session: SparkSession, db: vk.Database, base: dict[str, pa.Table]) -> None:
    assert {name: len(db.table(name).to_arrow()) for name in NAMES} == {name: len(rows) for name, rows in base.items()}
    # TPC-H's LIMITs stand behind orders without ties.
    assert check_views(session, db, NAMES, QUERIES) >= 20


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
