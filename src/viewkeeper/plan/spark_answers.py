"""What Spark's analyzer says of an expression, in terms of the query: it is asked about columns of other names."""

from __future__ import annotations

import re

from viewkeeper.errors import SqlError
from viewkeeper.zset.schema import Schema, SqlType

_COLUMN = re.compile(r"(?:`input`\.)?`_c(\d+)`|\b_c(\d+)\b")


def in_names_of(schema: Schema, error: SqlError) -> SqlError:
    """Return an error of Spark's analyzer with the columns called as in ``schema``.

    Example:
        >>> from viewkeeper.zset.schema import STRING, Column
        >>> in_names_of(Schema((Column("tags", STRING),)), SqlError("INVALID", 'Cannot take "_c0".')).message
        'Cannot take "tags".'
    """
    names = schema.names

    def name(found: re.Match[str]) -> str:
        number = int(found[1] or found[2])
        return names[number] if number < len(names) else found[0]

    return type(error)(error.code, _COLUMN.sub(name, error.message), error.details)


def field_named_twice(sql_type: SqlType) -> str | None:
    """Return a name that two fields of one STRUCT have, in or inside a type: Spark hands out no such values.

    Example:
        >>> from viewkeeper.zset.schema import INT, array
        >>> field_named_twice(array(SqlType("STRUCT", children=(INT, INT), field_names=("a", "a"))))
        'a'
    """
    if sql_type.name == "STRUCT":
        seen: set[str] = set()
        for field in sql_type.field_names:
            if field in seen:
                return field
            seen.add(field)
    return next(filter(None, map(field_named_twice, sql_type.children)), None)
