"""PROJECT: computes one output column per expression.

Rule:   step(d) = pi(d)             (linear: rows are computed one by one and keep their weights)
State:  none.
Why:    equal input rows give equal output rows, so a row taken away takes away exactly the row that it once added.
Errors: a row for which any expression cannot be computed goes to the error bag with its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import Errors, evaluate
from viewkeeper.expressions.spark_sql import cast_sql, spark_sql
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Session
from viewkeeper.expressions.user_calls import CAPTURE
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, named
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Project(Stateless):
    """One column per expression, over the input's rows."""

    schema: Schema
    expressions: tuple[Expression, ...]
    session: Session
    errors: ErrorSite | None

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the delta with its columns computed."""
        (delta,) = inputs
        if not delta.num_rows:
            return Delta.empty(self.schema.to_arrow())
        columns, errors = [], None
        for expression in self.expressions:
            if isinstance(expression, ColumnRef):
                columns.append(delta.rows.column(expression.index))
                continue
            result = evaluate(expression, delta.rows, self.session)
            columns.append(result.values)
            errors = _first_of(errors, result.errors)
        out = Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), delta.weights)
        good = keep_good(delta, errors, self.errors, context)[1]
        return out if good is None else out.filter(good)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the computed rows; raises EvaluationError where an expression cannot be computed."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return the expressions over the input's rows.

        A captured failure is none (expressions/user_calls.py), which SQL cannot say: then the columns are ours.
        """
        if any(isinstance(e, Call) and e.function == CAPTURE for e in self.expressions):
            return Query("SELECT * FROM i0", self.schema, self.session, self._columns)
        pairs = zip(self.expressions, self.schema.types, strict=True)
        items = [named(cast_sql(spark_sql(e), t), i) for i, (e, t) in enumerate(pairs)]
        return Query(f"SELECT {', '.join(items)} FROM i0", self.schema, self.session)

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [evaluate(expression, batch, self.session).values for expression in self.expressions]

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()


def _first_of(known: Errors | None, new: Errors | None) -> Errors | None:
    """Join errors of two columns: a row fails once, for its first reason."""
    if known is None or new is None:
        return known or new
    return Errors(known.rows | new.rows, np.where(known.rows, known.reasons, new.reasons))
