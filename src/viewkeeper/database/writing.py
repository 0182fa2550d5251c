"""The writes of a connection: each call is one transaction of the log."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.closing import Closing
from viewkeeper.database.engine import Engine
from viewkeeper.database.writes import Rows, Transaction, Writer
from viewkeeper.log.position import Position


class Writing(Closing):
    """The part of ``Database`` that writes base tables.

    Args:
        engine: the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def _writer(self) -> Writer:
        self._engine.check_open()
        return self._engine.writer

    def put(self, table: str, row: Mapping[str, object]) -> Position:
        """Insert a row, or replace the one with its key; absent columns take their DEFAULT, else NULL.

        Args:
            table: a base table.
            row: values by column name.

        Returns:
            The position of the write, for ``wait_for``.

        Raises:
            InputError: ``TABLE_NOT_FOUND``, ``UNKNOWN_COLUMN``, ``WRONG_TYPE``, ``VALUE_OUT_OF_RANGE``,
                ``NULL_IN_NOT_NULL_COLUMN``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.put("orders", {"id": 1, "product": "rum"})
            ...     db.get("orders", 1)
            {'id': 1, 'product': 'rum', 'price': None}
        """
        writer = self._writer
        done = writer.commit(lambda catalog: [writer.put_operation(catalog.table(table), row)])
        return Position(done.sequence_number)

    def update(self, table: str, key: object, changes: Mapping[str, object]) -> Position:
        """Set some columns of the row at ``key``.

        Args:
            table: a base table.
            key: one value, a tuple in key order, or a dict.
            changes: new values by column name.

        Raises:
            InputError: ``ROW_NOT_FOUND``, and as ``put``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.update("orders", 1, {"price": 6})
            ...     db.get("orders", 1)
            {'id': 1, 'product': 'tea', 'price': 6}
        """
        writer = self._writer
        done = writer.commit(lambda catalog: [writer.update_operation(catalog.table(table), key, changes)])
        return Position(done.sequence_number)

    def delete(self, table: str, key: object) -> Position:
        """Delete the row at ``key``; an absent one does nothing.

        Args:
            table: a base table.
            key: one value, a tuple in key order, or a dict.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.delete("orders", 1)
            ...     db.get("orders", 1) is None
            True
        """
        writer = self._writer
        done = writer.commit(lambda catalog: [writer.delete_operation(catalog.table(table), key)])
        return Position(done.sequence_number)

    def put_batch(self, table: str, rows: Rows) -> Position:
        """Insert or replace many rows in one transaction.

        Args:
            table: a base table.
            rows: a list of dicts, a pandas or polars frame, an Arrow table, batch or reader.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     _ = db.put_batch("orders", [{"id": 4, "product": "rum"}, {"id": 5, "product": "tea"}])
            ...     [row["id"] for row in db.scan("orders")]
            [1, 2, 3, 4, 5]
        """
        writer = self._writer
        done = writer.commit(lambda catalog: [writer.batch_operation(catalog.table(table), rows)])
        return Position(done.sequence_number)

    def check_and_put(self, table: str, row: Mapping[str, object], expected: Mapping[str, object] | None) -> bool:
        """Put ``row`` if the row with its key shows ``expected``.

        Args:
            table: a base table.
            row: values by column name.
            expected: what some columns of the present row must be; None: no row may be there.

        Returns:
            Whether the row was put.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     row = {"id": 1, "product": "tea", "price": 6}
            ...     db.check_and_put("orders", row, {"price": 5}), db.check_and_put("orders", row, {"price": 5})
            (True, False)
        """
        writer = self._writer
        done = writer.commit(lambda catalog: [writer.check_operation(catalog.table(table), row, expected)])
        return done.applied[0]

    def transaction(self) -> Transaction:
        """Return a block of writes, all or nothing.

        Example:
            >>> import tempfile, viewkeeper as vk
            >>> with tempfile.TemporaryDirectory() as folder, vk.connect(folder + "/shop.vk") as db:
            ...     _ = db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k))")
            ...     with db.transaction() as tx:
            ...         tx.put("t", {"k": 1, "v": 5})
            ...         tx.put("t", {"k": 2, "v": 6})
            ...     [row["v"] for row in db.scan("t")]
            [5, 6]
        """
        return Transaction(self._writer)
