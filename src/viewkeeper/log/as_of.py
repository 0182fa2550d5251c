"""Reading a base table as it was at a position of the log, while writers go on.

    1. read the log behind the position, in short transactions, and note for each key that changed there the row that
       it had at the position: the first old row that the log shows of it, or none;
    2. in the transaction in which the log is read to its end, read the next chunk of the table, put the noted rows in
       place of what stands there now, and yield the chunk;
    3. go on behind the chunk's last key; what was noted up to there is forgotten.

Each transaction sees table and log at one moment, so a chunk is exactly the state at the position, and all chunks and
all tasks with the same position see the same state. Memory holds one chunk and the keys ahead that changed since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import nullcontext

import pyarrow as pa

from viewkeeper.errors import ConflictError
from viewkeeper.log.reader import LogRange, check_not_purged, ddl_between, head, range_of, read_pieces
from viewkeeper.log.records import PieceDecoder, row_count
from viewkeeper.log.retention import holding
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.model import Table
from viewkeeper.store.scans import ROWS_PER_BATCH, KeyRange, next_pairs
from viewkeeper.store.tables import format_of

LOG_ROWS_PER_READ = 32_768


def scan_as_of(
    space: Space,
    table: Table,
    position: int,
    key_range: KeyRange | None = None,
    batch_rows: int = ROWS_PER_BATCH,
    register: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a key range of ``table`` had at ``position``, in the order of the key bytes.

    Args:
        space: the base space.
        table: the table at its newest schema version.
        position: a sequence number not behind the log's head.
        key_range: which part; None for all.
        batch_rows: rows that one transaction reads at most.
        register: hold the log while the scan runs; False where the caller holds it for all its tasks.

    Raises:
        ConflictError: ``LOG_PURGED`` where the log behind ``position`` is no longer complete; ``TABLE_CHANGED`` where
            rows were written since the table's columns changed: what they replaced may be gone from the log; or
            the table was dropped before all of it was read.
    """
    with holding(space, "scan", position) if register else nullcontext():
        yield from _Scan(space, table, position, key_range or KeyRange(), batch_rows).batches()


class _Scan:
    """One running scan. ``_noted`` maps keys at or behind ``_start`` that changed since to their rows at the position.

    ``_order`` holds the same keys, ascending, as of the last chunk. The log before ``_log_start`` is noted.
    """

    def __init__(self, space: Space, table: Table, position: int, key_range: KeyRange, batch_rows: int) -> None:
        self._space = space
        self._format = format_of(table)
        self._table_id = table.id
        self._decoder = PieceDecoder(table)
        self._position = position
        self._log_start = range_of(position, position).start_key
        self._start, self._stop = key_range.start, key_range.stop
        self._batch_rows = batch_rows
        self._noted: dict[bytes, bytes | None] = {}
        self._order: list[bytes] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        more = True
        while more:
            rows: list[bytes] | None = None
            with self._space.read() as txn:
                check_not_purged(txn, self._position)
                self._check_not_dropped(txn)
                if self._catch_up(txn):
                    rows, more = self._chunk(txn)
            if rows:
                yield self._format.decode(rows)

    def _check_not_dropped(self, txn: ReadTransaction) -> None:
        """Raise where rows not yet read went with the table: else the scan would look complete."""
        database = self._format.database
        if ddl_between(txn, self._position, head(txn), (self._table_id,)) and database not in txn.databases():
            name = self._format.table.name
            message = f"Table {name!r} was dropped, or altered without rows, while it was read: run it again."
            raise ConflictError("TABLE_CHANGED", message, {"table": name})

    def _catch_up(self, txn: ReadTransaction) -> bool:
        """Note what some more of the log tells; return whether that was all there is."""
        log_range = LogRange(self._log_start, range_of(0, head(txn)).stop_key)
        found: list[bytes] = []
        rows = 0
        for key, piece in read_pieces(txn, self._table_id, log_range):
            found.append(piece)
            rows += row_count(piece)
            if rows >= LOG_ROWS_PER_READ:
                self._note(found)
                self._log_start = key + b"\x00"
                return False
        if found:
            self._note(found)
        self._log_start = max(self._log_start, log_range.stop_key)
        return True

    def _note(self, pieces: list[bytes]) -> None:
        delta = self._decoder.decode(pieces)
        keys, rows = self._format.encode(delta.rows)
        noted = self._noted
        start, stop = self._start or b"", self._stop
        for key, row, weight in zip(keys, rows, delta.weights.tolist(), strict=True):
            if key >= start and (stop is None or key < stop) and key not in noted:
                # An old row comes before the new one of its key, so a key that is first seen with a new row was absent.
                noted[key] = row if weight < 0 else None

    def _chunk(self, txn: ReadTransaction) -> tuple[list[bytes], bool]:
        """Return the corrected rows of the next chunk, and whether there may be more behind it."""
        pairs, is_more = next_pairs(txn.scan(self._format.database, self._start, self._stop), self._batch_rows)
        behind = pairs[-1][0] + b"\x00" if is_more else self._stop
        if len(self._order) < len(self._noted):
            self._order = sorted(self._noted)
        count = len(self._order) if behind is None else bisect_left(self._order, behind)
        here, self._order = self._order[:count], self._order[count:]
        self._start = behind
        if not here:
            return [row for _, row in pairs], is_more
        merged: dict[bytes, bytes | None] = dict(pairs)
        merged.update({key: self._noted.pop(key) for key in here})
        return [row for _, row in sorted(merged.items()) if row is not None], is_more
