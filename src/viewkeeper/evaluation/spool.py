"""Batches that are written once and read several times: in memory while they are few, else in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from viewkeeper.closing import Closing
from viewkeeper.zset.schema import Schema

MEMORY_BYTES_MAX = 64 << 20
ROWS_PER_FILE = 1_000_000


class Spool(Closing):
    """Rows of one schema; use as a context manager, its file goes at the end.

    Args:
        schema: the columns.
        memory_bytes_max: how much stays in memory before a file is begun.
    """

    def __init__(self, schema: Schema, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self.schema = schema
        self.rows = 0
        self._arrow = schema.to_arrow()
        self._limit = memory_bytes_max
        self._bytes = 0
        self._held: list[pa.RecordBatch] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; their columns are taken by position."""
        if not batch.num_rows:
            return
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=self._arrow)
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._writer is None and self._bytes <= self._limit:
            self._held.append(batch)
            return
        if self._writer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="viewkeeper-spool-")
            self._writer = pa.ipc.new_stream(str(self._path), self._arrow)
            for held in self._held:
                self._writer.write_batch(held)
            self._held = []
        self._writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; nothing may be written any more."""
        if self._writer is None:
            yield from self._held
            return
        self._writer.close()
        with pa.OSFile(str(self._path)) as source:
            yield from pa.ipc.open_stream(source)

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "rows.arrow"

    def close(self) -> None:
        """Forget the rows."""
        self._held = []
        if self._writer is not None:
            self._writer.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class SpooledFiles(Closing):
    """Files of rows for the tasks of a query; use as a context manager, they go at the end."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def write(self, batches: Iterable[pa.RecordBatch], schema: Schema) -> tuple[str, ...]:
        """Write ``batches`` and return the files, each of about a million rows; one empty file where there are none."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="viewkeeper-query-")
        arrow = schema.to_arrow()
        paths: list[str] = []
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        rows = 0
        for batch in batches:
            if writer is None or rows >= ROWS_PER_FILE:
                if writer is not None:
                    writer.close()
                paths.append(self._next_path())
                writer, rows = pa.ipc.new_stream(paths[-1], arrow), 0
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=arrow))
            rows += batch.num_rows
        if writer is None:
            paths.append(self._next_path())
            writer = pa.ipc.new_stream(paths[-1], arrow)
        writer.close()
        return tuple(paths)

    def _next_path(self) -> str:
        self._count += 1
        assert self._folder is not None
        return str(Path(self._folder.name) / f"{self._count}.arrow")

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
