"""The log's pieces, read back: bytes to deltas and DDL statements. ``store.changes`` has the grammar and the writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa

from viewkeeper.store.changes import PIECE_HEADER
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of, table_changed
from viewkeeper.zset.delta import WEIGHT_NAME, Delta
from viewkeeper.zset.schema import to_arrow_type
from viewkeeper.zset.versions import Layout, VersionedRows

_MSGPACK = ord("M")
_SMALL = -1
_decode_images = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes]]).decode
_decode_ddl = msgspec.msgpack.Decoder(tuple[list[int], bytes]).decode
decode_table_ids = msgspec.msgpack.Decoder(list[int]).decode


@dataclass(frozen=True)
class DdlRecord:
    """A DDL statement in the log.

    Args:
        sequence_number: its place.
        table_ids: the tables that it concerns.
        payload: what the catalog wrote.
    """

    sequence_number: int
    table_ids: tuple[int, ...]
    payload: bytes


def decode_ddl(sequence_number: int, piece: bytes) -> DdlRecord:
    """Return the DDL statement that ``piece`` holds."""
    table_ids, payload = _decode_ddl(memoryview(piece)[PIECE_HEADER.size :])
    return DdlRecord(sequence_number, tuple(table_ids), payload)


def row_count(piece: bytes) -> int:
    """Return how many delta rows ``piece`` holds, without decoding it."""
    return int(PIECE_HEADER.unpack_from(piece)[2])


class PieceDecoder:
    """Turns pieces of one table's log into deltas of the table as it is now.

    Rows written before the table's columns changed show what such rows show in the table.

    Args:
        table: the table, at the newest schema version that the pieces may have.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._format = format_of(table)
        self._schema_with_weight = self._format.arrow_schema.append(pa.field(WEIGHT_NAME, pa.int64()))

    def decode(self, pieces: Iterable[bytes]) -> Delta:
        """Return all rows of ``pieces``, in order, not consolidated.

        Raises:
            ConflictError: ``TABLE_CHANGED`` where one has been written since the table's columns changed.
        """
        deltas: list[Delta] = []
        for form, run in groupby(pieces, self._form):
            if form == _SMALL:
                deltas.append(self._small(list(run)))  # many small pieces are decoded at one go
            elif form == self._table.version:
                deltas += self._newest(run)
            else:
                deltas += map(self._older, run)
        return Delta.concat(deltas, self._format.arrow_schema)

    @staticmethod
    def _form(piece: bytes) -> int:
        """Return the schema version of an Arrow piece, ``_SMALL`` for a msgpack one."""
        return _SMALL if piece[0] == _MSGPACK else int(PIECE_HEADER.unpack_from(piece)[1])

    def _newest(self, pieces: Iterable[bytes]) -> list[Delta]:
        """Return the rows of Arrow pieces that need no more columns; joined by Arrow, as there may be thousands."""
        schema = self._schema_with_weight
        bodies = (pa.py_buffer(piece).slice(PIECE_HEADER.size) for piece in pieces)
        batches = [pa.ipc.read_record_batch(body, schema) for body in bodies]
        joined = pa.Table.from_batches(batches, schema).combine_chunks()
        return [Delta.from_arrow(batch) for batch in joined.to_batches()]

    def _small(self, pieces: list[bytes]) -> Delta:
        rows: list[bytes] = []
        counts: list[int] = []
        for piece in pieces:
            removed, added = _decode_images(memoryview(piece)[8:])
            rows += removed
            rows += added
            counts += (len(removed), len(added))
        weights = np.repeat(np.tile(np.array([-1, 1], np.int64), len(pieces)), counts)
        return Delta(self._format.decode(rows), weights)

    def _older(self, piece: bytes) -> Delta:
        _, version, rows = PIECE_HEADER.unpack_from(piece)
        if version > self._table.version:
            raise table_changed(self._table)
        codec = self._format.row_codec
        assert isinstance(codec, VersionedRows), "a table of one version has no older pieces"
        old = Delta.from_ipc(pa.py_buffer(piece).slice(PIECE_HEADER.size), _arrow_schema(codec.versions[version]))
        return old.with_columns(codec.as_now(old.rows.columns, version, rows), self._format.arrow_schema)


@lru_cache(maxsize=256)
def _arrow_schema(layout: Layout) -> pa.Schema:
    return pa.schema([pa.field(f"c{i}", to_arrow_type(column.type)) for i, column in enumerate(layout)])


def batched(pieces: Iterable[bytes], rows_max: int) -> Iterator[list[bytes]]:
    """Yield runs of pieces of at most ``rows_max`` rows each, or one piece where that alone has more."""
    run: list[bytes] = []
    rows = 0
    for piece in pieces:
        count = row_count(piece)
        if run and rows + count > rows_max:
            yield run
            run, rows = [], 0
        run.append(piece)
        rows += count
    if run:
        yield run
