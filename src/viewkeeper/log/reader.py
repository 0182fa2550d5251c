"""Reading the transaction log of a base space: where it ends, how much waits, whose rows changed how.

All functions work inside one short read transaction. Ranges are half-open in sequence numbers, (after, to], as an
epoch takes them; ``split`` cuts such a range into parts that may divide a large transaction between tasks.
Costs: counts and boundaries take a few look-ups whatever the range; reading walks the keys of the range and fetches
only the pieces of the tables asked for; a transaction of other tables is stepped over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from viewkeeper.errors import ConflictError
from viewkeeper.log.records import DdlRecord, PieceDecoder, batched, decode_ddl, decode_table_ids, row_count
from viewkeeper.store.changes import (
    DDL,
    DDL_TABLE_ID,
    LOG,
    LOG_KEY,
    LOG_ROWS,
    META,
    PURGED_KEY,
    SEQUENCE_KEY,
    TOTALS,
    head_record,
)
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.zset.delta import Delta

ROWS_PER_DELTA = 65_536
_KEYS_PER_FETCH = 1_024
_STRIDES_MAX = 32
_PIECES_COUNTED = 2_048
_PLACES_COUNTED = 64


@dataclass(frozen=True)
class LogRange:
    """A part of the log, by its keys: start_key <= key < stop_key."""

    start_key: bytes
    stop_key: bytes


def head(txn: ReadTransaction) -> int:
    """Return the sequence number of the last transaction, 0 where there is none."""
    return head_record(txn)[0]


def range_of(after: int, to: int) -> LogRange:
    """Return the transactions (after, to] as a range."""
    return LogRange(_start_of(after + 1), _start_of(to + 1))


def pieces(txn: ReadTransaction, after: int, to: int) -> list[bytes]:
    """Return the keys of all pieces in (after, to], in order."""
    whole = range_of(after, to)
    return list(txn.scan_keys(LOG, whole.start_key, whole.stop_key))


# ---- how much ----


def rows_waiting(txn: ReadTransaction, after: int, to: int) -> int:
    """Return how many delta rows, of all tables, the transactions (after, to] hold."""
    return _totals(txn, to)[0] - _totals(txn, after)[0]


def rows_by_table(txn: ReadTransaction, after: int, to: int, table_ids: Sequence[int]) -> dict[int, int]:
    """Return about how many delta rows of each of ``table_ids`` the transactions (after, to] hold.

    Exact up to some thousand pieces; of more, some from everywhere in the range are counted; then no table has none.

    Args:
        txn: a read transaction of the base space.
        after: where the range starts.
        to: where it ends.
        table_ids: the tables.
    """
    everything = range_of(after, to)
    keys = list(islice(txn.scan_keys(LOG, everything.start_key, everything.stop_key), _PIECES_COUNTED + 1))
    if len(keys) <= _PIECES_COUNTED:
        counted = _rows_of_pieces(txn, keys)
        return {table_id: counted[table_id] for table_id in table_ids}
    if to - after <= _PIECES_COUNTED:
        # Large transactions, whose pieces lie table by table.
        keys = list(txn.scan_keys(LOG, everything.start_key, everything.stop_key))
        some = keys[:: -(-len(keys) // _PIECES_COUNTED)]
    else:
        places = (after + 1 + (to - after) * part // _PLACES_COUNTED for part in range(_PLACES_COUNTED))
        runs = (txn.scan_keys(LOG, _start_of(place), everything.stop_key) for place in places)
        some = list(dict.fromkeys(key for run in runs for key in islice(run, _PIECES_COUNTED // _PLACES_COUNTED)))
    counted = _rows_of_pieces(txn, some)
    total, seen = rows_waiting(txn, after, to), max(counted.total(), 1)
    return {table_id: max(total * counted[table_id] // seen, 1) for table_id in table_ids}


def _rows_of_pieces(txn: ReadTransaction, keys: Sequence[bytes]) -> Counter[int]:
    counted: Counter[int] = Counter()
    for key, piece in zip(keys, txn.multi_get(LOG, keys), strict=True):
        table_id = LOG_KEY.unpack(key)[1]
        if piece is not None and table_id != DDL_TABLE_ID:
            counted[table_id] += row_count(piece)
    return counted


def bytes_waiting(txn: ReadTransaction, after: int, to: int) -> int:
    """Return how many bytes of the log the transactions (after, to] take."""
    return _totals(txn, to)[1] - _totals(txn, after)[1]


def position_for_rows(txn: ReadTransaction, after: int, to: int, rows_max: int) -> int:
    """Return the largest sequence number up to which (after, …] holds at most ``rows_max`` rows.

    Args:
        txn: a read transaction of the base space.
        after: where the range starts.
        to: where it ends at the latest.
        rows_max: rows of all tables that it may hold.

    Returns:
        At least ``after + 1`` (an epoch takes whole transactions) where there is any, at most ``to``.
    """
    if to <= after:
        return after
    limit = _totals(txn, after)[0] + rows_max
    if _totals(txn, to)[0] <= limit:
        return to
    return max(_first_beyond(txn, limit, after, to) - 1, after + 1)


def split(
    txn: ReadTransaction, after: int, to: int, parts: int, table_ids: Sequence[int] | None = None
) -> list[LogRange]:
    """Cut (after, to] into ranges that hold about equally many rows.

    Args:
        txn: a read transaction of the base space.
        after: where the range starts.
        to: where it ends.
        parts: how many ranges there are at most.
        table_ids: within one large transaction, count the pieces of these tables only.

    Returns:
        Ranges in order that together are (after, to]; fewer than ``parts`` where there is less to divide.
    """
    whole = range_of(after, to)
    first_row = _totals(txn, after)[0]
    rows = _totals(txn, to)[0] - first_row
    share = max(rows // parts, 1)
    pieces_by_number: dict[int, list[bytes]] = {}
    boundaries = [whole.start_key]
    for part in range(1, parts):
        row = first_row + rows * part // parts
        number = _first_beyond(txn, row, after, to)
        before, beyond = _totals(txn, number - 1)[0], _totals(txn, number)[0]
        key = _start_of(number)
        if beyond - before > max(share // 4, 1):
            # The boundary falls into a large transaction: its pieces are about equally large.
            if number not in pieces_by_number:
                pieces_by_number[number] = _pieces_of_transaction(txn, number, table_ids)
            keys = pieces_by_number[number]
            place = (row - before) * len(keys) // (beyond - before)
            key = keys[place] if place else key
        if boundaries[-1] < key < whole.stop_key:
            boundaries.append(key)
    boundaries.append(whole.stop_key)
    return [LogRange(a, b) for a, b in pairwise(boundaries) if a < b]


def _pieces_of_transaction(txn: ReadTransaction, number: int, table_ids: Sequence[int] | None) -> list[bytes]:
    keys = txn.scan_keys(LOG, _start_of(number), _start_of(number + 1))
    wanted = None if table_ids is None else frozenset(table_ids)
    return [key for key in keys if wanted is None or LOG_KEY.unpack(key)[1] in wanted]


def _first_beyond(txn: ReadTransaction, row: int, after: int, to: int) -> int:
    """Return the first transaction of (after, to] up to and with which the log holds more than ``row`` rows."""
    low, high = after + 1, to
    while low < high:
        middle = (low + high) // 2
        if _totals(txn, middle)[0] > row:
            high = middle
        else:
            low = middle + 1
    return low


def _totals(txn: ReadTransaction, number: int) -> tuple[int, int]:
    """Return (rows, bytes) of the log up to and with transaction ``number``, purged ones included."""
    if number <= 0:
        return 0, 0
    found = txn.get(LOG_ROWS, SEQUENCE_KEY.pack(number))
    if found is not None:
        rows, size = TOTALS.unpack(found)
        return rows, size
    last, rows, size = head_record(txn)
    if number >= last:
        return rows, size
    # Purged: what came before the oldest entry left is no longer there to be counted.
    oldest = next(iter(txn.scan(LOG_ROWS)), None)
    if oldest is None:
        return rows, size
    rows, size = TOTALS.unpack(oldest[1])
    return rows, size


def check_not_purged(txn: ReadTransaction, after: int) -> None:
    """Refuse a range whose beginning is no longer in the log, or never was.

    Args:
        txn: a read transaction of the base space.
        after: where the range starts.

    Raises:
        ConflictError: ``LOG_PURGED`` where a transaction behind ``after`` has been removed, ``POSITION_AHEAD_OF_LOG``
            where the log ends before it.
    """
    purged, last = purged_to(txn), head(txn)
    if after > last:
        raise ConflictError(
            "POSITION_AHEAD_OF_LOG",
            f"Position {after} lies ahead of the log, which ends at {last}: it belongs to another or a newer copy of"
            " the store; what is built from it must be filled anew.",
            {"after": after, "head": last},
        )
    if after < purged:
        raise ConflictError(
            "LOG_PURGED",
            f"The log after position {after} is needed, but it has been purged up to {purged}:"
            " what is built from it must be filled anew.",
            {"after": after, "purged_to": purged},
        )


def purged_to(txn: ReadTransaction) -> int:
    """Return up to which sequence number the log may be gone, 0 where all of it is there."""
    found = txn.get(META, PURGED_KEY)
    return int(SEQUENCE_KEY.unpack(found)[0]) if found is not None else 0


# ---- what ----


def read(txn: ReadTransaction, table: Table, log_range: LogRange, rows_max: int = ROWS_PER_DELTA) -> Iterator[Delta]:
    """Yield what happened to ``table`` in ``log_range``, in order, in deltas of about ``rows_max`` rows.

    Args:
        txn: a read transaction of the base space, open while the iterator is used.
        table: the table at its newest schema version.
        log_range: a part of the log.
        rows_max: bound of one delta's rows; a single piece may hold more.

    Yields:
        Deltas of the table's schema, not consolidated; none where nothing happened.
    """
    decoder = PieceDecoder(table)
    found = (piece for _, piece in _pieces_of(txn, log_range, frozenset([table.id])))
    for run in batched(found, rows_max):
        yield decoder.decode(run)


def read_many(txn: ReadTransaction, tables: Mapping[int, Table], log_range: LogRange) -> dict[int, Delta]:
    """Return what happened to each of ``tables`` in ``log_range``, in one pass.

    Args:
        txn: a read transaction of the base space.
        tables: the tables by id, each at its newest schema version.
        log_range: a part of the log.

    Returns:
        One delta for each table, empty where nothing happened; not consolidated.
    """
    found: dict[int, list[bytes]] = {table_id: [] for table_id in tables}
    for key, piece in _pieces_of(txn, log_range, frozenset(tables)):
        found[LOG_KEY.unpack(key)[1]].append(piece)
    return {table_id: PieceDecoder(tables[table_id]).decode(found[table_id]) for table_id in tables}


def ddl_between(txn: ReadTransaction, after: int, to: int, table_ids: Sequence[int]) -> int | None:
    """Return the first transaction of (after, to] that is DDL of one of ``table_ids``; None where none is."""
    wanted = set(table_ids)
    for key, ids in txn.scan(DDL, SEQUENCE_KEY.pack(after + 1), SEQUENCE_KEY.pack(to + 1)):
        if not wanted.isdisjoint(decode_table_ids(ids)):
            return int(SEQUENCE_KEY.unpack(key)[0])
    return None


def read_ddl(txn: ReadTransaction, sequence_number: int) -> DdlRecord | None:
    """Return the DDL statement at ``sequence_number``, None where that is none."""
    piece = txn.get(LOG, LOG_KEY.pack(sequence_number, DDL_TABLE_ID, 0))
    return None if piece is None else decode_ddl(sequence_number, piece)


def _start_of(number: int) -> bytes:
    return LOG_KEY.pack(number, 0, 0)


def read_pieces(txn: ReadTransaction, table_id: int, log_range: LogRange) -> Iterator[tuple[bytes, bytes]]:
    """Yield (log key, undecoded piece) of one table, in order; ``records.PieceDecoder`` reads them."""
    return _pieces_of(txn, log_range, frozenset([table_id]))


def _pieces_of(txn: ReadTransaction, log_range: LogRange, table_ids: frozenset[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, piece) of the tables' pieces in the range, in order."""
    keys = _keys_of(txn, log_range, table_ids)
    while some := list(islice(keys, _KEYS_PER_FETCH)):
        for key, piece in zip(some, txn.multi_get(LOG, some), strict=True):
            if piece is not None:
                yield key, piece


def _keys_of(txn: ReadTransaction, log_range: LogRange, table_ids: frozenset[int]) -> Iterator[bytes]:
    """Yield the keys of the tables' pieces; after some foreign keys in a row, seek to where the next may be."""
    if not table_ids:
        return
    ordered = sorted(table_ids)
    start: bytes | None = log_range.start_key
    while start is not None:
        foreign, restart = 0, None
        for key in txn.scan_keys(LOG, start, log_range.stop_key):
            number, table_id, _ = LOG_KEY.unpack(key)
            if table_id in table_ids:
                foreign = 0
                yield key
                continue
            foreign += 1
            if foreign >= _STRIDES_MAX:
                following = next((i for i in ordered if i > table_id), None)
                target = LOG_KEY.pack(number, following, 0) if following is not None else _start_of(number + 1)
                foreign = 0
                restart = target
                break
        start = restart
