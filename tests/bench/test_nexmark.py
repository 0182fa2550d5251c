"""Nexmark's tables, events and queries."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import viewkeeper as vk
from bench.answers import differences
from bench.nexmark.changes import Happenings
from bench.nexmark.events import generate, rounds
from bench.nexmark.queries import NUMBERS, query
from bench.nexmark.tables import NAMES, create_table
from tests.integration.answers import session_of_tables

EVENTS = 10_000


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return generate(EVENTS, seed=3)


def opened(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection


def test_events_come_in_their_proportions_and_fit_together(tables: dict[str, pa.Table]) -> None:
    assert {name: len(tables[name]) for name in ("person", "auction", "bid")} == {
        "person": 200,
        "auction": 600,
        "bid": 9_200,
    }
    assert pc.all(pc.is_in(tables["bid"]["auction"], tables["auction"]["id"])).as_py()
    assert pc.all(pc.is_in(tables["bid"]["bidder"], tables["person"]["id"])).as_py()
    assert pc.all(pc.is_in(tables["auction"]["seller"], tables["person"]["id"])).as_py()
    assert all(generate(EVENTS, seed=3)[name].equals(tables[name]) for name in NAMES)
    assert not generate(EVENTS, seed=4)["bid"].equals(tables["bid"])


def test_rounds_are_all_of_the_events_once(tables: dict[str, pa.Table]) -> None:
    parts = list(rounds(tables, 4))
    for name in ("person", "auction", "bid"):
        assert pa.concat_tables([part[name] for part in parts]).equals(tables[name])
    assert [("side_input" in part) for part in parts] == [True, False, False, False]


def test_a_stream_is_what_its_rounds_come_to() -> None:
    stream = Happenings(EVENTS, seed=5)
    bids = {row["id"]: row for row in stream.tables["bid"].to_pylist()}
    assert len(bids) == 9_200
    for part in (0.01, 0.02):
        taken = stream.take(part)
        assert taken.changes == part * EVENTS
        for key in taken.deletes["bid"]["id"].to_pylist():
            del bids[key]
        bids |= {row["id"]: row for row in taken.puts["bid"].to_pylist()}
    assert {row["id"]: row for row in stream.tables["bid"].to_pylist()} == bids
    assert sum(len(stream.tables[name]) for name in ("person", "auction")) == 812
    with pytest.raises(ValueError, match="used up"):
        stream.take(0.5)


def test_the_events_fit_the_tables(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    with vk.connect(tmp_path / "nexmark.vk", durability="none") as db:
        for name in NAMES:
            db.sql(create_table(name))
            db.put_batch(name, tables[name].slice(0, 500))
        for name in NAMES:
            assert db.table(name).to_arrow().equals(tables[name].slice(0, 500).combine_chunks()), name


def test_every_query_finds_rows(tables: dict[str, pa.Table]) -> None:
    connection = opened(tables)
    assert {number: len(connection.sql(query(number)).fetchall()) > 0 for number in NUMBERS} == dict.fromkeys(
        NUMBERS, True
    )


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_duckdb_agree_on_all_queries(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    with session_of_tables(NAMES) as spark:
        for name, rows in tables.items():
            pq.write_table(rows, tmp_path / f"{name}.parquet")
            spark.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(name)
        connection = opened(tables)
        for number in NUMBERS:
            text = query(number)
            assert differences(spark.sql(text).toArrow(), connection.sql(text).to_arrow_table()) == [], number
