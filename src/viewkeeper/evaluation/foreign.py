"""Expressions that only Spark can evaluate, on rows that we hold: MERGE's, and casts of values that are stored.

The rows go to Spark as one file and come back as one column in the same order, since nothing between moves rows.
"""

from __future__ import annotations

import pyarrow as pa

from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.spool import SpooledFiles
from viewkeeper.expressions.spark_sql import spark_sql
from viewkeeper.expressions.tree import Expression, Session, SparkExpression
from viewkeeper.expressions.user_calls import functions_in
from viewkeeper.plan.context import SparkTypes
from viewkeeper.views.inputs import FilesInput, spark_functions
from viewkeeper.zset.schema import Column, Schema, SqlType, to_arrow_type

_INPUT = "input"


def spark_types_of(context: EvaluationContext) -> SparkTypes | None:
    """Return what types such expressions, None where there is no Spark; they may be random here."""
    spark = context.spark
    if spark is None:
        return None

    def types(sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        sql_type, nullable, _ = spark().analyze(sql, schema)
        return sql_type, nullable, True

    return types


def spark_column(
    context: EvaluationContext, expression: Expression, batch: pa.RecordBatch, schema: Schema, session: Session
) -> pa.Array:
    """Return the values of an expression that is not portable.

    Args:
        context: the store, with Spark.
        expression: what the planner made of it: all of it is Spark's.
        batch: the rows.
        schema: their columns.
        session: time zone and ANSI mode.

    Raises:
        EvaluationError: it cannot be computed for some row.
    """
    assert isinstance(expression, SparkExpression)
    assert context.spark is not None
    if not batch.num_rows:
        return pa.array([], to_arrow_type(expression.type))
    named = Schema(tuple(Column(f"_c{i}", c.type, True) for i, c in enumerate(schema.columns)))
    with SpooledFiles() as files:
        paths = files.write([batch], named)
        sql = f"SELECT (\n{spark_sql(expression)}\n) AS value FROM {_INPUT}"
        functions = spark_functions(functions_in(expression))
        answer = context.spark().sql(sql, {_INPUT: FilesInput(named, paths)}, session, functions=functions)
        values = pa.concat_arrays([part.column(0) for part in answer.batches])
    # Spark's analyzer has refused what does not belong to one row.
    assert len(values) == batch.num_rows, f"Spark gave {len(values)} values for {batch.num_rows} rows"
    return values
