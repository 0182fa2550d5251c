"""Reading a view's rows: by its key, in key order, or whole.

Rows are stored under the view's key with all columns, hidden ones included; readers see the visible ones. A view whose
key is not among its visible columns can be scanned but not got.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import pyarrow as pa

from viewkeeper.errors import InputError
from viewkeeper.plan.nodes import ViewPlan
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.scans import ROWS_PER_BATCH, Bounds, KeyOrder, ordered_pairs
from viewkeeper.store.tables import TableFormat
from viewkeeper.store.values import key_values
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.row_form import RowForm
from viewkeeper.zset.keys import SINGLE_KEY
from viewkeeper.zset.schema import Column, Schema
from viewkeeper.zset.versions import first_layout

Row = dict[str, object]

_HIDDEN_KEY = re.compile(r"__key_\d+_")  # what the planner puts before the name of a key column that it adds


@dataclass(frozen=True)
class Part:
    """A range of a view's rows in key order.

    Args:
        rows: the rows, hidden columns included.
        misplaced: those among them, and the one behind them, that stand under a key that is not theirs.
        behind: the stored row at whose key the rest begins; None where there is none.
    """

    rows: pa.RecordBatch
    misplaced: pa.RecordBatch
    behind: bytes | None


@dataclass(frozen=True)
class StoredView:
    """A view as readers find it.

    Args:
        name: its name.
        state: the sub-database of the views space that holds its rows.
        schema: all columns, the visible ones first.
        visible: how many are visible.
        key: positions of its key.
        id: of the view.
        is_as_planned: whether its rows are stored in the form of its present plan; else another version of Viewkeeper
            wrote them, and hidden columns are those that it needed.
    """

    name: str
    state: str
    schema: Schema
    visible: int
    key: tuple[int, ...]
    id: int
    is_as_planned: bool = True

    @staticmethod
    def of(view: ViewDefinition, plan: ViewPlan, state: str, form: bytes) -> StoredView:
        """Return ``view`` with its rows.

        Args:
            view: the view.
            plan: its plan.
            state: the sub-database that holds its rows.
            form: the form in which they are stored, from the view's record; empty where that does not tell it.
        """
        if form in (b"", RowForm.of(plan).encode()):
            return StoredView(view.name, state, plan.root.schema, plan.visible, plan.key, view.id)
        stored = RowForm.decode(form)
        names = plan.root.schema.names[: plan.visible]
        hidden = (f"__hidden_{i}" for i in range(plan.visible, len(stored.types)))
        columns = (Column(name, type_) for name, type_ in zip((*names, *hidden), stored.types, strict=True))
        return StoredView(view.name, state, Schema(tuple(columns)), plan.visible, stored.key, view.id, False)

    @property
    def visible_schema(self) -> Schema:
        """The columns that users see."""
        return Schema(self.schema.columns[: self.visible])

    @cached_property
    def _format(self) -> TableFormat:
        # Rows are those of a table whose columns never change.
        nothing = (None,) * len(self.schema)
        layouts = (first_layout(self.schema.types),)
        return TableFormat(Table(0, self.name, self.schema, self.key, nothing, layouts, nothing))

    # ---- by key ----

    def get(self, txn: ReadTransaction, key: object, time_zone: str = "UTC") -> Row | None:
        """Return the row at ``key``.

        Args:
            txn: a read transaction of the views space.
            key: one value, a tuple in key order, or a dict by column name.
            time_zone: the session's zone, for naive datetimes.

        Returns:
            The visible columns by name, None where there is no such row.

        Raises:
            InputError: ``VIEW_HAS_NO_KEY``, or what ``store.values.key_values`` raises.
        """
        raw = txn.get(self.state, self._key_bytes(key, time_zone))
        return None if raw is None else self._row(raw)

    def multi_get(self, txn: ReadTransaction, keys: Sequence[object], time_zone: str = "UTC") -> list[Row | None]:
        """Return the rows at ``keys``, in their order, None where there is none; see ``get``."""
        encoded = [self._key_bytes(key, time_zone) for key in keys]
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        found: list[Row | None] = [None] * len(encoded)
        for place, raw in zip(order, txn.multi_get(self.state, [encoded[i] for i in order]), strict=True):
            found[place] = None if raw is None else self._row(raw)
        return found

    def batch_at(self, txn: ReadTransaction, keys: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
        """Return the rows (all columns) at full keys in their stored form; hidden key columns are allowed here."""
        codec = self._format.key_codec
        encoded = sorted({codec.encode_values(key) for key in keys} if self.key else {SINGLE_KEY})
        return self._format.decode([raw for raw in txn.multi_get(self.state, encoded) if raw is not None])

    def _key_bytes(self, key: object, time_zone: str) -> bytes:
        self.check_key()
        if not self.key:
            key_values((), (), key, time_zone)
            return SINGLE_KEY
        columns = [self.schema.columns[i] for i in self.key]
        values = key_values([c.name for c in columns], [c.type for c in columns], key, time_zone)
        return self._format.key_codec.encode_values(values)

    def check_key(self) -> None:
        """Refuse to look up a view by key that does not show its key.

        Raises:
            InputError: ``VIEW_HAS_NO_KEY``.
        """
        hidden = [_users_name(self.schema.columns[i].name) for i in self.key if i >= self.visible]
        if hidden:
            names = ", ".join(dict.fromkeys(hidden))
            message = (
                f"The rows of view {self.name!r} cannot be told apart by its columns: add {names} to its SELECT list,"
                " or declare a PRIMARY KEY; it can be scanned and queried as it is."
            )
            raise InputError("VIEW_HAS_NO_KEY", message, {"view": self.name, "columns": hidden})

    # ---- in key order ----

    def scan(
        self,
        txn: ReadTransaction,
        prefix: object = None,
        start: object = None,
        stop: object = None,
        reverse: bool = False,
        limit: int | None = None,
        time_zone: str = "UTC",
    ) -> Iterator[Row]:
        """Yield visible rows in key order.

        Args:
            txn: a read transaction of the views space, open while the iterator is used.
            prefix: rows whose first key columns equal it: one value, a tuple, or a dict of the first key columns.
            start: rows whose key is at or behind it.
            stop: rows whose key is before it.
            reverse: from the last to the first.
            limit: how many rows at most.
            time_zone: the session's zone, for naive datetimes.

        Raises:
            InputError: ``VIEW_HAS_NO_KEY`` where bounds are given for a view that does not show its key.
        """
        if prefix is not None or start is not None or stop is not None:
            self.check_key()
        bounds = Bounds(*(self._bound(value, time_zone) for value in (start, stop, prefix)))
        pairs = ordered_pairs(txn, self.state, KeyOrder(self._format), bounds, reverse)
        return (self._row(raw) for _, raw in islice(pairs, limit))

    def _bound(self, value: object, time_zone: str) -> tuple[object, ...] | None:
        if value is None:
            return None
        count = len(value) if isinstance(value, tuple | list | dict) else 1
        columns = [self.schema.columns[i] for i in self.key][:count]
        return key_values([c.name for c in columns], [c.type for c in columns], value, time_zone)

    # ---- whole ----

    def count(self, txn: ReadTransaction) -> int:
        """Return how many rows it has."""
        return txn.count(self.state)

    def batches(
        self, txn: ReadTransaction, hidden: bool = False, rows: int = ROWS_PER_BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows as Arrow batches.

        Args:
            txn: a read transaction of the views space, open while the iterator is used.
            hidden: whether to yield the hidden columns too.
            rows: rows of one batch.
        """
        schema = (self.schema if hidden else self.visible_schema).to_arrow()
        found = (raw for _, raw in txn.scan(self.state))
        while some := list(islice(found, rows)):
            columns = self._format.decode(some).columns
            yield pa.RecordBatch.from_arrays(columns[: len(schema)], schema=schema)

    def part(self, txn: ReadTransaction, start: bytes | None, rows: int) -> Part:
        """Return up to ``rows`` rows in key order.

        Args:
            txn: a read transaction of the views space.
            start: a stored row, at whose key it begins; None: at the first.
            rows: how many at most.

        Raises:
            StoreError: a row cannot be read.
        """
        bounds = Bounds(start=None if start is None else self.key_of(start))
        pairs = list(islice(ordered_pairs(txn, self.state, KeyOrder(self._format), bounds, False), rows + 1))
        batch = self._format.decode([raw for _, raw in pairs])
        theirs = self._format.encode(batch)[0] if self.key else [SINGLE_KEY] * len(pairs)
        misplaced = [i for i, (key, _) in enumerate(pairs) if key != theirs[i]]
        behind = pairs[rows][1] if len(pairs) > rows else None
        return Part(batch.slice(0, rows), batch.take(pa.array(misplaced, pa.int64())), behind)

    def key_of(self, raw: bytes) -> tuple[object, ...]:
        """Return the key of a stored row."""
        values = self._format.decode_row(raw)
        return tuple(values[i] for i in self.key)

    def decode_row(self, raw: bytes) -> tuple[object, ...]:
        """Return the values of a stored row, hidden columns included."""
        return self._format.decode_row(raw)

    def _row(self, raw: bytes) -> Row:
        values = self._format.decode_row(raw)
        return dict(zip(self.schema.names[: self.visible], values, strict=False))


def _users_name(name: str) -> str:
    """Return what the user calls a hidden key column."""
    return "a constant for each branch of UNION ALL" if name == "__branch" else _HIDDEN_KEY.sub("", name, count=1)
