"""What Spark refuses is told as our own errors are: at its place in the user's SQL, with what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import viewkeeper as vk
from tests.mistakes import assert_told
from viewkeeper.database.connection import Database
from viewkeeper.errors import StoreError

pytestmark = pytest.mark.spark

# SQL in which ^ stands before the place, the code, and what the message tells to do.
MISTAKES = [
    ("SELECT *\nFROM t ^FOR UPDATE", "PARSE_SYNTAX_ERROR", "leave FOR UPDATE out"),
    ("SELECT k FROM t WHERE k = ^$1", "PARSE_SYNTAX_ERROR", "write :name"),
    ("SELECT '😀',\n  ^sume(k) FROM t", "UNRESOLVED_ROUTINE", "Did you mean sum or some?"),
    ("SELECT ^no_such_function_at_all(k) FROM t", "UNRESOLVED_ROUTINE", "has no function no_such_function_at_all()"),
    ("SELECT k FROM t WHERE ^array_max(k) > 1", "DATATYPE_MISMATCH", 'requires the "ARRAY" type'),
    ("SELECT k AS n FROM t WHERE ^array_max(v) > 1", "DATATYPE_MISMATCH", 'Cannot resolve "array_max(v)"'),
]
# These a query that Spark runs as a whole may have.
MISTAKES_IN_VIEWS = [
    ("SELECT k, ^named_struct('a', k, 'a', v) AS s FROM t", "TYPE_NOT_SUPPORTED", "name them apart"),
    ("SELECT COLLECT_LIST(^struct(k, v, k)) AS s FROM t", "TYPE_NOT_SUPPORTED", "two fields called 'k'"),
    ("SELECT k FROM t WHERE v = ^IDENTIFIER('v')", "CLAUSE_NOT_YET", "in place of the name itself"),
]


@pytest.fixture
def db(tmp_path: Path, spark: SparkSession) -> Iterator[Database]:
    """An open store with a table of one row."""
    with vk.connect(tmp_path / "shop.vk", spark=spark, durability="none") as database:
        database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v STRING); INSERT INTO t VALUES (1, '12:30')")
        yield database


@pytest.mark.parametrize(("marked", "code", "remedy"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_a_mistake_that_only_spark_sees_has_its_place(db: Database, marked: str, code: str, remedy: str) -> None:
    assert_told(db, marked, code, remedy)


@pytest.mark.parametrize(("marked", "code", "remedy"), MISTAKES_IN_VIEWS, ids=[case[0] for case in MISTAKES_IN_VIEWS])
def test_a_mistake_in_a_view_has_its_place(db: Database, marked: str, code: str, remedy: str) -> None:
    assert_told(db, f"CREATE MATERIALIZED VIEW wrong AS {marked}", code, remedy)
    assert db.views() == []


@pytest.mark.parametrize("expression", ["CAST('12:30' AS TIMESTAMP)", "CAST(v AS TIMESTAMP)", "TIMESTAMP'12:30'"])
def test_a_time_of_day_takes_the_current_date_where_a_query_runs_once(db: Database, expression: str) -> None:
    query = f"SELECT date_format({expression}, 'HH:mm') AS time, {expression} >= current_date AS today FROM t"
    assert db.sql(query).rows() == [{"time": "12:30", "today": True}]
    result = db.sql(f"SELECT {expression} AS t FROM t")
    assert result.executor == "spark"
    assert [(row["t"].hour, row["t"].minute) for row in result.rows()] == [(12, 30)]


def test_workers_of_another_python_are_told_with_the_remedy(
    db: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from collections import namedtuple\n"
        "version = namedtuple('version', 'major minor micro releaselevel serial')\n"
        "sys.version_info = version(3, 99, 0, 'final', 0)\n"
    )
    python = tmp_path / "python3.99"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:"$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    ours = "{}.{}".format(*sys.version_info[:2])
    for attempt in (lambda: vk.register(spark), lambda: db.sql("SELECT array_max(array(k)) AS m FROM t")):
        with pytest.raises(StoreError) as caught:
            attempt()
        error = caught.value
        assert error.code == "PYTHON_VERSION_MISMATCH"
        assert f"run Python 3.99, this process {ours}" in error.message
        assert f"set PYSPARK_PYTHON, or spark.pyspark.python, to a Python {ours}" in error.message
        assert sys.executable in error.message


def test_workers_whose_python_cannot_be_asked_are_left_to_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    vk.register(spark)
