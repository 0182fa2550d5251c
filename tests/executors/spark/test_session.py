"""Sessions: ours has what jobs need, and the user's stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.cadence import ORDERS, Cadence, Opener
from viewkeeper.executors.spark.job import SparkExecutor
from viewkeeper.executors.spark.session import _retrying, job_session, spark_session
from viewkeeper.store.transactions import PutRow

pytestmark = pytest.mark.spark


def test_ours_is_set_for_our_jobs(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.uiWebUrl is None
    # Without the second number a local Spark gives up at the first killed worker.
    assert spark.sparkContext.master == "local[2,4]"


def test_workers_keep_memory_and_java_compiles_less(spark: SparkSession) -> None:
    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [os.environ["MALLOC_TRIM_THRESHOLD_"], pa.default_memory_pool().backend_name]
            yield pa.RecordBatch.from_pydict({"found": found})

    rows = spark.range(0, 1, 1, 1).mapInArrow(seen, "found STRING").collect()
    assert [row.found for row in rows] == [str(1 << 30), "system"]
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()  # type: ignore[union-attr]
    assert "-XX:Tier4InvocationThreshold=100000" in list(java.getInputArguments())
    assert spark.sparkContext.getConf().get("spark.shuffle.compress") == "false"


@pytest.mark.parametrize(
    ("master", "retrying"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_local_masters_retry(master: str, retrying: str) -> None:
    assert _retrying(master) == retrying


def test_where_spark_runs_already_that_one_is_taken_as_it_is(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        again = spark_session(shuffle_partitions=9)
        assert again.sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_a_session_of_the_user_keeps_its_settings(tmp_path: Path, spark: SparkSession) -> None:
    users = spark.newSession()
    wanted = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
    }
    for name, value in wanted.items():
        users.conf.set(name, value)
    with Cadence(tmp_path / "s", {"v": "SELECT status, SUM(amount) AS total FROM orders GROUP BY status"}) as cadence:
        cadence.commit(*(PutRow(ORDERS, (i, None, Decimal(i), "new")) for i in range(10)))
        opener = Opener(cadence.folder.path)
        result = SparkExecutor(lambda: users, opener, cadence.folder.staging_path).run(cadence.plan())
        assert sum(w.rows.get("continuous/v100", 0) for w in result.writes) == 1
    assert {name: users.conf.get(name) for name in wanted} == wanted
    assert job_session(users).conf.get("spark.sql.adaptive.enabled") == "false"
