"""The line of the user's SQL that an error is about, with a mark under the place: a note of the exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.statements.model import SqlText
from viewkeeper.statements.parse import find_name

_WIDTH = 100


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


def placed(error: InputError, statement: SqlText) -> InputError:
    """Return an error that names a table, a view or a column with the place where ``statement`` mentions it.

    Args:
        error: perhaps with ``name`` in its details.
        statement: the statement that it comes from.
    """
    name = error.details.get("name")
    at = find_name(statement, name) if isinstance(name, str) and "line" not in error.details else None
    if at is None:
        return error
    details = {**error.details, "line": at.line, "column": at.column, "near": name}
    return type(error)(error.code, f"At {at}: {error.message}", details)
