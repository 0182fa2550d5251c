"""Users' functions in Spark SQL: for queries and recomputations that are Spark's, as functions of Arrow columns.

The code that calls them is ours, so that a value means the same to a function wherever it runs; the rest of the query
is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]
from pyspark.sql.pandas.types import from_arrow_type

from viewkeeper.errors import EvaluationError
from viewkeeper.executors.spark.types import from_spark_type, to_spark_type
from viewkeeper.expressions.errors import code_of, remedy
from viewkeeper.expressions.user_calls import apply, capture_type
from viewkeeper.views.inputs import SparkFunction
from viewkeeper.zset.schema import to_arrow_type


def register(spark: SparkSession, query: str, functions: Mapping[str, SparkFunction]) -> None:
    """Let ``spark`` know those of ``functions`` whose names occur in ``query``.

    Args:
        spark: a session that nobody else uses.
        query: Spark SQL.
        functions: by name.
    """
    words = {word.lower() for word in re.findall(r"\w+", query)} if functions else set()
    for name, given in functions.items():
        if name.lower() not in words:
            continue
        result = given.function.return_type
        called: Any = arrow_udf(_columns(given), to_spark_type(capture_type(result) if _captures(given) else result))
        spark.udf.register(name, called if given.function.deterministic else called.asNondeterministic())


def _captures(given: SparkFunction) -> bool:
    return given.fails == "captured"


def _columns(given: SparkFunction) -> Callable[..., pa.Array]:
    """Return the function of Arrow columns that a worker calls."""

    def call(*columns):  # type: ignore[no-untyped-def] # Spark would read annotations
        return _called(given, columns)

    return call


def _called(given: SparkFunction, columns: tuple[pa.Array, ...]) -> pa.Array:
    types = [from_spark_type(from_arrow_type(column.type)) for column in columns]
    ours = [column.cast(to_arrow_type(t)) for column, t in zip(columns, types, strict=True)]
    found = apply(given.function, ours, types, len(columns[0]))
    if _captures(given):
        mask = None if found.errors is None else pa.array(found.errors.rows)
        field = to_arrow_type(capture_type(given.function.return_type))[0]
        return pa.StructArray.from_arrays([found.values], fields=[field], mask=mask)
    if found.errors is not None and given.fails == "raises":
        reason = str(next(r for r in found.errors.reasons if r is not None))
        raise EvaluationError(code_of(reason), f"A row cannot be computed ({reason}){remedy(reason)}.")
    return found.values
