"""FILTER: keeps the rows for which a condition is true.

Rule:   step(d) = sigma(d)          (linear: the output's delta is the filter of the input's delta)
State:  none.
Why:    each row is judged alone, so rows added and rows taken away pass the same test with their weights.
Errors: a row whose condition cannot be computed goes to the error bag with its weight, and leaves it the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.spark_sql import spark_sql
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Filter(Stateless):
    """The rows for which ``condition`` is true (not false, not NULL)."""

    schema: Schema
    condition: Expression
    session: Session
    errors: ErrorSite | None

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows of the delta that pass."""
        (delta,) = inputs
        if not delta.num_rows:
            return delta
        result = evaluate(self.condition, delta.rows, self.session)
        passes = pc.fill_null(result.values, False).to_numpy(zero_copy_only=False).astype(bool)
        if result.errors is not None and result.errors.rows.any():
            keep_good(delta, result.errors, self.errors, context)
            passes = passes & ~result.errors.rows
        return delta if passes.all() else delta.filter(np.asarray(passes))

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows that pass; raises EvaluationError where the condition cannot be computed."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return the rows for which the condition is true."""
        return Query(f"SELECT * FROM i0 WHERE {spark_sql(self.condition)}", self.schema, self.session)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()
