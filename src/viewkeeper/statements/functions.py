"""DROP FUNCTION, and the types of functions' results."""

from __future__ import annotations

from viewkeeper.errors import SqlError
from viewkeeper.statements.cursor import Cursor
from viewkeeper.statements.data_types import parse_type
from viewkeeper.statements.lexer import split
from viewkeeper.statements.model import DropFunction, Places
from viewkeeper.zset.schema import SqlType


def parse_drop_function(cursor: Cursor) -> DropFunction:
    """Read DROP FUNCTION."""
    cursor.expect("DROP FUNCTION")
    if_exists = cursor.accept("IF EXISTS")
    name = cursor.name("the name of a function")
    cursor.expect_end()
    return DropFunction(name, if_exists, **cursor.origin)


def parse_type_text(text: str) -> SqlType:
    """Return the type that ``text`` names.

    Raises:
        SqlError: ``SYNTAX_ERROR``, ``INVALID_TYPE``.
        UnsupportedSql: ``UNSUPPORTED_TYPE``.

    Example:
        >>> str(parse_type_text("array<decimal(10, 2)>"))
        'array<decimal(10,2)>'
    """
    parts = split(text)
    if len(parts) == 1:
        cursor = Cursor(text, parts[0], Places(text))
        found = parse_type(cursor)
        if cursor.at_end():
            return found
    raise SqlError("SYNTAX_ERROR", "One type is expected: write one, as 'INT'.")
