"""CATALYST: columns that only Spark computes, added behind the input's.

    rows --(to the JVM: Spark evaluates the expressions)--> CATALYST --> input columns, computed columns

Rule:   step(d) = d with computed columns (linear: row by row, weights kept)
State:  none.
Why:    an expression outside the portable set must not be guessed at: Spark types it when the view is created and Spark
        evaluates it in every epoch. Like an exchange it ends a level: the executor hands the rows to Spark, which adds
        the columns, and a column that tells which rows could not be computed.
Errors: such a row goes to the error bag with its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import Errors
from viewkeeper.expressions.spark_sql import cast_sql, spark_sql
from viewkeeper.expressions.tree import Session, SparkExpression
from viewkeeper.expressions.user_calls import capture_type
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, named
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BOOLEAN, Column, Schema, SqlType

FAILED = "EXPRESSION_FAILED"


@dataclass(frozen=True)
class Catalyst(Stateless):
    """Adds one column per expression.

    Args:
        input_schema: the rows as they are handed to Spark.
        expressions: what Spark computes over them.
        session: time zone and ANSI mode in force.
        errors: where rows go that cannot be computed.
        captures: whether a column holds structures around the values, NULL where one cannot be computed, for what may
            not need it (expressions/user_calls.py); then no row fails here.
    """

    input_schema: Schema
    expressions: tuple[SparkExpression, ...]
    session: Session
    errors: ErrorSite
    captures: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the computed ones."""
        width = len(self.input_schema)
        added = (Column(f"__spark_{width + i}", *self._kind(e)) for i, e in enumerate(self.expressions))
        return Schema((*self.input_schema.columns, *added))

    def _kind(self, expression: SparkExpression) -> tuple[SqlType, bool]:
        return (capture_type(expression.type), True) if self.captures else (expression.type, expression.nullable)

    @cached_property
    def arrives(self) -> Schema:
        """What comes back from Spark: the output's columns, and whether the row failed."""
        return Schema((*self.schema.columns, Column("__failed", BOOLEAN, False)))

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Part what came back from Spark into good rows and errors."""
        (delta,) = inputs
        width = len(self.schema)
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        if delta.rows.num_columns != width + 1:
            # ``pipeline.choose`` lets no epoch with such an expression run elsewhere.
            raise AssertionError("the computed columns did not come back from Spark")
        failed = delta.rows.column(width).to_numpy(zero_copy_only=False).astype(bool)
        columns = delta.rows.columns[:width]
        rows = Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), delta.weights)
        reasons = np.full(len(failed), None, dtype=object)
        reasons[failed] = FAILED
        return keep_good(rows, Errors(failed, reasons), self.errors, context)[0]

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Raise: only Spark SQL computes complete inputs, by ``query``."""
        raise AssertionError("complete inputs are computed by Spark SQL")

    def query(self) -> Query:
        """Return the input's rows with the computed columns behind."""
        width = len(self.input_schema)
        texts = [cast_sql(spark_sql(e), e.type) for e in self.expressions]
        if self.captures:
            texts = [f"named_struct('value', {text})" for text in texts]
        items = [named(text, width + i) for i, text in enumerate(texts)]
        return Query(f"SELECT *, {', '.join(items)} FROM i0", self.schema, self.session)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()
