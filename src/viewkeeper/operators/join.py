"""JOIN: the pairs of matching rows of two inputs, both changing.

    left delta  --exchange by key--+--> arrange L --+
                                   |                |   (published state, as of E-1)
                                   +-----> JOIN <---+
                                   |                |
    right delta --exchange by key--+--> arrange R --+

Rule:   step(dL, dR) = dL >< R(E-1)  +  L(E-1) >< dR  +  dL >< dR
State:  the arrangements of both inputs by the join key (REVERSE-JOIN in the literature), each kept by its own ARRANGE,
        shared with every other join that needs it.
Why:    (L + dL) >< (R + dR) - L >< R, multiplied out. With L(E) = L(E-1) + dL the last two terms are L(E) >< dR: the
        form of design.md section 2. Both deltas of a key meet at its owner, so "as of E" needs no state but the delta
        itself, and a join of n inputs is a chain of n-1 such steps in one job (docs/decisions/0003).
Work:   one lookup per distinct key in each delta; output in proportion to the matching pairs.
Range:  where a condition compares the sides (``t BETWEEN lo AND hi``), a side's rows of one key stand in the order of
        what is compared, and a changed row of the other side seeks its range (range_seeks.py), not all rows of the key.
NULL:   a NULL key equals nothing, so such rows are dropped first, unless the key was compared by <=>. -0.0 equals 0.0,
        NaN equals NaN (the key codec).
Theta:  without key columns all rows have the same key, of no columns: each changed row meets the whole other side, or
        its range of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.spark_sql import column_name, spark_sql
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.operators.arrange import Arrange, may_match
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.matching import common_codes, expand, keys_sql, look_up, runs
from viewkeeper.operators.range_seeks import Seek, look_up_range, pairs_in_range
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

# A pair costs about a twentieth of what a row does that seeks its range in memory.
_PAIRS_A_ROW = 20


@dataclass(frozen=True)
class Join(Stateless):
    """Pairs of left and right rows with equal keys, for which the ``conditions`` are true.

    Args:
        schema: the left input's columns, then the right one's.
        left: the arrangement of the left input; its ``columns`` are the join key.
        right: likewise for the right input.
        conditions: further conditions over the joined row, each judged on the pairs for which those before it are true.
        session: time zone and ANSI mode for the conditions.
        errors: where pairs go for which a condition cannot be computed.
        null_safe: indexes of the key columns in which NULL equals NULL.
        seek_left: how right rows look in the left arrangement, if that has an order. What it passes over must be pairs
            for which a condition is false or NULL, and none before it fails; likewise ``seek_right``.
        seek_right: how left rows look in the right one, if that has an order.
    """

    schema: Schema
    left: Arrange
    right: Arrange
    conditions: tuple[Expression, ...]
    session: Session
    errors: ErrorSite | None
    null_safe: frozenset[int] = frozenset()
    seek_left: Seek | None = None
    seek_right: Seek | None = None

    @property
    def looks_up(self) -> tuple[str, ...]:
        """The arrangements of both sides."""
        return (self.left.state, self.right.state)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the pairs that come and go, for netted deltas of whole join keys."""
        left, right = self._matchable(inputs)
        stored, matches, rows = _partners(left, self.left.columns, self.seek_right, self.right, context)
        parts = [self._assemble(left.rows, matches, stored, rows, left.weights[matches])]
        stored, matches, rows = _partners(right, self.right.columns, self.seek_left, self.left, context)
        parts.append(self._assemble(stored, rows, right.rows, matches, right.weights[matches]))
        parts.append(self._delta_pairs(left, right))
        joined = Delta.concat([p for p in parts if p.num_rows], self.schema.to_arrow())
        return self._filter(joined, context)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all pairs of complete inputs; raises EvaluationError where a condition cannot be computed."""
        left, right = self._matchable(inputs)
        return self._filter(self._delta_pairs(left, right), Raising.context())

    def query(self) -> Query:
        """Return the pairs of rows with equal keys for which the conditions are true."""
        width = len(self.left.schema)
        items = columns_sql(range(width), "l")
        items += [named(f"r.{column_name(i)}", width + i) for i in range(len(self.right.schema))]
        keys = keys_sql(self.left.columns, self.right.columns, self.null_safe)
        joined = f"SELECT {', '.join(items)} FROM i0 AS l JOIN i1 AS r ON {keys}"
        for condition in self.conditions:
            joined = f"SELECT * FROM ({joined}) WHERE {spark_sql(condition)}"
        return Query(joined, self.schema, self.session)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: the arrangements that it looks up are operators of their own."""
        return ()

    def _matchable(self, inputs: tuple[Delta, ...]) -> tuple[Delta, Delta]:
        left, right = inputs
        return (
            left.filter(may_match(left, self.left.columns, self.null_safe)),
            right.filter(may_match(right, self.right.columns, self.null_safe)),
        )

    def _assemble(
        self, left: pa.RecordBatch, li: np.ndarray, right: pa.RecordBatch, ri: np.ndarray, weights: np.ndarray
    ) -> Delta:
        lt, rt = pa.array(li), pa.array(ri)
        columns = [c.take(lt) for c in left.columns] + [c.take(rt) for c in right.columns]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), weights)

    def _delta_pairs(self, left: Delta, right: Delta) -> Delta:
        """Join two deltas in memory: weights multiply."""
        if not left.num_rows or not right.num_rows:
            return Delta.empty(self.schema.to_arrow())
        lc, rc = common_codes(left, self.left.columns, right, self.right.columns)
        starts, stops = runs(rc, 1 + max(int(lc.max()), int(rc.max())))
        # Where keys alone leave few pairs, they are found faster by number than by range.
        many = int((stops - starts)[lc].sum()) > _PAIRS_A_ROW * (left.num_rows + right.num_rows)
        if many and self.seek_right is not None:
            li, ri = pairs_in_range(left, self.left.columns, self.seek_right, right, self.right)
        elif many and self.seek_left is not None:
            ri, li = pairs_in_range(right, self.right.columns, self.seek_left, left, self.left)
        else:
            li, at = expand(starts[lc], stops[lc])
            ri = np.argsort(rc, kind="stable")[at]
        return self._assemble(left.rows, li, right.rows, ri, left.weights[li] * right.weights[ri])

    def _filter(self, joined: Delta, context: StepContext) -> Delta:
        # Pairs that one term adds and another takes away must not leave an error behind: the bag's counts cancel.
        for condition in self.conditions:
            if not joined.num_rows:
                break
            result = evaluate(condition, joined.rows, self.session)
            passes = pc.fill_null(result.values, False).to_numpy(zero_copy_only=False).astype(bool)
            good = keep_good(joined, result.errors, self.errors, context)[1]
            joined = joined.filter(passes if good is None else passes & good)
        return joined


def _partners(
    delta: Delta, columns: tuple[int, ...], seek: Seek | None, arrangement: Arrange, context: StepContext
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
    """Return stored rows that may match ``delta``, and the pairs as (position in delta, position in rows)."""
    if seek is None:
        return look_up(delta, columns, arrangement, context)
    return look_up_range(delta, columns, seek, arrangement, context)
