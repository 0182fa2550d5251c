"""How a base table's rows stand in a space: one sub-database a table, key bytes to the bytes of the whole row."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from zlib import crc32

import pyarrow as pa

from viewkeeper.errors import ConflictError, InputError, StoreError, ViewkeeperError
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.zset.keys import KeyCodec, after
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.versions import VersionedRows

Values = tuple[object, ...]


class TableFormat:
    """The codecs of one table at one schema version; get it by ``format_of``, building it takes a while.

    Args:
        table: the table as the catalog has it now.
    """

    def __init__(self, table: Table) -> None:
        types = table.schema.types
        self.table = table
        self.database = f"t{table.id}"
        self.arrow_schema = table.schema.to_arrow()
        self.key_codec = KeyCodec(tuple(types[i] for i in table.key))
        self.row_codec: RowCodec | VersionedRows = (
            RowCodec(types, table.version)
            if len(table.versions) == 1
            else VersionedRows(table.versions, table.added_defaults)
        )
        self._key = table.key
        self._has_nested = any(sql_type.is_nested for sql_type in types)

    def key_of(self, values: Values) -> bytes:
        """Return the key bytes of a whole row."""
        return self.key_codec.encode_values([values[i] for i in self._key])

    def encode(self, batch: pa.RecordBatch) -> tuple[list[bytes], list[bytes]]:
        """Return the key bytes and the row bytes of whole rows."""
        return self.key_codec.encode([batch.column(i) for i in self._key]), self.row_codec.encode(batch)

    def batch_of(self, rows: Sequence[Values]) -> pa.RecordBatch | None:
        """Return whole rows of checked Python values as a batch; None where they must be encoded one by one.

        Nested values are; so are values that Arrow refuses, for the row codec then says what is wrong with them.
        """
        arrays = None if self._has_nested else _arrays_of(rows, self.arrow_schema.types)
        return None if arrays is None else pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def keys_of(self, keys: Sequence[Values]) -> list[bytes] | None:
        """Return the key bytes of checked Python values; None where they must be encoded one by one."""
        arrays = None if self._has_nested else _arrays_of(keys, [self.arrow_schema.types[i] for i in self._key])
        return None if arrays is None else self.key_codec.encode(arrays)

    def decode(self, rows: Sequence[bytes]) -> pa.RecordBatch:
        """Return stored rows of any schema version up to the table's as it shows them.

        Raises:
            ConflictError: ``TABLE_CHANGED`` where one has been written since the table's columns changed.
        """
        try:
            batch = self.row_codec.decode(rows)
        except StoreError as error:
            raise self._unreadable(error) from error
        return pa.RecordBatch.from_arrays(batch.columns, schema=self.arrow_schema)

    def decode_row(self, row: bytes) -> Values:
        """Return one stored row as Python values; see ``decode``."""
        try:
            return self.row_codec.decode_values(row)
        except StoreError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: StoreError) -> ViewkeeperError:
        version = error.details.get("version")
        return table_changed(self.table) if isinstance(version, int) and version > self.table.version else error

    def show_key(self, values: Values) -> str:
        """Return the key of a whole row for a message, for example ``k = 1, day = 2``."""
        return self.show_key_values([values[i] for i in self._key])

    def show_key_values(self, key: Sequence[object]) -> str:
        """Return the key columns' values for a message."""
        return ", ".join(f"{c.name} = {v!r}" for c, v in zip(self.table.key_columns, key, strict=True))


def table_changed(table: Table) -> ConflictError:
    """Return the error for rows or log entries of a later schema version than the reader's catalog has."""
    message = f"Columns of table {table.name!r} were changed while it was read: run it again."
    return ConflictError("TABLE_CHANGED", message, {"table": table.name})


def _arrays_of(rows: Sequence[Values], types: Sequence[pa.DataType]) -> list[pa.Array] | None:
    """Return Python rows as columns, None where Arrow refuses a value."""
    try:
        columns = zip(*rows, strict=True)
        return [pa.array(column, arrow_type) for column, arrow_type in zip(columns, types, strict=True)]
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return None


_FORMATS_MAX = 1024
_formats: dict[int, TableFormat] = {}


def format_of(table: Table) -> TableFormat:
    """Return the codecs of ``table``, built once for each object (hashing a table costs more than a put).

    Args:
        table: a table; keep one object for as long as its schema stays.
    """
    found = _formats.get(id(table))
    if found is not None and found.table is table:
        return found
    if len(_formats) >= _FORMATS_MAX:
        _formats.clear()
    built = TableFormat(table)
    _formats[id(table)] = built
    return built


def make_place(txn: WriteTransaction, table_id: int) -> None:
    """Let a table without rows have a place for them: without one it looks dropped to scans (``log.as_of``).

    Args:
        txn: the transaction that creates or alters the table in the catalog.
        table_id: the table.
    """
    txn.multi_put(f"t{table_id}", ())


def drop_rows(txn: WriteTransaction, table_id: int) -> None:
    """Remove a dropped table's rows; its log stays until it is purged.

    Args:
        txn: the transaction that drops the table from the catalog.
        table_id: the table.
    """
    txn.drop(f"t{table_id}")
    prefix = _TABLE_ID.pack(table_id)
    txn.delete_range(SAMPLES, prefix, after(prefix))


# ---- samples: which keys there are, roughly ----

SAMPLES = "samples"  # u32 table id, the first bytes of a key → nothing; about one key in SAMPLE_KEYS
SAMPLE_KEYS = 1024
_SAMPLE_BYTES = 128
_TABLE_ID = Struct(">I")


def keep_samples(
    txn: WriteTransaction,
    table_id: int,
    keys: Sequence[bytes],
    olds: Sequence[bytes | None],
    news: Sequence[bytes | None],
) -> None:
    """Remember or forget those keys that a hash picks, so that a table can be split without walking it.

    Args:
        txn: the transaction that writes them.
        table_id: the table.
        keys: its written keys.
        olds: the row that was at each key, None for none.
        news: the row that is there now, None for none.
    """
    if None not in olds and None not in news:
        return
    mask = SAMPLE_KEYS - 1
    for i in [i for i, key in enumerate(keys) if not crc32(key) & mask]:
        sample = _TABLE_ID.pack(table_id) + keys[i][:_SAMPLE_BYTES]
        if news[i] is None:
            txn.delete(SAMPLES, sample)
        elif olds[i] is None:
            txn.put(SAMPLES, sample, b"")


def sampled_keys(
    txn: ReadTransaction, table_id: int, start: bytes | None = None, stop: bytes | None = None
) -> list[bytes]:
    """Return the beginnings of the table's sampled keys that cut it between ``start`` and ``stop``, ascending.

    Args:
        txn: a read transaction of the base space.
        table_id: the table.
        start: key bytes that they are behind; None for all from the beginning.
        stop: key bytes that they are before; None for all to the end.
    """
    prefix = _TABLE_ID.pack(table_id)
    first = prefix + (start or b"")[:_SAMPLE_BYTES]
    behind = after(prefix) if stop is None else prefix + stop[:_SAMPLE_BYTES]
    found = (key[len(prefix) :] for key in txn.scan_keys(SAMPLES, first, behind))
    return [sample for sample in found if start is None or sample > start]


def check_key_positions(table: Table, positions: Sequence[int]) -> None:
    """Refuse to change key columns in place.

    Args:
        table: the table.
        positions: the columns that an update sets.

    Raises:
        InputError: ``KEY_COLUMN_IN_UPDATE`` where one of them belongs to the primary key.
    """
    for position in positions:
        if position in table.key:
            name = table.schema.columns[position].name
            raise InputError(
                "KEY_COLUMN_IN_UPDATE",
                f"Column {name!r} belongs to the primary key of table {table.name!r} and cannot be changed in place:"
                " delete the row and put it under its new key.",
                {"table": table.name, "column": name},
            )
