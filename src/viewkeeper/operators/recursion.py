"""RECURSION: WITH RECURSIVE, by rounds over an inner circuit that makes the next rows of the newest ones.

    first ---+                    +-------------------------+
             +--> RECURSION  <--> | inner circuit: next(R)  |
    others --+                    +-------------------------+

State:  the rows of R with a count each, and whatever the inner circuit keeps (the arrangements of its joins).
Rule:   the inner circuit is linear in R, so a change of R gives a change of next(R) by its own step, which looks up
        the other inputs by key. In the first round the others change too; later rounds see them as of E.

UNION ALL keeps R by round: row, round -> how often. A round's rows are the step of the changes of the round before, so
        deletions are followed exactly as insertions are; nothing is derived twice. Rows past the last round, and
        rows derived absurdly often, are error rows (RECURSION_LEVEL_LIMIT_EXCEEDED), which go when their cause goes.
UNION keeps R as a set: row -> number of derivations. In a cycle rows can hold each other up, so a deletion is two
        phases (delete and rederive): first every row that has lost a derivation is taken out, and so on down from it;
        then those with a derivation from a row that stayed, or from the anchor, come back, and new rows with them.
        Where one epoch takes more rounds than the limit allows, as rows without end do, nothing is kept but a mark, and
        the view fails until it is filled anew.

Why:    UNION ALL: R(i+1) = next(R(i)) holds round by round, and next is linear. UNION: counts are always the number of
        derivations from the present R and anchor, phase by phase; at the end no row outside of R has one, and each row
        in R has a derivation by rows that were there before it, so R is the least fixpoint.
Work:   in proportion to the derivations that change, and for UNION to those of the rows that were taken out.
        All rows of one recursion are with one owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import Errors
from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import ErrorSite, Stateless, keep_good, state_is_broken
from viewkeeper.operators.circuit import Circuit, Source
from viewkeeper.operators.contents import Contents, Query, Rounds, named
from viewkeeper.operators.overlay import Overlay
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import BIGINT, BOOLEAN, Schema

TOO_DEEP = "RECURSION_LEVEL_LIMIT_EXCEEDED"
# Far below what a BIGINT holds, so that no sum of counts can overflow on the way.
MOST_COPIES = 1 << 40
# No state key starts so: a component is 00 or 01.
_GIVEN_UP = b"\x02"
NEWEST = 0
"""The inner circuit's table with the newest rows; its other inputs are tables 1, 2, ..."""


@dataclass(frozen=True)
class Recursion(Stateless):
    """The rows of a recursive query.

    Args:
        schema: UNION: the columns. UNION ALL: the columns, the round (INT) and how often the row occurs in it (BIGINT).
        inner: makes the next rows; its last node gives the columns, for UNION ALL with round and count behind them.
        distinct: UNION, not UNION ALL.
        limit: how many rounds there may be, the anchor's among them; of UNION, how many in one epoch.
        state: the state table of R.
        errors: where rows past the limit go.
    """

    schema: Schema
    inner: Circuit
    distinct: bool
    limit: int
    state: str
    errors: ErrorSite

    @property
    def states(self) -> tuple[str, ...]:
        """R, and all that the inner circuit keeps."""
        inside = (state for node in self.inner.nodes for state in node.operator.states)
        return tuple(dict.fromkeys((self.state, *inside)))

    @cached_property
    def key_codec(self) -> KeyCodec:
        """Rows, for UNION ALL with their round, to state keys."""
        types = self.schema.types if self.distinct else self.schema.types[:-1]
        return KeyCodec(types)

    @cached_property
    def row_codec(self) -> RowCodec:
        """The count, whether the row is in R, and the row to bytes."""
        return RowCodec((BIGINT, BOOLEAN, *self.key_codec.types))

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the rows that come and go."""
        others = {number: delta for number, delta in enumerate(inputs[1:], 1) if delta.num_rows}
        run = _Rounds(self, context)
        if not self.distinct:
            rows = run.bag(inputs[0], others)
        elif context.lookups.multi_get(self.state, [_GIVEN_UP]) != [None]:
            return Delta.empty(run.arrow)
        else:
            rows = run.set(inputs[0], others)
        run.overlay.write_to(context.writes)
        return rows

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return all rows; raises EvaluationError past the limit."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return the rows round by round: the anchor, then what the inner circuit's queries make of the newest."""
        columns = ", ".join(map(column_name, range(len(self.schema))))
        width = len(self.schema) - (0 if self.distinct else 2)
        anchor = [column_name(i) for i in range(width)]
        made = _inner_sql(self.inner, self.inner.nodes[-1].id)
        if self.distinct:
            listed = ", ".join(anchor)
            first, following = f"SELECT DISTINCT {listed} FROM i0", f"SELECT DISTINCT {columns} FROM ({made})"
        else:
            listed = ", ".join([*anchor, named("0", width), named("COUNT(*)", width + 1)])
            by = ", ".join([*anchor, column_name(width)])
            count = column_name(width + 1)
            first = f"SELECT {listed} FROM i0 GROUP BY {', '.join(anchor)}"
            following = f"SELECT {by}, SUM({count}) AS {count} FROM ({made}) GROUP BY {by}"
        return Query(first, self.schema, rounds=Rounds(following, self.distinct, self.limit))

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: R is checked by its rows, and what the inner circuit keeps is filled anew with them."""
        return ()


def _inner_sql(inner: Circuit, node: int) -> str:
    """Return the SQL of an inner node: over ``newest`` for the rows of the round before, and the operator's inputs."""
    found = inner.nodes[node]
    if isinstance(found.operator, Source):
        return "SELECT * FROM " + ("newest" if found.operator.table == NEWEST else f"i{found.operator.table}")
    below = {f"i{number}": _inner_sql(inner, i) for number, i in enumerate(found.inputs)}
    return re.sub(r"\bi\d+\b", lambda match: f"({below[match[0]]})", found.operator.query().sql)


class _Rounds:
    """One step in the making."""

    def __init__(self, operator: Recursion, context: StepContext) -> None:
        self.operator = operator
        self.context = context
        self.overlay = Overlay(context.lookups)
        self.arrow = operator.schema.to_arrow()

    # ---- UNION ALL ----

    def bag(self, first: Delta, others: Mapping[int, Delta]) -> Delta:
        """Follow changes round by round."""
        changed: list[Delta] = []
        derived = self._counted(first)
        external = others
        # In the first turn all rounds of R meet the other inputs' changes, so rows of many rounds may be derived.
        waiting = derived
        while waiting.num_rows or external:
            rounds = waiting.rows.column(len(self.arrow) - 2).to_numpy()
            now = rounds == rounds.min() if len(rounds) else np.zeros(0, dtype=bool)
            step = self._recount(waiting.filter(now)) if len(rounds) else waiting
            changed.append(step)
            later = waiting.filter(~now) if len(rounds) else waiting
            waiting = self._together([later, self._next(step, external)])
            external = {}
        return Delta.concat(changed, self.arrow).consolidate()

    def _counted(self, first: Delta) -> Delta:
        """Return anchor rows as rows of round 0; the count of each is its weight."""
        count = first.num_rows
        columns = [*first.rows.columns, pa.repeat(pa.scalar(0, pa.int32()), count), pa.array(np.ones(count, np.int64))]
        return Delta(pa.RecordBatch.from_arrays(columns, schema=self.arrow), first.weights)

    def _recount(self, derived: Delta) -> Delta:
        """Add derivations of one round to R; return the rows with their old counts (−1) and their new ones (+1)."""
        width = len(self.arrow) - 1
        amounts = derived.rows.column(width).to_numpy() * derived.weights
        groups, first = derived.group(tuple(range(width)))
        rows = derived.take(first).rows
        changes = np.zeros(len(first), np.int64)
        np.add.at(changes, groups, amounts)
        keys, order, old, _ = self._stored(rows.columns[:width])
        rows, changes = rows.take(pa.array(order)), changes[order]
        new = old + changes
        if (new < 0).any():
            raise state_is_broken(self.operator.state)
        self._write(keys, rows.columns[:width], new, new > 0)
        before = self._good(rows, old, -1)
        after = self._good(rows, new, +1)
        return Delta.concat([before, after], self.arrow).consolidate()

    def _good(self, rows: pa.RecordBatch, counts: np.ndarray, weight: int) -> Delta:
        """Return the rows with ``counts``; those past the limits are error rows."""
        there = np.flatnonzero(counts > 0)
        columns = [*rows.columns[:-1], pa.array(counts)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.arrow).take(pa.array(there))
        delta = Delta.from_rows(batch, weight)
        deep = batch.column(len(self.arrow) - 2).to_numpy() >= self.operator.limit
        failing = deep | (batch.column(len(self.arrow) - 1).to_numpy() > MOST_COPIES)
        reasons = np.full(len(failing), TOO_DEEP, dtype=object)
        return keep_good(delta, Errors(failing, reasons), self.operator.errors, self.context)[0]

    # ---- UNION ----

    def set(self, first: Delta, others: Mapping[int, Delta]) -> Delta:
        """Delete and rederive."""
        gone: list[Delta] = []
        come: list[Delta] = []
        waiting = self._together([first, self._next(Delta.empty(self.arrow), others)])
        revived: list[pa.RecordBatch] = []
        while waiting.num_rows:
            # Gains are counted at once, but come into R only when all losses have been followed.
            losers, gainers = self._count(waiting)
            revived += [losers, gainers]
            out = Delta.from_rows(losers, -1)
            gone.append(out)
            waiting = self._next(out, {})
        # The last round is the one that finds nothing new.
        for _ in range(self.operator.limit + 1):
            new = self._admit(revived)
            if not new.num_rows:
                break
            come.append(new)
            revived = [self._count(self._next(new, {}))[1]]
        else:
            return self._give_up()
        return Delta.concat([*gone, *come], self.arrow).consolidate()

    def _count(self, derived: Delta) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Count derivations; return the rows of R that lost one, now taken out, and rows not in R that gained one."""
        groups, first = derived.group(tuple(range(len(self.arrow))))
        changes = np.zeros(len(first), np.int64)
        np.add.at(changes, groups, derived.weights)
        rows = derived.take(first).rows
        keys, order, old, inside = self._stored(rows.columns)
        rows, changes = rows.take(pa.array(order)), changes[order]
        new = old + changes
        if (new < 0).any():
            raise state_is_broken(self.operator.state)
        # A loss counts though a gain makes up for it: what is gained may come, in a cycle, from the row itself.
        lost = np.zeros(len(first), dtype=bool)
        lost[groups[derived.weights < 0]] = True
        loses = inside & lost[order]
        gains = ~inside & (new > 0)
        self._write(keys, rows.columns, new, inside & ~loses)
        return rows.filter(pa.array(loses)), rows.filter(pa.array(gains))

    def _admit(self, candidates: list[pa.RecordBatch]) -> Delta:
        """Take the candidates into R that have a derivation and are not there; return them."""
        rows = Delta.concat([Delta.from_rows(batch) for batch in candidates], self.arrow)
        rows = rows.take(rows.group(tuple(range(len(self.arrow))))[1])
        if not rows.num_rows:
            return rows
        keys, order, counts, inside = self._stored(rows.rows.columns)
        rows = rows.take(order)
        enters = ~inside & (counts > 0)
        self._write(keys, rows.rows.columns, counts, inside | enters)
        return rows.filter(enters)

    def _give_up(self) -> Delta:
        """Keep nothing but a mark: rows without end have no state to go on from; the view waits to be filled anew."""
        self.overlay = Overlay(self.context.lookups)
        writes = WriteSet()
        writes.put(self.operator.state, [_GIVEN_UP], [b"\x00"])
        self.overlay.apply(writes)
        nothing = [pa.nulls(1, field.type) for field in self.arrow]
        row = Delta.from_rows(pa.RecordBatch.from_arrays(nothing, schema=self.arrow))
        failing = Errors(np.ones(1, dtype=bool), np.full(1, TOO_DEEP, dtype=object))
        return keep_good(row, failing, self.operator.errors, self.context)[0]

    # ---- both ----

    def _next(self, newest: Delta, others: Mapping[int, Delta]) -> Delta:
        """Let the inner circuit follow the changes of R and of the other inputs."""
        if not newest.num_rows and not others:
            return Delta.empty(self.arrow)
        writes = WriteSet(merges=self.context.writes.merges)
        values = self.operator.inner.step({NEWEST: newest, **others}, StepContext(self.overlay, writes))
        self.overlay.apply(writes)
        made = values[self.operator.inner.nodes[-1].id]
        return Delta(pa.RecordBatch.from_arrays(made.rows.columns, schema=self.arrow), made.weights)

    def _together(self, deltas: list[Delta]) -> Delta:
        return Delta.concat([delta for delta in deltas if delta.num_rows], self.arrow)

    def _stored(self, columns: list[pa.Array]) -> tuple[list[bytes], np.ndarray, np.ndarray, np.ndarray]:
        """Return the keys of distinct rows in order, that order, and of each its count and whether it is in R."""
        keys, order = encode_sorted(self.operator.key_codec.encode, columns)
        found = self.overlay.multi_get(self.operator.state, keys)
        counts, inside = np.zeros(len(keys), np.int64), np.zeros(len(keys), dtype=bool)
        there = np.array([value is not None for value in found], dtype=bool)
        if there.any():
            rows = self.operator.row_codec.decode([value for value in found if value is not None])
            counts[there] = rows.column(0).to_numpy()
            inside[there] = rows.column(1).to_numpy(zero_copy_only=False)
        return keys, np.arange(len(keys)) if order is None else order, counts, inside

    def _write(self, keys: list[bytes], columns: list[pa.Array], counts: np.ndarray, inside: np.ndarray) -> None:
        encoded = self.operator.row_codec.encode([pa.array(counts), pa.array(inside), *columns])
        stays = (counts > 0).tolist()
        writes = WriteSet()
        values = [row if kept else None for row, kept in zip(encoded, stays, strict=True)]
        writes.change(self.operator.state, keys, values)
        self.overlay.apply(writes)
