"""Views beside Spark's own answers to their queries: names, types, nullability, rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.interpreted import interpreting
from viewkeeper.database import Database
from viewkeeper.database.script import context_of
from viewkeeper.evaluation.verify import recompute_local


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def assert_answers_of_spark(
    database: Database, spark: SparkSession, tables: Mapping[str, tuple[str, str]], views: Sequence[str]
) -> None:
    """Compare the views ``v0``, ``v1``, … with what Spark answers to their queries over the tables as they are.

    Args:
        database: has tables and views.
        spark: a session beside it answers.
        tables: for each its columns, without the key, and the column that is its key.
        views: their queries.
    """
    spark = interpreting(spark)
    for name, (columns, key) in tables.items():
        given = database.table(name).to_arrow()
        schema = spark.createDataFrame(given, columns).schema
        schema[key].nullable = False
        spark.createDataFrame(given, schema).createOrReplaceTempView(name)
    for number, sql in enumerate(views):
        expected = spark.sql(sql)
        kinds = [f"{f.dataType.simpleString().upper()}{'' if f.nullable else ' NOT NULL'}" for f in expected.schema]
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(expected.columns, kinds, strict=True))
        assert f"columns: {columns}\n" in str(database.explain(sql)), sql
        assert rows_of(database.table(f"v{number}").to_arrow()) == rows_of(expected.toArrow()), sql


def assert_kept_right(database: Database, views: Sequence[str], by_spark: Collection[int]) -> None:
    """Compare the views ``v0``, ``v1``, … and the state behind them with what base rows say.

    Args:
        database: has the views.
        views: their queries.
        by_spark: those that VERIFY compares, half a second a state table, beside those that only Spark can compute.
    """
    context = context_of(database._engine)
    for number, sql in enumerate(views):
        needs_spark = "executor: Spark" in str(database.explain(sql))
        name = f"v{number}"
        report = database.verify(name) if needs_spark or number in by_spark else recompute_local(context, name)
        assert report.ok, f"{sql}: {report}"
