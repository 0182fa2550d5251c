"""JOIN: inner equi-join of two inputs, both changing.

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
NULL:   a NULL key equals nothing, so such rows are dropped first. -0.0 equals 0.0, NaN equals NaN (the key codec).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.spark_sql import column_name, spark_sql
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.operators.arrange import Arrange, drop_null_keys
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good
from viewkeeper.operators.contents import Contents, Query, columns_sql, named
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Join(Stateless):
    """Pairs of left and right rows with equal keys, for which ``residual`` is true.

    Args:
        schema: the left input's columns, then the right one's.
        left: the arrangement of the left input; its ``columns`` are the join key.
        right: likewise for the right input.
        residual: a further condition over the joined row, or None.
        session: time zone and ANSI mode for the residual.
        errors: where pairs go whose residual cannot be computed.
    """

    schema: Schema
    left: Arrange
    right: Arrange
    residual: Expression | None
    session: Session
    errors: ErrorSite | None

    @property
    def looks_up(self) -> tuple[str, ...]:
        """The arrangements of both sides."""
        return (self.left.state, self.right.state)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the pairs that come and go, for netted deltas of whole join keys."""
        left = drop_null_keys(inputs[0], self.left.columns)
        right = drop_null_keys(inputs[1], self.right.columns)
        parts = [self._pairs(left, *_look_up(left, self.left.columns, self.right, context))]
        stored, matches, rows = _look_up(right, self.right.columns, self.left, context)
        parts.append(self._pairs_from_right(right, stored, matches, rows))
        parts.append(self._delta_pairs(left, right))
        joined = Delta.concat([p for p in parts if p.num_rows], self.schema.to_arrow())
        return self._filter(joined, context)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all pairs of complete inputs; raises EvaluationError where the residual cannot be computed."""
        left = drop_null_keys(inputs[0], self.left.columns)
        right = drop_null_keys(inputs[1], self.right.columns)
        return self._filter(self._delta_pairs(left, right), Raising.context())

    def query(self) -> Query:
        """Return the pairs of rows with equal keys for which the residual is true."""
        width = len(self.left.schema)
        items = columns_sql(range(width), "l")
        items += [named(f"r.{column_name(i)}", width + i) for i in range(len(self.right.schema))]
        pairs = zip(self.left.columns, self.right.columns, strict=True)
        keys = " AND ".join(f"l.{column_name(i)} = r.{column_name(j)}" for i, j in pairs)
        joined = f"SELECT {', '.join(items)} FROM i0 AS l JOIN i1 AS r ON {keys}"
        if self.residual is not None:
            joined = f"SELECT * FROM ({joined}) WHERE {spark_sql(self.residual)}"
        return Query(joined, self.schema, self.session)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: the arrangements that it looks up are operators of their own."""
        return ()

    def _assemble(
        self, left: pa.RecordBatch, li: np.ndarray, right: pa.RecordBatch, ri: np.ndarray, weights: np.ndarray
    ) -> Delta:
        lt, rt = pa.array(li), pa.array(ri)
        columns = [c.take(lt) for c in left.columns] + [c.take(rt) for c in right.columns]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.schema.to_arrow()), weights)

    def _pairs(self, delta: Delta, stored: pa.RecordBatch, matches: np.ndarray, rows: np.ndarray) -> Delta:
        return self._assemble(delta.rows, matches, stored, rows, delta.weights[matches])

    def _pairs_from_right(self, delta: Delta, stored: pa.RecordBatch, matches: np.ndarray, rows: np.ndarray) -> Delta:
        return self._assemble(stored, rows, delta.rows, matches, delta.weights[matches])

    def _delta_pairs(self, left: Delta, right: Delta) -> Delta:
        """Join two deltas in memory: weights multiply."""
        if not left.num_rows or not right.num_rows:
            return Delta.empty(self.schema.to_arrow())
        lc, rc = _common_codes(left, self.left.columns, right, self.right.columns)
        order = np.argsort(rc, kind="stable")
        starts, stops = _runs(rc, 1 + max(int(lc.max()), int(rc.max())))
        li, at = expand(starts[lc], stops[lc])
        ri = order[at]
        return self._assemble(left.rows, li, right.rows, ri, left.weights[li] * right.weights[ri])

    def _filter(self, joined: Delta, context: StepContext) -> Delta:
        if self.residual is None or not joined.num_rows:
            return joined
        # Pairs that one term adds and another takes away must not leave an error behind: the bag's counts cancel.
        result = evaluate(self.residual, joined.rows, self.session)
        passes = pc.fill_null(result.values, False).to_numpy(zero_copy_only=False).astype(bool)
        good = keep_good(joined, result.errors, self.errors, context)[1]
        return joined.filter(passes if good is None else passes & good)


def _look_up(
    delta: Delta, columns: tuple[int, ...], arrangement: Arrange, context: StepContext
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray]:
    """Return the stored rows that match ``delta``, and the matching pairs as (position in delta, position in rows)."""
    codec = arrangement.row_codec
    if not delta.num_rows:
        return codec.decode([]), np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = delta.group(columns)
    taken = [delta.rows.column(c).take(pa.array(first)) for c in columns]
    prefixes, order = encode_sorted(arrangement.key_codec.encode_prefixes, taken)
    if arrangement.is_unique:
        found = context.lookups.multi_get(arrangement.state, prefixes)
        owner = np.array([i for i, value in enumerate(found) if value is not None], dtype=np.int64)
        values = [value for value in found if value is not None]
    else:
        owner, values = context.lookups.multi_scan(arrangement.state, prefixes)
    groups = owner if order is None else order[owner]
    # Stored rows stand in prefix order; bring them into group order to find each delta row's run of matches.
    by_group = np.argsort(groups, kind="stable")
    starts, stops = _runs(groups, len(first))
    matches, at = expand(starts[group], stops[group])
    rows = codec.decode(values)
    if arrangement.key_codec.always_fits or not len(at):
        return rows, matches, by_group[at]
    # Very long keys share prefixes: compare the values themselves.
    stored = Delta.from_rows(rows).take(by_group[at])
    mine, theirs = _common_codes(delta.take(matches), columns, stored, arrangement.columns)
    same = mine == theirs
    return rows, matches[same], by_group[at][same]


def _runs(codes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each of ``count`` codes where its run starts and stops once ``codes`` are sorted."""
    lengths = np.bincount(codes, minlength=count)
    stops = np.cumsum(lengths)
    return stops - lengths, stops


def expand(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for ranges [start, stop) the pairs (index of the range, each position in it).

    Example:
        >>> expand(np.array([0, 3]), np.array([2, 4]))
        (array([0, 0, 1]), array([0, 1, 3]))
    """
    lengths = stops - starts
    owner = np.repeat(np.arange(len(starts)), lengths)
    offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, np.repeat(starts, lengths) + offset


def _common_codes(
    left: Delta, left_columns: tuple[int, ...], right: Delta, right_columns: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Number the keys of both deltas alike: equal keys get equal numbers."""
    arrays = [
        pa.concat_arrays([left.rows.column(i), right.rows.column(j)])
        for i, j in zip(left_columns, right_columns, strict=True)
    ]
    keys = pa.RecordBatch.from_arrays(arrays, names=[f"k{i}" for i in range(len(arrays))])
    codes = Delta.from_rows(keys).group(tuple(range(len(arrays))))[0]
    return codes[: left.num_rows], codes[left.num_rows :]
