"""Where a CSV file is wrong: the line, the column and the value of what Arrow cannot read, and of what a table refuses.

Arrow counts records, of which quoted line breaks and empty lines make no more; people count lines. So the records are
counted once more, by Python's reader, when something is wrong.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv

from viewkeeper.errors import InputError, shown
from viewkeeper.zset.schema import Schema

_AGAIN = "Correct it and load the file again"
_RECORD = re.compile(r"Row #(\d+): (.*)")
_COLUMN = re.compile(r"In CSV column #(\d+): ")
_LENGTH = re.compile(r"Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file as it is opened.

    Args:
        path: the file.
        delimiter: what separates its values.
        open: opens it, with threads or without.
    """

    path: str
    delimiter: str
    open: Callable[[bool], pa.csv.CSVStreamingReader]

    def fault(self, error: pa.ArrowInvalid, schema: Schema) -> InputError:
        """Return ``FILE_INVALID`` with the place of what Arrow has refused.

        Args:
            error: what Arrow says of it, which is no place where several threads read.
            schema: the columns that the file is read for.
        """
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
        return _no_value(place, line, self._record(1)[1], values, int(column[1]), reason, schema)

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
        """Return the line at which a record begins, None where Python's reader cannot tell, and its values."""
        with open(self.path, encoding="utf-8-sig", errors="backslashreplace", newline="") as text:
            records = csv.reader(text, delimiter=self.delimiter)
            line, left = 1, number
            try:
                for values in records:
                    left -= bool(values)
                    if not left:
                        return line, values
                    line = records.line_num + 1
            except csv.Error:
                pass
        return None, []

    def _place(self, number: int, line: int | None) -> str:
        return f"{self.path}, row {number} (the names are row 1)" if line is None else f"{self.path}, line {line}"


def _no_value(
    place: str, line: int | None, names: list[str], values: list[str], index: int, reason: str, schema: Schema
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


def one_line(error: Exception) -> str:
    """Return the text of an error in one line, without its full stop."""
    return " ".join(str(error).split()).rstrip(".")
