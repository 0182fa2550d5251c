"""Writing base tables: a list of operations becomes one transaction of the base space and one entry of the log.

    1. the guard looks at what must still hold (catalog version, nothing that was read has changed);
    2. each operation reads the old rows it needs, inside the transaction, and notes per key the first old row and
       the last new one; later operations see what earlier ones did;
    3. at the end, and whenever 128k keys or 64 MB have gathered, the keys whose rows differ are written in order,
       and their old rows (−1) and new rows (+1) are appended to the log.

So a key changed several times counts once, and what comes to nothing leaves no trace. Only where a transaction is so
large that it is written in several rounds may one key stand in the log more than once; its weights then add up to the
same. Whatever raises leaves the space as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice, repeat
from operator import is_, is_not, itemgetter, lt, ne
from typing import NamedTuple, TypeAlias, cast

import pyarrow as pa

from viewkeeper.errors import InputError
from viewkeeper.store.changes import LogWriter, RowImage
from viewkeeper.store.key_value import Space, WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.tables import TableFormat, Values, check_key_positions, format_of, keep_samples

Guard = Callable[[WriteTransaction], None]
Batches: TypeAlias = pa.RecordBatch | Iterable[pa.RecordBatch]

KEYS_PER_ROUND = 131_072
BYTES_PER_ROUND = 64 << 20
_OPERATIONS_PER_RUN = 4_096
# Of a table's rows none is known yet: so many of the widest that are usual are little.
_ROWS_OF_FIRST_PART = 1_024
_ROWS_TO_VECTORISE = 48


class PutRow(NamedTuple):
    """Insert the row, over what stands at its key; ``values`` in column order, as ``values.row_from_dict`` gives."""

    table: Table
    values: Values


class PutBatch(NamedTuple):
    """Insert whole rows, each over what stands at its key; the last one of a key wins."""

    table: Table
    rows: Batches


class InsertBatch(NamedTuple):
    """Insert whole rows whose keys must be new; else ``DUPLICATE_KEY``."""

    table: Table
    rows: Batches


class UpdateRow(NamedTuple):
    """Set some columns, by position, of the row at ``key``; ``ROW_NOT_FOUND`` where there is none."""

    table: Table
    key: Values
    changes: Mapping[int, object]


class DeleteRow(NamedTuple):
    """Delete the row at ``key``; an absent one does nothing."""

    table: Table
    key: Values


class DeleteBatch(NamedTuple):
    """Delete the rows whose keys (the key columns, in key order) are given; absent ones do nothing."""

    table: Table
    keys: Batches


class Truncate(NamedTuple):
    """Delete all rows."""

    table: Table


class CheckAndPut(NamedTuple):
    """Insert the row, over what stands at its key, if that row shows ``expected`` (by position; None: no row there)."""

    table: Table
    values: Values
    expected: Mapping[int, object] | None


Operation = PutRow | PutBatch | InsertBatch | UpdateRow | DeleteRow | DeleteBatch | Truncate | CheckAndPut


class Committed(NamedTuple):
    """What a transaction did.

    Args:
        sequence_number: its place in the log; the log's head if it changed nothing.
        applied: for each CheckAndPut, in order, whether its condition held.
    """

    sequence_number: int
    applied: tuple[bool, ...] = ()


class TableStore:
    """The base tables of a store.

    Args:
        space: the base space.
    """

    def __init__(self, space: Space) -> None:
        self.space = space

    def commit(self, operations: Iterable[Operation], guard: Guard | None = None) -> Committed:
        """Do all ``operations`` in order, in one transaction, or none of them.

        Args:
            operations: what to do; batches given as iterators are read while the write lock is held.
            guard: called first inside the transaction; whatever it raises ends it.

        Returns:
            Where it stands in the log, and which checks held.

        Raises:
            InputError: ``DUPLICATE_KEY`` or ``ROW_NOT_FOUND``, or what is wrong with a value.
        """
        with self.space.write() as txn:
            if guard is not None:
                guard(txn)
            return apply(txn, operations)

    def log_ddl(self, txn: WriteTransaction, payload: bytes, table_ids: Sequence[int]) -> int:
        """Give a DDL statement its own place in the log, so that epochs can stop at it.

        Args:
            txn: the transaction that changes the catalog; nothing else may be logged in it.
            payload: what the catalog needs to read the statement back.
            table_ids: the tables that it concerns.

        Returns:
            Its sequence number.
        """
        return log_ddl(txn, payload, table_ids)


def apply(txn: WriteTransaction, operations: Iterable[Operation]) -> Committed:
    """Do all ``operations`` inside an open transaction of the base space; call it at most once in each.

    Args:
        txn: the transaction.
        operations: what to do, in order.

    Returns:
        As ``TableStore.commit``; it holds when ``txn`` is committed.
    """
    work = _Work(txn)
    run: list[PutRow | DeleteRow] = []
    for operation in operations:
        if isinstance(operation, (PutRow, DeleteRow)):
            run.append(operation)
            if len(run) >= _OPERATIONS_PER_RUN:
                work.rows(run)
                run = []
        else:
            work.rows(run)
            run = []
            work.other(operation)
    work.rows(run)
    return work.finish()


def log_ddl(txn: WriteTransaction, payload: bytes, table_ids: Sequence[int]) -> int:
    """Append a DDL statement to the log; see ``TableStore.log_ddl``."""
    log = LogWriter(txn)
    log.write_ddl(payload, table_ids)
    return log.finish()


class _TableChanges:
    """First old and last new row per key of one table; both mappings hold the same keys in the same order."""

    def __init__(self, format_: TableFormat) -> None:
        self.format = format_
        self.first: dict[bytes, RowImage] = {}
        self.last: dict[bytes, RowImage] = {}
        self.bytes = 0
        self._met_rows = 0
        self._met_bytes = 0

    def meet(self, rows: Collection[RowImage]) -> None:
        """Count the bytes of rows that are held from now on."""
        size = sum(len(row) for row in rows if row is not None)
        self.bytes += size
        self._met_rows += len(rows)
        self._met_bytes += size

    @property
    def rows_per_part(self) -> int:
        """How many keys to take at once, so that their rows are a part of a round."""
        if not self._met_rows:
            return min(_ROWS_OF_FIRST_PART, KEYS_PER_ROUND // 2)
        fitting = BYTES_PER_ROUND // 4 * self._met_rows // max(self._met_bytes, 1)
        return min(max(fitting, 1), KEYS_PER_ROUND // 2)

    @property
    def is_large(self) -> bool:
        """Whether enough has gathered to be written."""
        return len(self.first) >= KEYS_PER_ROUND or self.bytes >= BYTES_PER_ROUND


class _Work:
    """One transaction in the making."""

    def __init__(self, txn: WriteTransaction) -> None:
        self._txn = txn
        self._log = LogWriter(txn)
        self._changes: dict[int, _TableChanges] = {}
        self._applied: list[bool] = []

    # ---- operations ----

    def rows(self, run: Sequence[PutRow | DeleteRow]) -> None:
        """Do single-row operations; old rows are read together, in the order of their keys."""
        if not run:
            return
        if len(run) == 1:
            changes = self._table(run[0].table)
            for key, row in _encoded(changes.format, run):
                self._old(changes, key)
                self._set(changes, key, row)
            return
        by_table: dict[int, list[PutRow | DeleteRow]] = {}
        for operation in run:
            by_table.setdefault(operation.table.id, []).append(operation)
        for some in by_table.values():
            changes = self._table(some[0].table)
            news = dict(_encoded(changes.format, some))
            self._load(changes, news)
            changes.last.update(news)
            changes.meet(news.values())
            self._flush_if_large(changes)

    def other(self, operation: Operation) -> None:
        """Do an operation that is no part of a run of single rows."""
        match operation:
            case PutBatch(table, rows):
                self._put_batches(table, rows, only_new=False)
            case InsertBatch(table, rows):
                self._put_batches(table, rows, only_new=True)
            case UpdateRow(table, key, changes):
                self._update(table, key, changes)
            case DeleteBatch(table, keys):
                self._delete_batches(table, keys)
            case Truncate(table):
                self._truncate(table)
            case CheckAndPut(table, values, expected):
                self._check_and_put(table, values, expected)

    def _put_batches(self, table: Table, batches: Batches, only_new: bool) -> None:
        changes = self._table(table)
        for batch in _parts(changes, batches):
            keys, rows = changes.format.encode(batch)
            known = changes.last
            if only_new:
                _refuse_repeats(changes.format, keys, batch)
                olds = self._load(changes, dict.fromkeys(keys))
                taken = next((i for i, key in enumerate(keys) if known.get(key) is not None), None) if olds else None
                if taken is not None:
                    raise _duplicate_key(changes.format, batch, taken)
            else:
                self._load(changes, dict.fromkeys(keys))
            known.update(zip(keys, rows, strict=True))
            changes.meet(rows)
            self._flush_if_large(changes)

    def _delete_batches(self, table: Table, batches: Batches) -> None:
        changes = self._table(table)
        for batch in _parts(changes, batches):
            keys = dict.fromkeys(changes.format.key_codec.encode(batch.columns))
            self._load(changes, keys)
            changes.last.update(keys)
            self._flush_if_large(changes)

    def _update(self, table: Table, key: Values, new_values: Mapping[int, object]) -> None:
        check_key_positions(table, list(new_values))
        changes = self._table(table)
        format_ = changes.format
        key_bytes = format_.key_codec.encode_values(key)
        current = self._old(changes, key_bytes)
        if current is None:
            raise InputError(
                "ROW_NOT_FOUND",
                f"Table {table.name!r} has no row with {format_.show_key_values(key)} to update: put the row instead.",
                {"table": table.name},
            )
        values = list(format_.decode_row(current))
        for position, value in new_values.items():
            values[position] = value
        self._set(changes, key_bytes, format_.row_codec.encode_values(tuple(values)))

    def _check_and_put(self, table: Table, values: Values, expected: Mapping[int, object] | None) -> None:
        changes = self._table(table)
        format_ = changes.format
        key = format_.key_of(values)
        current = self._old(changes, key)
        if current is None or expected is None:
            holds = current is None and expected is None
        else:
            shown = format_.decode_row(current)
            holds = all(_same(shown[position], value) for position, value in expected.items())
        self._applied.append(holds)
        if holds:
            self._set(changes, key, format_.row_codec.encode_values(values))

    def _truncate(self, table: Table) -> None:
        changes = self._table(table)
        changes.last = dict.fromkeys(changes.last)
        start: bytes | None = None
        while found := list(islice(self._txn.scan(changes.format.database, start), changes.rows_per_part)):
            start = found[-1][0] + b"\x00"
            unknown = [pair for pair in found if pair[0] not in changes.first]
            self._add(changes, [key for key, _ in unknown], [row for _, row in unknown])
            changes.last.update(dict.fromkeys(key for key, _ in found))
            self._flush_if_large(changes)

    # ---- what is known of the keys ----

    def _table(self, table: Table) -> _TableChanges:
        found = self._changes.get(table.id)
        if found is None:
            found = self._changes[table.id] = _TableChanges(format_of(table))
        return found

    def _old(self, changes: _TableChanges, key: bytes) -> RowImage:
        """Return the row at ``key`` as the operations so far left it."""
        if key in changes.last:
            return changes.last[key]
        self._flush_if_large(changes)
        row = self._txn.get(changes.format.database, key)
        changes.first[key] = changes.last[key] = row
        changes.bytes += 0 if row is None else len(row)
        return row

    @staticmethod
    def _set(changes: _TableChanges, key: bytes, row: RowImage) -> None:
        changes.last[key] = row
        changes.bytes += 0 if row is None else len(row)

    def _load(self, changes: _TableChanges, keys: Mapping[bytes, object]) -> bool:
        """Read the old rows of ``keys``; return whether any of them has a row, or had one before this operation."""
        known = changes.first
        had_any = bool(known)
        unknown = [key for key in keys if key not in known] if known else list(keys)
        if not unknown:
            return True
        unknown = _ascending(unknown)
        database = changes.format.database
        if next(iter(self._txn.scan_keys(database, unknown[0])), None) is None:
            # All of them lie behind the table's end.
            self._add(changes, unknown, [None] * len(unknown))
            return had_any
        self._add(changes, unknown, self._txn.multi_get(database, unknown))
        return True

    @staticmethod
    def _add(changes: _TableChanges, keys: Sequence[bytes], rows: Sequence[RowImage]) -> None:
        """Note the rows of keys that were not known."""
        changes.first.update(zip(keys, rows, strict=True))
        changes.last.update(zip(keys, rows, strict=True))
        changes.meet(rows)

    # ---- writing ----

    def _flush_if_large(self, changes: _TableChanges) -> None:
        if changes.is_large:
            self._flush(changes)

    def _flush(self, changes: _TableChanges) -> None:
        """Write what differs to the table and to the log, and forget the keys."""
        keys, olds, news = list(changes.first), list(changes.first.values()), list(changes.last.values())
        changes.first, changes.last, changes.bytes = {}, {}, 0
        differs = list(map(ne, olds, news))
        if not all(differs):
            keys = list(compress(keys, differs))
            olds, news = list(compress(olds, differs)), list(compress(news, differs))
        if not keys:
            return
        if not _is_ascending(keys):
            order = itemgetter(*sorted(range(len(keys)), key=keys.__getitem__))
            keys, olds, news = list(order(keys)), list(order(olds)), list(order(news))
        self._write(changes.format.database, keys, news)
        keep_samples(self._txn, changes.format.table.id, keys, olds, news)
        self._log.write(changes.format, olds, news)

    def _write(self, database: str, keys: Sequence[bytes], news: Sequence[RowImage]) -> None:
        txn = self._txn
        if len(keys) == 1:
            if news[0] is None:
                txn.delete(database, keys[0])
            else:
                txn.put(database, keys[0], news[0])
            return
        pairs: Iterable[tuple[bytes, RowImage]] = zip(keys, news, strict=True)
        gone = list(compress(keys, map(is_, news, repeat(None))))
        if gone:
            pairs = compress(pairs, map(is_not, news, repeat(None)))
        if len(gone) < len(keys):
            behind = next(iter(txn.scan_keys(database, keys[0])), None) is None
            txn.multi_put(database, cast("Iterable[tuple[bytes, bytes]]", pairs), append=behind)
        if gone:
            txn.multi_delete(database, gone)

    def finish(self) -> Committed:
        """Write what is left and the log's head."""
        for table_id in sorted(self._changes):
            if self._changes[table_id].first:
                self._flush(self._changes[table_id])
        return Committed(self._log.finish(), tuple(self._applied))


# ---- small helpers ----


def _encoded(format_: TableFormat, run: Sequence[PutRow | DeleteRow]) -> Iterator[tuple[bytes, RowImage]]:
    """Return the key and the row of each operation on one table, whole columns at once where that pays."""
    if len(run) >= _ROWS_TO_VECTORISE:
        if all(map(_is_put, run)):
            batch = format_.batch_of([operation.values for operation in run if isinstance(operation, PutRow)])
            if batch is not None:
                return zip(*format_.encode(batch), strict=True)
        elif not any(map(_is_put, run)):
            keys = format_.keys_of([operation.key for operation in run if isinstance(operation, DeleteRow)])
            if keys is not None:
                return zip(keys, repeat(None))
    return _encoded_each(format_, run)


def _is_put(operation: PutRow | DeleteRow) -> bool:
    return type(operation) is PutRow


def _encoded_each(format_: TableFormat, run: Sequence[PutRow | DeleteRow]) -> Iterator[tuple[bytes, RowImage]]:
    for operation in run:
        if isinstance(operation, PutRow):
            yield format_.key_of(operation.values), format_.row_codec.encode_values(operation.values)
        else:
            yield format_.key_codec.encode_values(operation.key), None


def _parts(changes: _TableChanges, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the batches in parts that one round can hold, by the width of the rows that those before have met."""
    for batch in [batches] if isinstance(batches, pa.RecordBatch) else batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, changes.rows_per_part)
            start += part.num_rows
            yield part


def _is_ascending(keys: Sequence[bytes]) -> bool:
    return all(map(lt, keys, islice(keys, 1, None)))


def _ascending(keys: list[bytes]) -> list[bytes]:
    return keys if _is_ascending(keys) else sorted(keys)


def _same(shown: object, expected: object) -> bool:
    # As SQL groups values: NaN equals NaN, NULL equals NULL.
    return shown == expected or (shown != shown and expected != expected)  # noqa: PLR0124 - that is how NaN shows


def _refuse_repeats(format_: TableFormat, keys: Sequence[bytes], batch: pa.RecordBatch) -> None:
    if len(set(keys)) == len(keys):
        return
    seen: set[bytes] = set()
    for place, key in enumerate(keys):
        if key in seen:
            raise _duplicate_key(format_, batch, place)
        seen.add(key)


def _duplicate_key(format_: TableFormat, batch: pa.RecordBatch, place: int) -> InputError:
    values = tuple(column[place].as_py() for column in batch.columns)
    return InputError(
        "DUPLICATE_KEY",
        f"Table {format_.table.name!r} already has a row with {format_.show_key(values)}: nothing was written;"
        " put replaces rows.",
        {"table": format_.table.name, "key": [values[i] for i in format_.table.key]},
    )
