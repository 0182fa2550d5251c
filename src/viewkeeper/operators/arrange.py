"""ARRANGE: keeps the rows of a subplan in the store under chosen key columns (an auxiliary view).

Rule:   step(d) = d, and the state becomes state + d.
State:  key columns, then the value that orders them where a range is sought (range_order.py), then the subplan's own
        key -> the row.
Why:    the subplan's key makes each row unique, so a netted delta holds per state key at most the old row (-1) and the
        new one (+1): the new one is written, a key with an old row only is deleted. No lookup is needed.
        Shared by every join of the cadence that needs the same subplan under the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.spark_sql import column_name
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.range_order import RangeOrder
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.ordering import encode_sorted
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Arrange(Stateless):
    """The rows of a subplan under ``columns``.

    Args:
        schema: the rows.
        columns: positions of the key columns by which others look up.
        key: positions of the subplan's own key.
        state: the state table.
        skip_null_keys: whether rows with a NULL key column are left out, as no join can find them.
        order: how the rows of one key are ordered among themselves; None: by the subplan's key.
    """

    schema: Schema
    columns: tuple[int, ...]
    key: tuple[int, ...]
    state: str
    skip_null_keys: bool = False
    order: RangeOrder | None = None

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the state tables that it writes."""
        return (self.state,)

    @property
    def identity(self) -> tuple[int, ...]:
        """Positions whose values tell the state's rows apart, each once."""
        return (*self.columns, *self._rest)

    @property
    def _rest(self) -> tuple[int, ...]:
        return tuple(k for k in self.key if k not in self.columns)

    @property
    def is_unique(self) -> bool:
        """Whether at most one row can stand under each value of ``columns``."""
        return set(self.key) <= set(self.columns)

    @cached_property
    def key_codec(self) -> KeyCodec:
        """How state keys become bytes."""
        types = self.schema.types
        ordering = () if self.order is None else self.order.types
        return KeyCodec((*(types[i] for i in self.columns), *ordering, *(types[i] for i in self._rest)))

    @cached_property
    def row_codec(self) -> RowCodec:
        """How rows become bytes."""
        return RowCodec(self.schema.types)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Stage the rows that come and go; the delta passes through."""
        (delta,) = inputs
        kept = delta.filter(may_match(delta, self.columns)) if self.skip_null_keys else delta
        stage_rows(kept, self._key_columns(kept.rows), self.key_codec, self.row_codec, self.state, context)
        return delta

    def range_keys(self, delta: Delta) -> list[bytes]:
        """Return for each row what its state key begins with: the key columns and the order."""
        return self.key_codec.encode_prefixes(self._ordered_columns(delta.rows))

    def _ordered_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        ordering = [] if self.order is None else self.order.columns(rows)
        return [*(rows.column(i) for i in self.columns), *ordering]

    def _key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [*self._ordered_columns(rows), *(rows.column(i) for i in self._rest)]

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows unchanged."""
        return inputs[0]

    def query(self) -> Query:
        """Return the input's rows."""
        return Query("SELECT * FROM i0", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return the rows that others can look up."""
        present = " AND ".join(f"{column_name(i)} IS NOT NULL" for i in self.columns) if self.skip_null_keys else "true"
        query = Query(f"SELECT * FROM i0 WHERE {present}", self.schema)
        plain = stored_rows(self.state, "arrangement", query, self.identity, self.key_codec, self.row_codec)
        if self.order is None:
            return (plain,)
        names = [column_name(i) for i in range(len(self.schema))]

        def keys_of(columns: Sequence[pa.Array]) -> Sequence[bytes]:
            return self.key_codec.encode(self._key_columns(pa.RecordBatch.from_arrays(list(columns), names=names)))

        return (replace(plain, keys_of=keys_of),)


def may_match(delta: Delta, columns: Sequence[int], null_safe: frozenset[int] = frozenset()) -> np.ndarray:
    """Return which rows can have a partner: those without a NULL in a key column, where NULL does not equal NULL."""
    present = np.ones(delta.num_rows, dtype=bool)
    for number, column in enumerate(columns):
        values = delta.rows.column(column)
        if number not in null_safe and values.null_count:
            present &= values.is_valid().to_numpy(zero_copy_only=False)
    return present


def stored_rows(
    state: str, kind: str, query: Query, key: tuple[int, ...], key_codec: KeyCodec, row_codec: RowCodec
) -> Contents:
    """Return the contents of a state table that holds whole rows under some of their columns; under none: one row."""

    def keys_of(columns: Sequence[pa.Array]) -> Sequence[bytes]:
        return key_codec.encode([columns[i] for i in key]) if key else [SINGLE_KEY] * len(columns[0])

    return Contents(state, kind, query, key, lambda keys, values: row_codec.decode(values).columns, keys_of)


def stage_rows(
    delta: Delta,
    key: Sequence[pa.Array],
    key_codec: KeyCodec,
    row_codec: RowCodec,
    state: str,
    context: StepContext,
) -> None:
    """Stage a netted delta of uniquely keyed rows: new rows are put, rows that only went are deleted.

    Args:
        delta: the rows.
        key: the columns of their keys; none where there is one row at most.
        key_codec: keys to bytes.
        row_codec: rows to bytes.
        state: the state table.
        context: for the writes.
    """
    if not delta.num_rows:
        return
    keyed = delta.with_columns(key)
    comes = delta.weights > 0
    if not comes.all():
        # An old and a new row of one key: the new one counts, and only one of them need be encoded.
        groups, first = keyed.group(range(len(key)))
        chosen = np.full(len(first), -1, np.int64)
        arrived = np.flatnonzero(comes)
        chosen[groups[arrived]] = arrived
        comes = chosen >= 0
        wanted = np.where(comes, chosen, first)
        delta, keyed = delta.take(wanted), keyed.take(wanted)
    keys, order = encode_sorted(key_codec.encode, keyed.rows.columns) if key else ([SINGLE_KEY], None)
    if order is not None:
        delta, comes = delta.take(order), comes[order]
    if comes.all():
        context.writes.put(state, keys, row_codec.encode(delta.rows))
        return
    context.writes.delete(state, list(compress(keys, (~comes).tolist())))
    context.writes.put(state, list(compress(keys, comes.tolist())), row_codec.encode(delta.filter(comes).rows))
