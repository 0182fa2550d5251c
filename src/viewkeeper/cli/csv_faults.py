"""Where a CSV file is wrong: the line, the column and the value of what Arrow cannot read, and of what a table refuses.

Arrow counts records, of which quoted line breaks and empty lines make no more; people count lines. So the records are
counted once more, by Python's reader, when something is wrong.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa
import pyarrow.csv

from viewkeeper.errors import InputError, shown
from viewkeeper.zset.schema import Schema

_AGAIN = "Correct it and load the file again"
_RECORD = re.compile(r"Row #(\d+): (.*)")
_COLUMN = re.compile(r"In CSV column #(\d+): ")
_LENGTH = re.compile(r"Expected (\d+) columns, got (\d+)")
# Of a row that is longer than a block, and of names that are.
_TOO_LONG = ("straddl", "cannot infer number of columns")
# Arrow's own; blocks grow where a row is longer.
_BLOCK_BYTES = 1 << 20
_BLOCK_BYTES_MAX = 1 << 28


@dataclass(frozen=True)
class CsvFile:
    """A CSV file as it is opened.

    Args:
        path: the file.
        delimiter: what separates its values.
        encoding: of its text.
        reader: opens it in blocks of so many bytes, with threads or without.
        names: the values of the first row, which names the columns; none where there is none.
        has_rows: whether a row follows the names.
        block_bytes: the blocks, of which two must hold a row.
    """

    path: str
    delimiter: str
    encoding: str
    reader: Callable[[int, bool], pa.csv.CSVStreamingReader]
    names: tuple[str, ...] = ()
    has_rows: bool = False
    block_bytes: int = _BLOCK_BYTES

    def open(self, threads: bool) -> pa.csv.CSVStreamingReader:
        """Open the file, with threads or without."""
        return self.reader(self.block_bytes, threads)

    def opened_by(self, reader: Callable[[int, bool], pa.csv.CSVStreamingReader]) -> CsvFile:
        """Return the file as another reader opens it."""
        return replace(self, reader=reader)

    def in_larger_blocks(self, error: pa.ArrowInvalid) -> CsvFile | None:
        """Return the file in larger blocks where ``error`` is of a row longer than these, None where it is not."""
        if not _is_too_long(error) or self.block_bytes == _BLOCK_BYTES_MAX:
            return None
        return replace(self, block_bytes=min(16 * self.block_bytes, _BLOCK_BYTES_MAX))

    def begun(self) -> CsvFile:
        """Return the file with what its first two rows say of it."""
        names: tuple[str, ...] = ()
        for number, (_, values) in enumerate(islice(self._records(), 2), 1):
            if number == 2:
                return replace(self, names=names, has_rows=True)
            names = tuple(values)
        return replace(self, names=names)

    def fault(self, error: pa.ArrowInvalid, schema: Schema, rows: int) -> InputError:
        """Return ``FILE_INVALID`` with the place of what Arrow has refused.

        Args:
            error: what Arrow says of it, which is no place where several threads read.
            schema: the columns that the file is read for.
            rows: how many it has given before.
        """
        if _is_too_long(error):
            place = self._place(rows + 2, self._record(rows + 2)[0])
            return InputError(
                "FILE_INVALID",
                f"{place}: no row ends within {_BLOCK_BYTES_MAX >> 20} MiB. Close the quotes of its values, and load "
                "the file again.",
            )
        text = one_line(self._refusal() or error)
        record = _RECORD.search(text)
        if record is None:
            return InputError("FILE_INVALID", f"{self.path} cannot be read: {text}. {_AGAIN}.")
        number, reason = int(record[1]), record[2]
        line, values = self._record(number)
        place = self._place(number, line)
        column, length = _COLUMN.search(text), _LENGTH.search(reason)
        if length is not None:
            message = f"{place} has {length[2]} of {length[1]} values: {shown(self.delimiter.join(values))}"
            hint = f"{_AGAIN}; a value with {self.delimiter!r} in it stands in double quotes."
            return InputError("FILE_INVALID", f"{message}. {hint}", {"line": line})
        if column is None:
            return InputError("FILE_INVALID", f"{place}: {reason}. {_AGAIN}.", {"line": line})
        return _no_value(place, line, self.names, values, int(column[1]), reason, schema)

    def refused(self, error: InputError, rows_before: int) -> InputError:
        """Return the error of a table that refuses a row, with the row's place.

        Args:
            error: its ``details["row"]`` counts within the batch.
            rows_before: how many rows the file has before the batch.
        """
        number = rows_before + int(str(error.details["row"])) + 2
        line, _ = self._record(number)
        message = f"{self._place(number, line)}: {error.message} {_AGAIN}."
        return InputError(error.code, message, {**error.details, "line": line})

    def _refusal(self) -> pa.ArrowInvalid | None:
        """Read once more by one thread, which knows the number of the record."""
        try:
            with self.open(False) as source:
                for _ in source:
                    pass
        except pa.ArrowInvalid as error:
            return error
        return None

    def _record(self, number: int) -> tuple[int | None, list[str]]:
        """Return the line at which a record begins and its values; None where it is not there, or cannot be told."""
        return next(islice(self._records(), number - 1, None), (None, []))

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line at which each record begins, and its values; no values of one that has too many."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        line = 1
        with open(self.path, encoding=encoding, errors="backslashreplace", newline="") as text, _long_values():
            records = csv.reader(text, delimiter=self.delimiter)
            try:
                for values in records:
                    if values:
                        yield line, values
                    line = records.line_num + 1
            except csv.Error:
                # Its values are too much, where it begins is known.
                yield line, []

    def _place(self, number: int, line: int | None) -> str:
        return f"{self.path}, row {number} (the names are row 1)" if line is None else f"{self.path}, line {line}"


@contextmanager
def _long_values() -> Iterator[None]:
    """Let Python's reader take values as long as Arrow does."""
    before = csv.field_size_limit(_BLOCK_BYTES_MAX)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _no_value(
    place: str, line: int | None, names: Sequence[str], values: list[str], index: int, reason: str, schema: Schema
) -> InputError:
    name = names[index] if index < len(names) else f"number {index + 1}"
    value = values[index] if index < len(values) else None
    column = next((c for c in schema.columns if c.name.lower() == name.lower()), None)
    # Arrow's words where they tell more than that it is so.
    reason = re.sub(r"^CSV conversion error to [^:]*: ", "", reason)
    why = "" if reason.startswith(("invalid value", "The string")) else f" ({reason})"
    what = "what stands there" if value is None else shown(value)
    kind = "text" if column is None else str(column.type).upper()
    message = f"{place}, column {name!r}: {what} cannot be read as {kind}{why}. {_AGAIN}."
    return InputError("FILE_INVALID", message, {"line": line, "column": name, "value": value})


def _is_too_long(error: pa.ArrowInvalid) -> bool:
    return any(words in str(error) for words in _TOO_LONG)


def one_line(error: Exception) -> str:
    """Return the text of an error in one line, without its full stop."""
    return " ".join(str(error).split()).rstrip(".")
