"""Writing base tables: each call, or each ``with db.transaction()`` block, is one transaction of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from viewkeeper.coordinator.core import Coordinator
from viewkeeper.errors import ConflictError, InputError
from viewkeeper.log.position import Position
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.store import values
from viewkeeper.store.batches import batch_from
from viewkeeper.store.key_value import WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.transactions import (
    CheckAndPut,
    Committed,
    DeleteRow,
    Operation,
    PutBatch,
    PutRow,
    TableStore,
    UpdateRow,
)
from viewkeeper.views.catalog import Catalog, catalog_version

Rows = object
Prepare = Callable[[Catalog], Iterable[Operation]]


class Writer:
    """Turns what users pass into operations and commits them under the catalog that they were made for.

    Args:
        coordinator: its catalog and base space.
        time_zone: the session's zone.
    """

    def __init__(self, coordinator: Coordinator, time_zone: str) -> None:
        self._coordinator = coordinator
        self._store = TableStore(coordinator.base)
        self._time_zone = time_zone

    def commit(self, prepare: Prepare) -> Committed:
        """Commit what ``prepare`` makes of the catalog; made anew where the catalog changes meanwhile."""
        while True:
            catalog = self._coordinator.catalog()
            operations = prepare(catalog)
            failpoint("commit:before")
            try:
                done = self._store.commit(operations, _unchanged(catalog))
            except ConflictError as error:
                if error.code != "CATALOG_CHANGED":
                    raise
                continue
            failpoint("commit:after")
            return done

    def put_operation(self, table: Table, row: Mapping[str, object]) -> Operation:
        """Return the operation that puts ``row``."""
        return PutRow(table, values.row_from_dict(table, row, self._time_zone))

    def update_operation(self, table: Table, key: object, changes: Mapping[str, object]) -> Operation:
        """Return the operation that sets some columns of the row at ``key``."""
        at = values.key_of_table(table, key, self._time_zone)
        return UpdateRow(table, at, values.changes_from_dict(table, changes, self._time_zone))

    def delete_operation(self, table: Table, key: object) -> Operation:
        """Return the operation that deletes the row at ``key``."""
        return DeleteRow(table, values.key_of_table(table, key, self._time_zone))

    def batch_operation(self, table: Table, rows: Rows) -> Operation:
        """Return the operation that puts many rows."""
        return PutBatch(table, batch_from(table, rows, self._time_zone))

    def check_operation(
        self, table: Table, row: Mapping[str, object], expected: Mapping[str, object] | None
    ) -> Operation:
        """Return the operation that puts ``row`` if the row there shows ``expected``."""
        wanted = None if expected is None else values.expectation_from_dict(table, expected, self._time_zone)
        return CheckAndPut(table, values.row_from_dict(table, row, self._time_zone), wanted)


def _unchanged(catalog: Catalog) -> Callable[[WriteTransaction], None]:
    def guard(txn: WriteTransaction) -> None:
        if catalog_version(txn) != catalog.version:
            raise ConflictError("CATALOG_CHANGED", "Tables or views changed while the write was prepared: write again.")

    return guard


_Step = Callable[[Catalog], list[Operation]]


@dataclass(frozen=True)
class _Run:
    """Many writes of one kind to one table: noted as a list, for a closure each costs more than the write."""

    operation_of: Callable[[Table, Any], Operation]
    table: str
    given: list[object]

    def __call__(self, catalog: Catalog) -> list[Operation]:
        table, operation_of = catalog.table(self.table), self.operation_of
        return [operation_of(table, given) for given in self.given]


class Transaction:
    """Several writes, all or nothing; use as a context manager.

    Writes are only noted inside the block. The write lock is taken when the block is left, so slow code in it holds
    nobody up; an exception in it drops everything. ``position`` is set afterwards.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._steps: list[_Step] = []
        self._is_over = False
        self.position: Position | None = None

    def put(self, table: str, row: Mapping[str, object]) -> None:
        """Insert or replace a row.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     with db.transaction() as tx:
            ...         tx.put("orders", {"id": 4, "product": "rum", "price": 9})
            ...     db.get("orders", 4)
            {'id': 4, 'product': 'rum', 'price': 9}
        """
        self._note_row(self._writer.put_operation, table, copy(row))

    def update(self, table: str, key: object, changes: Mapping[str, object]) -> None:
        """Set some columns of the row at ``key``; the commit fails with ROW_NOT_FOUND where there is none.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     with db.transaction() as tx:
            ...         tx.update("orders", 1, {"price": 6})
            ...         tx.update("orders", 2, {"price": 8})
            ...     [row["price"] for row in db.scan("orders")]
            [6, 8, 4]
        """
        given = copy(changes)
        at = copy(key)
        self._note(lambda catalog: [self._writer.update_operation(catalog.table(table), at, given)])

    def delete(self, table: str, key: object) -> None:
        """Delete the row at ``key``; an absent one does nothing.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     with db.transaction() as tx:
            ...         tx.delete("orders", 1)
            ...         tx.delete("orders", 2)
            ...     [row["id"] for row in db.scan("orders")]
            [3]
        """
        self._note_row(self._writer.delete_operation, table, copy(key))

    def put_batch(self, table: str, rows: Rows) -> None:
        """Insert or replace many rows: dicts, pandas, polars or Arrow.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     with db.transaction() as tx:
            ...         tx.delete("orders", 1)
            ...         tx.put_batch("orders", [{"id": 4, "product": "rum"}, {"id": 5, "product": "tea"}])
            ...     [row["id"] for row in db.scan("orders")]
            [2, 3, 4, 5]
        """
        given = [copy(row) for row in rows] if isinstance(rows, list) else rows
        self._note(lambda catalog: [self._writer.batch_operation(catalog.table(table), given)])

    def _note_row(self, operation_of: Callable[[Table, Any], Operation], table: str, given: object) -> None:
        last = self._steps[-1] if self._steps else None
        if isinstance(last, _Run) and last.table == table and last.operation_of == operation_of and not self._is_over:
            last.given.append(given)
        else:
            self._note(_Run(operation_of, table, [given]))

    def _note(self, step: _Step) -> None:
        self._check_running()
        self._steps.append(step)

    def _check_running(self) -> None:
        if self._is_over:
            raise InputError("TRANSACTION_OVER", "This transaction has ended: open another with db.transaction().")

    def __enter__(self) -> Transaction:
        self._check_running()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_over, self._is_over = self._is_over, True
        if kind is None and not is_over:
            done = self._writer.commit(lambda catalog: [done for step in self._steps for done in step(catalog)])
            self.position = Position(done.sequence_number)
