"""First rows and windows on Spark: one fused job publishes what one process would, and Spark has the same answers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from tests.executors.spark.cadence import Cadence
from tests.executors.spark.test_job import changes, executor
from tests.interpreted import interpreting
from viewkeeper.executors.local import LocalExecutor

pytestmark = pytest.mark.spark

VIEWS = {
    "best": "SELECT id, status, RANK() OVER (PARTITION BY status ORDER BY amount DESC) AS r FROM orders QUALIFY r <= 2",
    "first": "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 3",
    "running": "SELECT id, SUM(amount) OVER (PARTITION BY customer ORDER BY id) AS s FROM orders",
    "named": """SELECT o.id, COUNT(*) OVER (PARTITION BY c.region) AS n
        FROM orders o JOIN customers c ON o.customer = c.id""",
    "totals": """SELECT region, total, FIRST_VALUE(total) OVER (PARTITION BY big ORDER BY total) AS least FROM
        (SELECT region, SUM(n) AS total, SUM(n) > 5 AS big FROM
        (SELECT c.region, o.id % 3 AS n FROM orders o JOIN customers c ON o.customer = c.id) q GROUP BY region) r""",
}
ROWS = (
    (1, "a", 5, Decimal("1.50"), 0.5, "2024-01-01"),
    (2, "a", 5, None, 1.5, "2024-01-02"),
    (3, "a", None, Decimal("2.25"), float("nan"), "2024-01-05"),
    (4, "b", -1, Decimal("0.10"), None, None),
    (5, None, 7, Decimal("9.99"), float("inf"), "2024-01-02"),
    (6, "a", 8, Decimal("-3.00"), -0.5, "2024-01-03"),
)
TABLE = "k INT, g STRING, v INT, m DECIMAL(10,2), x DOUBLE, d DATE"
OVER_K = "OVER (PARTITION BY g ORDER BY k)"
CALLS = (
    f"ROW_NUMBER() {OVER_K}",
    "RANK() OVER (PARTITION BY g ORDER BY v DESC)",
    "DENSE_RANK() OVER (PARTITION BY g ORDER BY x DESC NULLS FIRST)",
    f"PERCENT_RANK() {OVER_K}",
    "CUME_DIST() OVER (PARTITION BY g ORDER BY v)",
    f"NTILE(3) {OVER_K}",
    f"LAG(v) {OVER_K}",
    f"LAG(k, 1, 0) {OVER_K}",
    f"LEAD(m, 2, k) {OVER_K}",
    f"LAG(v, -1) {OVER_K}",
    f"LEAD(v) IGNORE NULLS {OVER_K}",
    f"FIRST_VALUE(v) {OVER_K}",
    f"LAST_VALUE(v) IGNORE NULLS {OVER_K}",
    f"NTH_VALUE(v, 2) {OVER_K}",
    "FIRST(v, TRUE) OVER (PARTITION BY g ORDER BY k DESC ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    f"COLLECT_LIST(v) {OVER_K}",
    "COLLECT_LIST(m) FILTER (WHERE v > 5) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "ARRAY_AGG(x) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "COLLECT_LIST(v) OVER (PARTITION BY g ORDER BY d DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "COLLECT_SET(g) OVER (PARTITION BY g ORDER BY v + 1 RANGE BETWEEN CURRENT ROW AND 1L FOLLOWING)",
    "COLLECT_LIST(v) OVER (PARTITION BY g ORDER BY v + 1 RANGE BETWEEN 1L PRECEDING AND 1 FOLLOWING)",
    "COLLECT_LIST(v) RESPECT NULLS OVER (PARTITION BY g ORDER BY k DESC)",
    "ARRAY_AGG(x) FILTER (WHERE k > 1) RESPECT NULLS OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING)",
    f"LISTAGG(d, '; ') {OVER_K}",
    "STRING_AGG(v) FILTER (WHERE v > 0) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "MEDIAN(v) OVER (PARTITION BY g)",
    "MEDIAN(x) FILTER (WHERE k < 6) OVER (PARTITION BY g)",
    "PERCENTILE(m, ARRAY(0.0, 0.3, 1.0)) OVER (PARTITION BY g)",
    "PERCENTILE_APPROX(v, 0.5) OVER (PARTITION BY g)",
    "PERCENTILE(v, ARRAY(0.3, 0.6), k % 4) OVER (PARTITION BY g)",
    "PERCENTILE(x, 0.5, ABS(v)) FILTER (WHERE k <> 3) OVER (PARTITION BY g)",
    "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v DESC) OVER (PARTITION BY g)",
    "PERCENTILE_CONT(ARRAY(0.4, 0.9)) WITHIN GROUP (ORDER BY x) FILTER (WHERE k > 1) OVER (PARTITION BY g)",
    "LISTAGG(v, '-') WITHIN GROUP (ORDER BY k DESC) OVER (PARTITION BY g)",
    "STRING_AGG(d) WITHIN GROUP (ORDER BY x NULLS LAST, v DESC NULLS FIRST) FILTER (WHERE k > 1) OVER (PARTITION BY g)",
    "LISTAGG(k, '') WITHIN GROUP (ORDER BY v, k) OVER (PARTITION BY g)",
    "LISTAGG(CAST(g AS BINARY), X'2d') WITHIN GROUP (ORDER BY k) OVER (PARTITION BY v)",
    f"LISTAGG(CAST(g AS BINARY), X'2d') {OVER_K}",
    "MODE() WITHIN GROUP (ORDER BY v) OVER (PARTITION BY g)",
    "MODE() WITHIN GROUP (ORDER BY d DESC) FILTER (WHERE v > 0) OVER (PARTITION BY g)",
    "MODE(x, TRUE) OVER (PARTITION BY g)",
    "SUM(v) RESPECT NULLS OVER (PARTITION BY g)",
    "COLLECT_SET(v) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN CURRENT ROW AND CURRENT ROW)",
    f"SUM(v) {OVER_K}",
    "SUM(m) OVER (PARTITION BY g)",
    f"TRY_SUM(v) FILTER (WHERE k > 1) {OVER_K}",
    "TRY_SUM(CAST(v + 9223372036854775790 AS BIGINT)) OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING)",
    "TRY_AVG(m) OVER (PARTITION BY g)",
    "SUM(TIMESTAMP_SECONDS(v) - TIMESTAMP_MICROS(k)) OVER (PARTITION BY g ORDER BY d DESC)",
    "AVG(TIMESTAMP_MICROS(v) - TIMESTAMP_MICROS(0)) OVER (PARTITION BY g ORDER BY k ROWS 1 PRECEDING)",
    "TRY_AVG(TIMESTAMP_MICROS(v) - TIMESTAMP_MICROS(0)) FILTER (WHERE k <> 2) OVER (PARTITION BY g)",
    "MAX(TIMESTAMP_MICROS(v) - TIMESTAMP_MICROS(0)) OVER (PARTITION BY g ORDER BY k)",
    "TRY_AVG(CAST(9 - v AS DECIMAL(38,36))) OVER (PARTITION BY g)",
    "AVG(m) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    f"AVG(v) {OVER_K}",
    "MAX(x) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    f"MIN(m) {OVER_K}",
    "COUNT(v) OVER (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING) AS n",
    "COUNT(*) OVER (PARTITION BY g ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "COUNT(*) OVER (PARTITION BY g ORDER BY x DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "COUNT(*) OVER (PARTITION BY g ORDER BY m DESC RANGE BETWEEN 1.25 PRECEDING AND 0.85 FOLLOWING)",
    "COUNT(*) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING)",
    "MAX(k) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL '2' MONTH FOLLOWING)",
    "SUM(v) OVER (PARTITION BY g ORDER BY d DESC RANGE INTERVAL '1-2' YEAR TO MONTH PRECEDING)",
    "COUNT(*) FILTER (WHERE v > 5) OVER (PARTITION BY g)",
    "v / SUM(v) OVER (PARTITION BY g)",
)


@pytest.mark.parametrize("partitions", [None, 3])
def test_publishes_what_one_process_would(tmp_path: Path, spark: SparkSession, partitions: int | None) -> None:
    random = Random(7)
    with Cadence(tmp_path / "here", VIEWS) as here, Cadence(tmp_path / "there", VIEWS) as there:
        local, remote = LocalExecutor(here.folder.base, here.folder.views), executor(spark, there, partitions)
        for epoch in range(4):
            operations = changes(random, random.randrange(5, 60))
            here.commit(*operations)
            there.commit(*operations)
            plan = here.plan()
            rows = here.publish(plan, local.run(plan))
            first = LocalExecutor(there.folder.base, there.folder.views)
            plan = there.plan()
            assert there.publish(plan, (remote if epoch else first).run(plan)) == rows
            assert there.state() == here.state()


def test_names_types_and_answers_are_sparks(tmp_path: Path, spark: SparkSession) -> None:
    spark = interpreting(spark)
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in ROWS)
    columns = "int(k) k, string(g) g, int(v) v, CAST(m AS DECIMAL(10,2)) m, double(x) x, date(d) d"
    spark.sql(f"SELECT {columns} FROM VALUES {values} AS t(k, g, v, m, x, d)").createOrReplaceTempView("t")
    with vk.connect(str(tmp_path / "store"), executor="local") as db:
        db.sql(f"CREATE TABLE t ({TABLE}, PRIMARY KEY (k))")
        for *row, day in ROWS:
            cells = (*row, None if day is None else date.fromisoformat(str(day)))
            db.put("t", dict(zip("kgvmxd", cells, strict=True)))
        for call in CALLS:
            query = f"SELECT k, {call} FROM t"
            theirs = spark.sql(query)
            ours = db.sql(query)
            (_, field), (_, column) = theirs.schema, ours.schema.columns
            assert (column.name, str(column.type)) == (field.name, field.dataType.simpleString()), call
            # Of a table in a view Spark does not know that the key is never NULL.
            assert column.nullable == field.nullable or "k" in call, call
            expected = sorted(repr(tuple(row)) for row in theirs.collect())
            assert sorted(repr(tuple(row.values())) for row in ours.rows()) == expected, call


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'"
