"""Files of rows: Parquet and CSV in; Parquet, CSV and JSON out. Formats are known by the ending of the file's name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from viewkeeper.cli.csv_faults import one_line
from viewkeeper.cli.csv_files import NESTED, csv_batches, open_csv
from viewkeeper.cli.output import json_text
from viewkeeper.errors import InputError, StoreError
from viewkeeper.zset.schema import Schema, SqlType
from viewkeeper.zset.values import from_raw, to_raw_list


@dataclass(frozen=True)
class FileRows:
    """Rows of a file.

    Args:
        rows: how many there are; None where only reading tells.
        batches: the rows.
        refused: makes of a table's error of a row, and of how many rows stood before its batch, one with its place.
    """

    rows: int | None
    batches: Iterator[pa.RecordBatch]
    refused: Callable[[InputError, int], InputError]


@contextmanager
def open_rows(path: str, schema: Schema, batch_rows: int, delimiter: str = ",") -> Iterator[FileRows]:
    """Open a file of rows for a table.

    Args:
        path: the file.
        schema: the table's columns: CSV is read in their types.
        batch_rows: rows of each batch.
        delimiter: what separates the values of a CSV file.

    Raises:
        InputError: ``FILE_NOT_FOUND``, ``FILE_FORMAT_UNKNOWN``, ``DUPLICATE_COLUMN``, or ``FILE_INVALID`` with the
            place in a CSV file, also while the rows are read.
    """
    kind = format_of_file(path, ("parquet", "csv"))
    if Path(path).is_fifo():
        message = f"{path} is a pipe, which can be read once only: write what comes out to a file, and load that."
        raise InputError("FILE_INVALID", message)
    try:
        if kind == "parquet":
            with pa.parquet.ParquetFile(path) as parquet:
                refused = partial(_refused_row, path)
                yield FileRows(parquet.metadata.num_rows, parquet.iter_batches(batch_rows), refused)
        else:
            source = open_csv(path, schema, delimiter)
            yield FileRows(None, _rebatched(csv_batches(source, schema), batch_rows), source.refused)
    except FileNotFoundError as error:
        raise InputError("FILE_NOT_FOUND", f"There is no file {path}: check the path.") from error
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}. Name a file that this user may read."
        raise InputError("FILE_INVALID", message) from error
    except UnicodeDecodeError as error:
        message = f"{path} is no {error.encoding.upper()} text ({error.reason}): save it as UTF-8."
        raise InputError("FILE_INVALID", message) from error
    except pa.ArrowException as error:
        message = f"{path} cannot be read: {one_line(error)}. Correct the file, or write it again."
        raise InputError("FILE_INVALID", message) from error


def format_of_file(path: str, known: tuple[str, ...]) -> str:
    """Return the format of a file by its ending.

    Args:
        path: the file.
        known: the formats that will do.

    Raises:
        InputError: ``FILE_FORMAT_UNKNOWN``.

    Example:
        >>> format_of_file("rows.CSV", ("parquet", "csv"))
        'csv'
    """
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in known:
        endings = " or ".join(f".{name}" for name in known)
        raise InputError("FILE_FORMAT_UNKNOWN", f"The name {path!r} must end in {endings}: it tells the format.")
    return ending


def _refused_row(path: str, error: InputError, rows_before: int) -> InputError:
    number = rows_before + int(str(error.details["row"])) + 1
    return InputError(error.code, f"{path}, row {number}: {error.message}", error.details)


def _rebatched(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of ``rows``: each becomes a transaction, whatever blocks the reader reads in."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, rows - count)
            waiting.append(part)
            start += part.num_rows
            count += part.num_rows
            if count == rows:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def write_file(path: str, schema: Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write rows to a file, which appears when all are in it; return how many there are.

    Args:
        path: the file; its ending tells the format.
        schema: the columns.
        batches: the rows.

    Raises:
        InputError: ``FILE_FORMAT_UNKNOWN``.
        StoreError: ``FILE_NOT_WRITTEN``.
    """
    kind = format_of_file(path, ("parquet", "csv", "json"))
    draft = f"{path}.{os.getpid()}.part"
    try:
        with open(draft, "wb") as out:
            rows = _WRITERS[kind](out, schema, batches)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(draft)
        message = f"{path} cannot be written: {error.strerror or error}. Name another place, or make room."
        raise StoreError("FILE_NOT_WRITTEN", message) from error
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    return rows


def print_rows(schema: Schema, batches: Iterable[pa.RecordBatch], as_json: bool) -> None:
    """Write rows to standard output, as CSV or as JSON."""
    sys.stdout.flush()
    _WRITERS["json" if as_json else "csv"](sys.stdout.buffer, schema, batches)
    sys.stdout.buffer.flush()


def _write_parquet(out: IO[bytes], schema: Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    arrow = schema.to_arrow()
    with pa.parquet.ParquetWriter(out, arrow) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=arrow))
            rows += batch.num_rows
    return rows


def _write_csv(out: IO[bytes], schema: Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    texts = [c.type.name in NESTED or c.type.name.startswith("INTERVAL") for c in schema.columns]
    fields = [
        pa.field(field.name, pa.string() if is_text else field.type)
        for field, is_text in zip(schema.to_arrow(), texts, strict=True)
    ]
    arrow = pa.schema(fields)
    with pa.csv.CSVWriter(out, arrow) as writer:
        for batch in batches:
            columns = [
                pa.array([None if v is None else json_text(v) for v in _values(array, column.type)], pa.string())
                if is_text
                else array
                for array, column, is_text in zip(batch.columns, schema.columns, texts, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=arrow))
            rows += batch.num_rows
    return rows


def _write_json(out: IO[bytes], schema: Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    for batch in batches:
        columns = [_values(array, column.type) for array, column in zip(batch.columns, schema.columns, strict=True)]
        for values in zip(*columns, strict=True):
            out.write(b",\n" if rows else b"[\n")
            out.write(json_text(dict(zip(schema.names, values, strict=True))).encode())
            rows += 1
    out.write(b"\n]\n" if rows else b"[]\n")
    return rows


def _values(array: pa.Array, sql_type: SqlType) -> list[Any]:
    convert = from_raw(sql_type)
    return [None if value is None else convert(value) for value in to_raw_list(array)]


_WRITERS = {"parquet": _write_parquet, "csv": _write_csv, "json": _write_json}
