"""TPC-H's tables, data, refreshes and queries, at scale factor 0.01."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import viewkeeper as vk
from bench.answers import differences
from bench.suites.suite import Round
from bench.tpch.data import generate, load
from bench.tpch.queries import NUMBERS, query
from bench.tpch.refreshes import Refreshes
from bench.tpch.tables import NAMES, PRIMARY_KEYS, create_table
from tests.integration.answers import session_of_tables

SCALE = 0.01
ROWS = {
    "region": 5,
    "nation": 25,
    "supplier": 100,
    "customer": 1_500,
    "part": 2_000,
    "partsupp": 8_000,
    "orders": 15_000,
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    return load(generate(tmp_path_factory.mktemp("tpch"), SCALE))


def opened(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection


def replayed(
    tables: dict[str, pa.Table], rounds: list[Round]
) -> dict[str, dict[tuple[object, ...], dict[str, object]]]:
    """Apply rounds row by row, as a store does."""
    keyed = {
        name: {tuple(row[k] for k in PRIMARY_KEYS[name]): row for row in rows.to_pylist()}
        for name, rows in tables.items()
    }
    for each in rounds:
        for name, keys in each.deletes.items():
            for key in keys.to_pylist():
                del keyed[name][tuple(key.values())]
        for name, rows in each.puts.items():
            keyed[name].update({tuple(row[k] for k in PRIMARY_KEYS[name]): row for row in rows.to_pylist()})
    return keyed


def test_the_data_fit_the_tables(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    assert {name: len(tables[name]) for name in ROWS} == ROWS
    assert len(tables["lineitem"]) == 60_175
    with vk.connect(tmp_path / "tpch.vk", durability="none") as db:
        for name in NAMES:
            db.sql(create_table(name))
            db.put_batch(name, tables[name].slice(0, 500))
        stored = {name: db.table(name).to_arrow() for name in NAMES}
    for name in NAMES:
        order = [(key, "ascending") for key in PRIMARY_KEYS[name]]
        assert stored[name].sort_by(order).equals(tables[name].slice(0, 500).sort_by(order)), name


def test_what_is_generated_already_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sf0.01"
    path.mkdir()
    assert generate(tmp_path, SCALE) == path
    assert list(path.iterdir()) == []


@pytest.mark.slow
def test_a_stream_is_what_its_rounds_come_to(tables: dict[str, pa.Table]) -> None:
    stream = Refreshes(tables, seed=5)
    rounds = [stream.take(part) for part in (0.0001, 0.001, 0.01, 0.1)]
    assert [len(each.puts["orders"]) for each in rounds] == [2, 15, 150, 1_500]
    assert [len(each.deletes["orders"]) for each in rounds] == [2, 15, 150, 1_500]
    assert [len(each.puts["customer"]) for each in rounds] == [1, 2, 15, 150]
    keyed = replayed(tables, rounds)
    for name in NAMES:
        rows = stream.tables[name].to_pylist()
        assert len(rows) == len(keyed[name]), name
        assert all(keyed[name][tuple(row[k] for k in PRIMARY_KEYS[name])] == row for row in rows), name
    again = Refreshes(tables, seed=5)
    assert all(again.take(0.01).puts != each.puts for each in rounds)  # another part draws others
    assert Refreshes(tables, seed=5).take(0.0001).puts["orders"].equals(rounds[0].puts["orders"])


def test_refreshed_tables_still_fit_together(tables: dict[str, pa.Table]) -> None:
    stream = Refreshes(tables, seed=6)
    fresh = stream.take(0.02).puts
    now = stream.tables
    assert pc.all(pc.is_in(now["lineitem"]["l_orderkey"], now["orders"]["o_orderkey"])).as_py()
    assert pc.all(pc.is_in(fresh["orders"]["o_custkey"], now["customer"]["c_custkey"])).as_py()
    connection = opened({**now, "fresh": fresh["orders"]})
    (without,) = connection.sql(
        "SELECT COUNT(*) FROM lineitem ANTI JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey"
    ).fetchall()[0]
    (wrong_phones,) = connection.sql(
        "SELECT COUNT(*) FROM customer WHERE SUBSTRING(c_phone, 1, 2) <> CAST(c_nationkey + 10 AS VARCHAR)"
    ).fetchall()[0]
    (wrong_totals,) = connection.sql("""
        SELECT COUNT(*) FROM fresh JOIN (
          SELECT l_orderkey, SUM(ROUND(l_extendedprice * (1 + l_tax) * (1 - l_discount), 2)) AS total
          FROM lineitem GROUP BY l_orderkey
        ) ON l_orderkey = o_orderkey WHERE o_totalprice <> total
    """).fetchall()[0]
    assert (without, wrong_phones, wrong_totals) == (0, 0, 0)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_duckdb_agree_on_all_queries(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    with session_of_tables(NAMES) as spark:
        stream = Refreshes(tables, seed=7)
        stream.take(0.1)
        for name, rows in stream.tables.items():
            pq.write_table(rows, tmp_path / f"{name}.parquet")
            spark.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(name)
        connection = opened(stream.tables)
        for number in NUMBERS:
            text = query(number, SCALE)
            assert differences(spark.sql(text).toArrow(), connection.sql(text).to_arrow_table()) == [], number
