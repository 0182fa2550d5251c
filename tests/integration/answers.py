"""Views of one store beside Spark's own answers to their queries over the base rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import viewkeeper as vk
from tests.interpreted import interpreting
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.executors.spark.types import from_spark_schema, to_spark_schema
from viewkeeper.zset.schema import Schema

# The rows of an answer are a bag.
Answer = tuple[Schema, Counter[tuple[Any, ...]]]


def answer(schema: Schema, rows: pa.Table) -> Answer:
    return schema, Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@contextmanager
def session_of_tables(names: Iterable[str]) -> Iterator[SparkSession]:
    """Yield a session beside ours, for small queries, which has no view of these names afterwards."""
    session = interpreting(spark_session())
    yield session
    for name in names:
        session.catalog.dropTempView(name)


def answers_of_spark(
    session: SparkSession, db: vk.Database, tables: Iterable[str], queries: Mapping[str, str]
) -> dict[str, Answer]:
    """Return Spark's own answers over the base rows."""
    for name in tables:
        base = db.table(name)
        frame = session.createDataFrame(base.to_arrow(), to_spark_schema(base.schema))
        frame.createOrReplaceTempView(name)

    def answer_of(text: str) -> Answer:
        frame = session.sql(text)
        return answer(from_spark_schema(frame.schema), frame.toArrow())

    # Most of a small query's time Spark spends planning it and starting tasks.
    with ThreadPoolExecutor(4) as threads:
        return dict(zip(queries, threads.map(answer_of, queries.values()), strict=True))


def answers_of_views(db: vk.Database, names: Iterable[str]) -> dict[str, Answer]:
    """Return what the views hold."""
    return {name: answer(db.table(name).schema, db.table(name).to_arrow()) for name in names}


def check_views(session: SparkSession, db: vk.Database, tables: Iterable[str], queries: Mapping[str, str]) -> int:
    """Compare each view with Spark's answer to its query; return how many of them have rows."""
    expected = answers_of_spark(session, db, tables, queries)
    found = answers_of_views(db, queries)
    differing = [name for name in queries if found[name] != expected[name]]
    assert not differing, {name: (found[name], expected[name]) for name in differing}
    return sum(bool(rows) for _, rows in found.values())
