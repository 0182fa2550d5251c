"""CSV files as they are read: their encoding, the names in their first line, and rows longer than a block."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.csv

from viewkeeper.cli.csv_faults import CsvFile
from viewkeeper.errors import InputError
from viewkeeper.store.values import unknown_column
from viewkeeper.zset.schema import Schema, SqlType, to_arrow_type

NESTED = ("ARRAY", "MAP", "STRUCT")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_csv(path: str, schema: Schema, delimiter: str) -> CsvFile:
    """Return a CSV file whose values are read in the types of a table's columns.

    Args:
        path: the file.
        schema: the table's columns.
        delimiter: what separates its values.

    Raises:
        InputError: ``FILE_INVALID``, ``DUPLICATE_COLUMN``; ``FILE_FORMAT_UNKNOWN`` for columns that CSV cannot hold.
    """
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    encoding = _encoding(path)
    file = CsvFile(path, delimiter, encoding, partial(_open, path, parse, None, encoding)).begun()
    _check_names(path, file.names, schema)
    by_name = {column.name.lower(): column for column in schema.columns}
    if not file.has_rows:
        # No row will make the table refuse them. A quote that is not closed makes of a whole file a name.
        for name in file.names:
            if name.lower() not in by_name:
                raise unknown_column(name, schema.names, "the table")
        return file
    known = {name: by_name[name.lower()] for name in file.names if name.lower() in by_name}
    zoned: frozenset[str] = frozenset()
    if any(column.type.name == "TIMESTAMP" for column in known.values()):
        file, zoned = _zoned(file, schema)
    # A column that the table lacks is refused by the table, which knows what it has.
    types = {name: pa.string() for name in file.names}
    types |= {name: _type(path, column.name, column.type, name in zoned) for name, column in known.items()}
    convert = pa.csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return file.opened_by(partial(_open, path, parse, convert, encoding))


def csv_batches(file: CsvFile, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file.

    Args:
        file: as ``open_csv`` gives it.
        schema: the table's columns.

    Raises:
        InputError: ``FILE_INVALID`` with the place of what cannot be read.
    """
    if not file.has_rows:
        return
    rows = 0
    while True:
        known = rows
        try:
            with file.open(True) as source:
                for batch in source:
                    # What smaller blocks have given already.
                    new = batch.slice(min(known, batch.num_rows))
                    known -= batch.num_rows - new.num_rows
                    rows += new.num_rows
                    yield new
            return
        except pa.ArrowInvalid as error:
            larger = file.in_larger_blocks(error)
            if larger is None:
                raise file.fault(error, schema, rows) from error
            file = larger


def _encoding(path: str) -> str:
    with open(path, "rb") as raw:
        return "utf-16" if raw.read(2) in _UTF_16 else "utf-8"


def _check_names(path: str, names: Sequence[str], schema: Schema) -> None:
    """Refuse a first line that does not name columns, each once."""
    first = f"The first line of {path}"
    if not names:
        raise InputError("FILE_INVALID", f"{first} is missing: let it name the columns.")
    if "\0" in "".join(names):
        raise InputError("FILE_INVALID", f"{first} has zero bytes, as UTF-16 has: save the file as UTF-8 text.")
    lowered = [name.lower() for name in names]
    places_of: dict[str, int] = {}
    for number, name in enumerate(lowered):
        if not name:
            message = f"{first} has no name for column {number + 1}: give it one, or take the column out."
            raise InputError("FILE_INVALID", message, {"line": 1})
        first_place = places_of.setdefault(name, number)
        if first_place < number:
            places = f"as columns {first_place + 1} and {number + 1}"
            message = f"{first} names {names[number]!r} twice, {places}: rename one of them, or take it out."
            raise InputError("DUPLICATE_COLUMN", message, {"line": 1, "column": names[number]})
    if len(names) == 1 and lowered[0] not in {column.name.lower() for column in schema.columns}:
        message = f"{first} names one column, {names[0]!r}, which the table lacks: if another delimiter stands there, "
        raise InputError("FILE_INVALID", message + "name it with --delimiter.")


def _zoned(file: CsvFile, schema: Schema) -> tuple[CsvFile, frozenset[str]]:
    """Return the columns whose first times carry a zone, and the file in blocks that hold its first row."""
    while True:
        try:
            with file.open(True) as source:
                found = (field for field in source.schema if pa.types.is_timestamp(field.type))
                return file, frozenset(field.name for field in found if field.type.tz is not None)
        except pa.ArrowInvalid as error:
            larger = file.in_larger_blocks(error)
            if larger is None:
                raise file.fault(error, schema, 0) from error
            file = larger


def _open(
    path: str,
    parse: pa.csv.ParseOptions,
    convert: pa.csv.ConvertOptions | None,
    encoding: str,
    block_bytes: int,
    threads: bool,
) -> pa.csv.CSVStreamingReader:
    read = pa.csv.ReadOptions(use_threads=threads, block_size=block_bytes, encoding=encoding)
    return pa.csv.open_csv(path, read_options=read, parse_options=parse, convert_options=convert)


def _type(path: str, name: str, sql_type: SqlType, is_zoned: bool) -> pa.DataType:
    if sql_type.name in NESTED:
        message = f"Column {name!r} is {sql_type}, which CSV cannot hold: load {path} as Parquet."
        raise InputError("FILE_FORMAT_UNKNOWN", message)
    if sql_type.name == "TIMESTAMP":
        # Arrow wants to know whether the texts carry a zone; those without are read in the session's zone later.
        return pa.timestamp("us", "UTC" if is_zoned else None)
    return to_arrow_type(sql_type)
