"""A view that is filled by Spark from state that others keep, while those are changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from viewkeeper.database import Database, connect
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import read_cadence

pytestmark = pytest.mark.spark

ROWS = "SELECT o.k, c.name, o.x FROM orders o JOIN clients c ON o.g = c.g"
SUMS = "SELECT c.name, COUNT(*) AS n, SUM(o.x) AS s FROM orders o JOIN clients c ON o.g = c.g GROUP BY c.name"
HALVES = "SELECT k DIV 2 AS h, MAX(g) AS g, SUM(x) AS s FROM orders GROUP BY k DIV 2"
OF_HALVES = f"SELECT c.name, COUNT(*) AS n, SUM(t.s) AS s FROM ({HALVES}) t JOIN clients c ON t.g = c.g GROUP BY c.name"
RANKED = "SELECT k, g, x, RANK() OVER (PARTITION BY g ORDER BY x DESC) AS r FROM orders"
OF_RANKED = f"SELECT r, COUNT(*) AS n, SUM(x + k + g) AS s FROM ({RANKED}) GROUP BY r"


def rows(database: Database, query: str) -> list[str]:
    return sorted(map(str, database.sql(query).rows()))


@pytest.mark.parametrize(
    ("lent", "query", "kept_rows", "states"),
    [(ROWS, SUMS, 0, 2), (HALVES, OF_HALVES, 1, 2), (RANKED, OF_RANKED, 1, 1)],
    ids=["arrangements", "groups", "ranks"],
)
def test_a_second_view_by_spark(
    spark: SparkSession, tmp_path: Path, lent: str, query: str, kept_rows: int, states: int
) -> None:
    path = tmp_path / "shop.vk"
    with (
        connect(path, executor="spark", durability="none", spark=spark, build_rows=2_000) as database,
        connect(path, executor="local", durability="none") as other,
    ):
        database.sql("CREATE TABLE orders (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
        database.sql("CREATE TABLE clients (g BIGINT, name STRING, PRIMARY KEY (g))")
        with database.transaction() as tx:
            for key in range(6_000):
                tx.put("orders", {"k": key, "g": key % 50, "x": key})
            for key in range(40):
                tx.put("clients", {"g": key, "name": "abc"[key % 3]})
        database.sql(f"CREATE MATERIALIZED VIEW lends AS {lent}")
        arrivals: list[int] = []

        def write(name: str) -> None:
            with other._engine.store.views.read() as txn:
                record = read_cadence(txn, "build-4")
            if record is None or name not in ("publish:after", "build:before-swap") or len(arrivals) > 3:
                return
            assert record.loan is not None
            assert (len(record.loan.kept_rows), len(record.loan.states)) == (kept_rows, states)
            arrivals.append(record.epoch)
            number = len(arrivals)
            with hooked(lambda name: None):
                other.put("clients", {"g": number, "name": "d"})
                other.put("clients", {"g": 40 + number, "name": "e"})
                other.put("orders", {"k": 10 * number, "g": 7, "x": -1})
                other.delete("orders", {"k": 5_000 + number})
                other._engine.coordinator.epoch("continuous")

        with hooked(write):
            database.sql(f"CREATE MATERIALIZED VIEW borrows AS {query}")
        assert len(arrivals) == 4
        assert rows(database, "SELECT * FROM borrows") == rows(database, query)
        other.put("clients", {"g": 2, "name": "f"})
        database.refresh()
        assert rows(database, "SELECT * FROM borrows") == rows(database, query)
        assert rows(database, "SELECT * FROM lends") == rows(database, lent)
        report = database.verify("borrows")
        assert report.ok, str(report)
