"""Reading base tables in key order: rows for users, batches for the engine, even parts for tasks.

Keys sort by their bytes as Spark sorts their values, except where a long value was cut (``zset.keys``): such keys share
at least 128 bytes with all others whose order is not in the bytes. So bounds of up to 128 bytes are exact; longer ones
are widened to their first 128 bytes and the full values, which are stored, decide; and a run of keys that lost their
order is sorted by its full values before it is yielded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa

from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.tables import TableFormat, Values, format_of, sampled_keys
from viewkeeper.zset.keys import MAX_COMPONENT_BYTES, KeyCodec, after
from viewkeeper.zset.schema import SqlType

ROWS_PER_BATCH = 65_536
BYTES_PER_BATCH = 32 << 20
_ROWS_WEIGHED_AT_ONCE = 1_024
_HASHED_REST = b"\xff"
_KEYS_TO_WALK = 65_536
_SAMPLES_PER_PART = 4

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class KeyRange:
    """A part of a table: start <= key bytes < stop; None is open."""

    start: bytes | None = None
    stop: bytes | None = None


_EVERYTHING = KeyRange()


@dataclass(frozen=True)
class Bounds:
    """What a scan is restricted to, each given by the values of the first key columns, in any number.

    Args:
        start: rows whose key is at or behind it.
        stop: rows whose key is before it.
        prefix: rows whose first key columns equal it.
    """

    start: Values | None = None
    stop: Values | None = None
    prefix: Values | None = None


def scan(
    table: Table,
    txn: ReadTransaction,
    bounds: Bounds | None = None,
    reverse: bool = False,
    limit: int | None = None,
) -> Iterator[Values]:
    """Yield rows of ``table`` in the order of the primary key.

    Args:
        table: the table.
        txn: a read transaction of the base space, open while the iterator is used.
        bounds: which rows; None for all.
        reverse: from the last to the first.
        limit: how many rows at most.

    Yields:
        Whole rows as Python values, in column order.
    """
    format_ = format_of(table)
    pairs = ordered_pairs(txn, format_.database, KeyOrder(format_), bounds or Bounds(), reverse)
    for _, row in islice(pairs, limit):
        yield format_.decode_row(row)


def scan_batches(
    table: Table, txn: ReadTransaction, key_range: KeyRange | None = None, batch_rows: int = ROWS_PER_BATCH
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a key range as batches of the table's columns, in the order of the key bytes.

    Args:
        table: the table.
        txn: a read transaction of the base space, open while the iterator is used.
        key_range: which part; None for all.
        batch_rows: rows of one batch at most.
    """
    format_ = format_of(table)
    bounds = key_range or KeyRange()
    pairs = txn.scan(format_.database, bounds.start, bounds.stop)
    while some := next_pairs(pairs, batch_rows)[0]:
        yield format_.decode([row for _, row in some])


def next_pairs(pairs: Iterator[Pair], rows_max: int) -> tuple[list[Pair], bool]:
    """Return the next pairs, as many as make a batch: fewer of wide rows; and whether there may be more behind them.

    Args:
        pairs: from a scan.
        rows_max: how many there are at most.
    """
    some: list[Pair] = []
    size = 0
    while len(some) < rows_max and size < BYTES_PER_BATCH:
        wanted = min(_ROWS_WEIGHED_AT_ONCE, rows_max - len(some))
        part = list(islice(pairs, wanted))
        some += part
        size += sum(len(row) for _, row in part)
        if len(part) < wanted:
            return some, False
    return some, True


def split_table(txn: ReadTransaction, table: Table, parts: int, within: KeyRange = _EVERYTHING) -> list[KeyRange]:
    """Cut a table, or a part of it, into key ranges that hold about equally many rows.

    Large parts are cut at sampled keys, of which one in about a thousand is kept; small ones by walking their keys.

    Args:
        txn: a read transaction of the base space.
        table: the table.
        parts: how many ranges there are at most.
        within: what is cut.

    Returns:
        Ranges in order that together are ``within``.
    """
    marks = sampled_keys(txn, table.id, within.start, within.stop)
    database = format_of(table).database
    if len(marks) < parts * _SAMPLES_PER_PART:
        rows = txn.count(database)
        step = max(rows // _KEYS_TO_WALK, 1)
        marks = list(islice(txn.scan_keys(database, within.start, within.stop), 0, None, step)) if rows else []
    cuts = [each.start for each in cut_at(marks, parts)[1:]]
    return [KeyRange(*ends) for ends in pairwise([within.start, *cuts, within.stop])]


def cut_at(marks: Sequence[bytes], parts: int) -> list[KeyRange]:
    """Return key ranges that together are everything, with about equally many of the marks in each.

    Args:
        marks: ascending keys, of which the first one is no place to cut.
        parts: how many ranges there are at most.

    Example:
        >>> [(r.start, r.stop) for r in cut_at([b"a", b"b", b"c", b"d"], 2)]
        [(None, b'c'), (b'c', None)]
    """
    cuts: list[bytes | None] = [None]
    for part in range(1, parts):
        place = len(marks) * part // parts
        if place and marks[place] != cuts[-1]:
            cuts.append(marks[place])
    cuts.append(None)
    return [KeyRange(start, stop) for start, stop in pairwise(cuts)]


# ---- the order of keys ----


def order_key(types: Sequence[SqlType], values: Sequence[object]) -> tuple[Any, ...]:
    """Return what sorts as Spark sorts the values: NULL first, NaN last, strings by their UTF-8 bytes.

    Example:
        >>> from viewkeeper.zset.schema import DOUBLE
        >>> sorted([(float("nan"),), (1.0,), (None,)], key=lambda row: order_key((DOUBLE,), row))
        [(None,), (1.0,), (nan,)]
    """
    return tuple(_order_of(t, value) for t, value in zip(types, values, strict=False))


def _order_of(sql_type: SqlType, value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if sql_type.name == "STRING":
        return (1, value.encode())
    if sql_type.is_floating:
        return (1, 1, 0.0) if value != value else (1, 0, value)  # noqa: PLR0124 - that is how NaN shows
    if sql_type.name == "ARRAY":
        return (1, tuple(_order_of(sql_type.children[0], item) for item in value))
    if sql_type.name == "STRUCT":
        return (1, tuple(_order_of(t, value[n]) for n, t in zip(sql_type.field_names, sql_type.children, strict=True)))
    return (1, value)


class KeyOrder:
    """What a scan must know of a table's keys: the codec, and the full key values of a stored row."""

    def __init__(self, format_: TableFormat) -> None:
        self.codec: KeyCodec = format_.key_codec
        self._format = format_
        self._positions = format_.table.key

    def of(self, row: bytes) -> tuple[Any, ...]:
        """Return what sorts as the key of the stored ``row`` does."""
        values = self._format.decode_row(row)
        return order_key(self.codec.types, [values[i] for i in self._positions])


def ordered_pairs(
    txn: ReadTransaction, database: str, order: KeyOrder, bounds: Bounds, reverse: bool
) -> Iterator[Pair]:
    """Yield the pairs within ``bounds`` in the order of the full key values."""
    start, stop, tests = _byte_bounds(order.codec, bounds)
    pairs = txn.scan(database, start, stop, reverse)
    for pair in _in_full_order(txn, database, order, pairs, reverse):
        if not tests or _passes(order.of(pair[1]), tests):
            yield pair


_Test = tuple[str, tuple[Any, ...]]


def _byte_bounds(codec: KeyCodec, bounds: Bounds) -> tuple[bytes | None, bytes | None, list[_Test]]:
    """Return the byte range that holds all rows wanted, and the tests that those in it must pass."""
    start: bytes | None = None
    stops: list[bytes] = []
    tests: list[_Test] = []
    if bounds.prefix:
        prefix = codec.encode_prefix(bounds.prefix)
        start, behind = prefix, after(prefix)
        stops += [] if behind is None else [behind]
        if len(prefix) > MAX_COMPONENT_BYTES:
            tests.append(("prefix", order_key(codec.types, bounds.prefix)))
    if bounds.start:
        lower = codec.encode_prefix(bounds.start)
        if len(lower) > MAX_COMPONENT_BYTES:
            tests.append(("start", order_key(codec.types, bounds.start)))
        lower = lower[:MAX_COMPONENT_BYTES]
        start = lower if start is None else max(start, lower)
    if bounds.stop:
        upper: bytes | None = codec.encode_prefix(bounds.stop)
        if upper is not None and len(upper) > MAX_COMPONENT_BYTES:
            tests.append(("stop", order_key(codec.types, bounds.stop)))
            upper = after(upper[:MAX_COMPONENT_BYTES])
        stops += [] if upper is None else [upper]
    return start, min(stops, default=None), tests


def _passes(key: tuple[Any, ...], tests: Sequence[_Test]) -> bool:
    for kind, bound in tests:
        if kind == "prefix":
            passes = key[: len(bound)] == bound
        else:
            passes = key >= bound if kind == "start" else key < bound
        if not passes:
            return False
    return True


def _in_full_order(
    txn: ReadTransaction, database: str, order: KeyOrder, pairs: Iterator[Pair], reverse: bool
) -> Iterator[Pair]:
    """Yield ``pairs``, runs of keys that lost their order sorted by full values."""
    pending: Pair | None = None
    while True:
        pair = pending or next(pairs, None)
        pending = None
        if pair is None:
            return
        run_prefix = None
        if len(pair[0]) > MAX_COMPONENT_BYTES:
            run_prefix = _run_prefix(txn, database, order.codec, pair[0])
        if run_prefix is None:
            yield pair
            continue
        run = [pair]
        for following in pairs:
            if not following[0].startswith(run_prefix):
                pending = following
                break
            run.append(following)
        run.sort(key=lambda item: order.of(item[1]), reverse=reverse)
        yield from run


def _run_prefix(txn: ReadTransaction, database: str, codec: KeyCodec, key: bytes) -> bytes | None:
    """Return the shortest prefix of ``key`` behind which the order of the bytes is not that of the values."""
    for component in range(len(codec.types)):
        found = codec.truncated_run_prefix(key, component)
        if found is not None:
            return found
        end = codec.component_end(key, component)
        if end > MAX_COMPONENT_BYTES and end < len(key):
            # Keys whose rest was hashed away sort behind this one whatever their values.
            hashed = key[:end] + _HASHED_REST
            sibling = next(iter(txn.scan_keys(database, hashed, after(hashed))), None)
            if sibling is not None:
                return key[:end]
    return None
