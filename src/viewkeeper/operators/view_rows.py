"""VIEW ROWS: the end of a view's circuit: its rows in the store, under the view's key.

Rule:   the view's table becomes table + d.
State:  the view's key -> the row, hidden columns included. This table is the view: readers get and scan it.
Why:    a derived key makes rows unique, so a netted delta says for each key which row it has now.
        A declared key is the user's promise and is checked: candidates are kept under (declared key, derived key); one
        with two candidates is an error row (KEY_NOT_UNIQUE) until it has one again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.evaluate import Errors
from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.arrange import stage_rows, stored_rows
from viewkeeper.operators.base import ErrorSite, Stateless
from viewkeeper.operators.contents import Contents, Query, columns_sql
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import STRING, Column, Schema

KEY_NOT_UNIQUE = "KEY_NOT_UNIQUE"


@dataclass(frozen=True)
class ViewRows(Stateless):
    """The rows of a view.

    Args:
        schema: visible, then hidden columns.
        key: positions of the view's key.
        identity: positions of the derived key, which tells rows apart for certain.
        state: the view's table; None where only its key is checked, for views that read it in another cadence.
        candidates: the state table of candidates for a declared key; None for a derived one.
        errors: where rows go that break a declared key.
    """

    schema: Schema
    key: tuple[int, ...]
    identity: tuple[int, ...]
    state: str | None
    candidates: str | None
    errors: ErrorSite | None

    @property
    def states(self) -> tuple[str, ...]:
        """The view's table, and the candidates for a declared key."""
        return tuple(state for state in (self.state, self.candidates) if state is not None)

    @cached_property
    def key_codec(self) -> KeyCodec:
        """View key to bytes."""
        return KeyCodec(tuple(self.schema.types[i] for i in self.key))

    @cached_property
    def row_codec(self) -> RowCodec:
        """Rows to bytes."""
        return RowCodec(self.schema.types)

    @cached_property
    def _candidate_columns(self) -> tuple[int, ...]:
        return (*self.key, *(i for i in self.identity if i not in self.key))

    @cached_property
    def _candidate_codec(self) -> KeyCodec:
        return KeyCodec(tuple(self.schema.types[i] for i in self._candidate_columns))

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Stage the rows that change."""
        (delta,) = inputs
        if not delta.num_rows:
            return delta
        if self.candidates is not None:
            self._stage_checked(delta, context)
        if self.state is None:
            return delta
        context.writes.rows[self.state] = context.writes.rows.get(self.state, 0) + delta.num_rows
        if not self.key:
            self._stage_single(self.state, delta, context)
        elif self.candidates is None:
            key = [delta.rows.column(i) for i in self.key]
            stage_rows(delta, key, self.key_codec, self.row_codec, self.state, context)
        return delta

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows unchanged."""
        return inputs[0]

    def query(self) -> Query:
        """Return the input's rows."""
        return Query("SELECT * FROM i0", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return the view's rows, hidden columns included, and the candidates for a declared key."""
        kept = []
        if self.candidates is not None:
            columns, codec = self._candidate_columns, self._candidate_codec
            kept.append(stored_rows(self.candidates, "candidates", self.query(), columns, codec, self.row_codec))
        if self.state is not None:
            query = self.query() if self.candidates is None else self._single()
            kept.append(stored_rows(self.state, "rows", query, self.key, self.key_codec, self.row_codec))
        return tuple(kept)

    def _single(self) -> Query:
        """Return the rows that have their declared key for themselves."""
        items, by = ", ".join(columns_sql(range(len(self.schema)))), ", ".join(map(column_name, self.key))
        counted = f"SELECT *, COUNT(*) OVER (PARTITION BY {by}) AS candidates FROM i0"
        return Query(f"SELECT {items} FROM ({counted}) WHERE candidates = 1", self.schema)

    def violations(self) -> Query:
        """Return the entries of the error bag: the declared keys that several rows share."""
        by = ", ".join(map(column_name, self.key))
        sql = f"SELECT {', '.join(columns_sql(self.key))} FROM i0 GROUP BY {by} HAVING COUNT(*) > 1"

        def finish(batch: pa.RecordBatch) -> list[pa.Array]:
            site = self.errors
            assert site is not None
            rows = range(batch.num_rows)
            entries = [site.entry(KEY_NOT_UNIQUE, [column[i] for column in batch.columns]) for i in rows]
            return [pa.array([entry.decode() for entry in entries], pa.string())]

        return Query(sql, Schema((Column("entry", STRING, False),)), finish=finish)

    def _stage_single(self, state: str, delta: Delta, context: StepContext) -> None:
        """A global aggregate has one row, under a key of no columns."""
        arrived = self.row_codec.encode(delta.filter(delta.weights > 0).rows)
        context.writes.change(state, [SINGLE_KEY], [arrived[-1] if arrived else None])

    def _stage_checked(self, delta: Delta, context: StepContext) -> None:
        """Keep all candidates; show those keys that have exactly one."""
        candidates = str(self.candidates)
        key = [delta.rows.column(i) for i in self._candidate_columns]
        stage_rows(delta, key, self._candidate_codec, self.row_codec, candidates, context)
        groups, first = delta.group(self.key)
        keys = self.key_codec.encode([delta.rows.column(i).take(pa.array(first)) for i in self.key])
        order = sorted(range(len(keys)), key=keys.__getitem__)
        owner, values = context.lookups.multi_scan(candidates, [keys[i] for i in order])
        stored: list[list[bytes]] = [[] for _ in keys]
        for position, value in zip(owner.tolist(), values, strict=True):
            stored[order[position]].append(value)
        encoded = self.row_codec.encode(delta.rows)
        comes: list[list[bytes]] = [[] for _ in keys]
        goes: list[set[bytes]] = [set() for _ in keys]
        for row, (group, weight) in enumerate(zip(groups.tolist(), delta.weights.tolist(), strict=True)):
            if weight > 0:
                comes[group].append(encoded[row])
            else:
                goes[group].add(encoded[row])
        after = [[r for r in s if r not in g] + c for s, g, c in zip(stored, goes, comes, strict=True)]
        rows = [after[i][0] if len(after[i]) == 1 else None for i in order]
        if self.state is not None:
            context.writes.change(self.state, [keys[i] for i in order], rows)
        self._mark(delta, first, [len(s) for s in stored], [len(a) for a in after], context)

    def _mark(self, delta: Delta, first: np.ndarray, before: list[int], after: list[int], context: StepContext) -> None:
        """Let keys enter and leave the error bag as they become shared and single again."""
        change = np.array([(a > 1) - (b > 1) for b, a in zip(before, after, strict=True)], dtype=np.int64)
        rows = delta.take(first).with_weights(change).filter(change != 0)
        if rows.num_rows and self.errors is not None:
            everything = np.ones(rows.num_rows, dtype=bool)
            self.errors.record(rows, Errors(everything, np.full(rows.num_rows, KEY_NOT_UNIQUE, dtype=object)), context)
