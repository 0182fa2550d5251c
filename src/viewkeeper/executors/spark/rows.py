"""Rows into Spark and out of it, as Arrow: what the tasks of a query do.

In come ranges of base tables as of a position, or files that the caller wrote. Out go files, one a task, in the order
of the partitions: results of any size pass through the driver batch by batch, and no row is pickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from viewkeeper.clock import new_identifier
from viewkeeper.executors.spark.cargo import OpenSpaces, opened
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.store.model import ColumnRead, Table
from viewkeeper.store.scans import KeyRange

RESULT_SCHEMA = "partition INT, path STRING, rows BIGINT"
_RESULT_ARROW = pa.schema([("partition", pa.int32()), ("path", pa.string()), ("rows", pa.int64())])


@dataclass(frozen=True)
class ReadTable:
    """Reads one range of a table for each number that arrives.

    Args:
        open_spaces: opens the store.
        table: the table.
        ranges: its parts.
        position: the log position as of which it is read; the driver holds it.
        columns: the columns that are seen; None for all.
    """

    open_spaces: OpenSpaces
    table: Table
    ranges: tuple[KeyRange, ...]
    position: int
    columns: tuple[ColumnRead, ...] | None

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        base, _ = opened(self.open_spaces)
        places, schema = self.table.seen(self.columns)
        arrow = schema.to_arrow()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                found = scan_as_of(base, self.table, self.position, self.ranges[number], register=False)
                for rows in found:
                    # A view that knows a column by its narrower type of before reads it so.
                    yield rows.select(list(places)).rename_columns(schema.names).cast(arrow)


@dataclass(frozen=True)
class ReadFiles:
    """Reads one Arrow IPC file for each number that arrives."""

    paths: tuple[str, ...]

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                with pa.OSFile(self.paths[number]) as source:
                    yield from pa.ipc.open_stream(source)


@dataclass(frozen=True)
class WriteFile:
    """Writes what arrives to a file of its own; of two attempts of a task only the one that returns counts."""

    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the partition's number, the file's path and how many rows it holds; nothing where there are none."""
        writer, rows = None, 0
        path = f"{self.folder}/{new_identifier()}.arrow"
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_stream(path, batch.schema)
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is None:
            return
        writer.close()
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        yield pa.RecordBatch.from_pydict({"partition": [partition], "path": [path], "rows": [rows]}, _RESULT_ARROW)
