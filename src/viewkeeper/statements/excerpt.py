"""The line of the user's SQL that an error is about, with a mark under the place: a note of the exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.statements.model import Delete, Insert, Merge, Place, SqlText, Statement, Update
from viewkeeper.statements.parse import find_name

_WIDTH = 100
# What an error is about, by the first of these that its details hold and that the statement mentions.
_MENTIONED = ("name", "column", "clause")
# Of rows that a statement writes: these point at the rows where the statement mentions nothing of the error.
_OF_ROWS = frozenset({
    "INSERT_COLUMN_ARITY_MISMATCH", "INCOMPATIBLE_DATA_FOR_TABLE", "NULL_IN_NOT_NULL_COLUMN", "DUPLICATE_KEY",
    "DATATYPE_MISMATCH", "VALUE_OUT_OF_RANGE",
})  # fmt: skip


def excerpt(sql: str, line: int, column: int) -> str:
    r"""Return the line and, below it, a mark at the column; long lines are cut around it.

    Example:
        >>> print(excerpt("SELECT *\nFORM t", 2, 1))
          FORM t
          ^
    """
    text = sql.split("\n")[line - 1].rstrip("\r").replace("\t", " ")
    first = max(column - 1 - _WIDTH // 2, 0) if len(text) > _WIDTH else 0
    before = "…" if first else ""
    after = "…" if first + _WIDTH < len(text) else ""
    mark = " " * (len(before) + column - 1 - first)
    return f"  {before}{text[first : first + _WIDTH]}{after}\n  {mark}^"


def text_with_excerpt(error: ViewkeeperError) -> str:
    """Return an error as it is printed: its sentence, then its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@contextmanager
def pointing_into(sql: str) -> Iterator[None]:
    """Add to errors with a place in ``sql`` the excerpt of that place."""
    try:
        yield
    except ViewkeeperError as error:
        line, column = error.details.get("line"), error.details.get("column")
        if isinstance(line, int) and isinstance(column, int) and not getattr(error, "__notes__", None):
            error.add_note(excerpt(sql, line, column))
        raise


def placed(error: InputError, statement: Statement) -> InputError:
    """Return an error of a table, a view, a column or rows with the place where ``statement`` mentions or writes them.

    Args:
        error: perhaps with ``name``, ``column`` or ``clause`` in its details.
        statement: the statement that it comes from.
    """
    if "line" in error.details:
        return error
    names = [name for key in _MENTIONED if isinstance(name := error.details.get(key), str)]
    text = SqlText(statement.sql, statement.place)
    found = ((name, find_name(text, name)) for name in names)
    near, at = next(((name, at) for name, at in found if at is not None), (None, None))
    if at is None and error.code in _OF_ROWS:
        near, at = _rows_of(statement)
    if at is None:
        return error
    details = {**error.details, "line": at.line, "column": at.column, "near": near}
    return type(error)(error.code, f"At {at}: {error.message}", details)


def _rows_of(statement: Statement) -> tuple[str | None, Place | None]:
    if isinstance(statement, Insert):
        return statement.query.text[:_WIDTH], statement.query.place
    if isinstance(statement, (Update, Delete, Merge)):
        return statement.sql[:_WIDTH], statement.place
    return None, None
