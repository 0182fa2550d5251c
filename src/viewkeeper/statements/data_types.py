"""Spark's type names → SqlType."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from viewkeeper.errors import SqlError
from viewkeeper.statements.cursor import Cursor
from viewkeeper.statements.lexer import Lexeme
from viewkeeper.zset import schema
from viewkeeper.zset.schema import MAX_PRECISION, SqlType

SIMPLE_TYPES = {
    "BOOLEAN": schema.BOOLEAN,
    "TINYINT": schema.TINYINT,
    "BYTE": schema.TINYINT,
    "SMALLINT": schema.SMALLINT,
    "SHORT": schema.SMALLINT,
    "INT": schema.INT,
    "INTEGER": schema.INT,
    "BIGINT": schema.BIGINT,
    "LONG": schema.BIGINT,
    "FLOAT": schema.FLOAT,
    "REAL": schema.FLOAT,
    "DOUBLE": schema.DOUBLE,
    "STRING": schema.STRING,
    "BINARY": schema.BINARY,
    "DATE": schema.DATE,
    "TIMESTAMP": schema.TIMESTAMP,
    "TIMESTAMP_LTZ": schema.TIMESTAMP,
    "TIMESTAMP_NTZ": schema.TIMESTAMP_NTZ,
}
DECIMAL_NAMES = ("DECIMAL", "DEC", "NUMERIC")
DEFAULT_PRECISION = 10

_UNSUPPORTED = {
    "SERIAL": "numbers are not drawn by the store: use INT, and give each row its number",
    "BIGSERIAL": "numbers are not drawn by the store: use BIGINT, and give each row its number",
    "SMALLSERIAL": "numbers are not drawn by the store: use SMALLINT, and give each row its number",
    "CHAR": "Spark checks its length only, and we do not: use STRING",
    "CHARACTER": "Spark checks its length only, and we do not: use STRING",
    "VARCHAR": "Spark checks its length only, and we do not: use STRING",
    "TEXT": "it is not a type of Spark: use STRING",
    "NVARCHAR": "it is not a type of Spark: use STRING",
    "VARCHAR2": "it is not a type of Spark: use STRING",
    "CLOB": "it is not a type of Spark: use STRING",
    "CITEXT": "it is not a type of Spark: use STRING, and LOWER(…) where case must not count",
    "UUID": "it is not a type of Spark: use STRING",
    "JSON": "it is not a type of Spark: use STRING for JSON text, or STRUCT",
    "JSONB": "it is not a type of Spark: use STRING for JSON text, or STRUCT",
    "ENUM": "it is not a type of Spark: use STRING",
    "BYTEA": "it is not a type of Spark: use BINARY",
    "BLOB": "it is not a type of Spark: use BINARY",
    "VARBINARY": "it is not a type of Spark: use BINARY",
    "BOOL": "it is not a type of Spark: use BOOLEAN",
    "BIT": "it is not a type of Spark: use BOOLEAN",
    "INT2": "it is not a type of Spark: use SMALLINT",
    "INT4": "it is not a type of Spark: use INT",
    "INT8": "it is not a type of Spark: use BIGINT",
    "FLOAT4": "it is not a type of Spark: use FLOAT",
    "FLOAT8": "it is not a type of Spark: use DOUBLE",
    "MONEY": "it is not a type of Spark: use DECIMAL(19, 2)",
    "TIMESTAMPTZ": "it is not a type of Spark: use TIMESTAMP, which is a moment in every zone",
    "DATETIME": "it is not a type of Spark: use TIMESTAMP",
    "NUMBER": "it is not a type of Spark: use DECIMAL(38, 0) or BIGINT",
    "TIME": "use STRING, or BIGINT for the microseconds of the day",
    "INTERVAL": "use BIGINT for the microseconds or the months",
    "VARIANT": "use STRING for JSON text, or STRUCT",
    "OBJECT": "use STRING for JSON text, or STRUCT",
    "GEOMETRY": "use BINARY for its WKB form",
    "GEOGRAPHY": "use BINARY for its WKB form",
    "VOID": "no value can be stored in it: use the type that the column will hold",
}


def parse_type(cursor: Cursor) -> SqlType:
    """Read a type.

    Raises:
        SqlError: INVALID_TYPE, where precision, scale, fields or a MAP's key are wrong.
        UnsupportedSql: UNSUPPORTED_TYPE, for types that tables cannot hold.
    """
    at = cursor.peek()
    if at.kind != "word":
        raise cursor.unexpected("a type")
    name = at.text.upper()
    if name in _NESTED and cursor.at("<", 1):
        return _NESTED[name](cursor)
    if name in DECIMAL_NAMES:
        return _parse_decimal(cursor)
    if name in SIMPLE_TYPES:
        cursor.take()
        return _finish_simple(cursor, at, SIMPLE_TYPES[name])
    raise _unknown(cursor, at)


def _finish_simple(cursor: Cursor, at: Lexeme, sql_type: SqlType) -> SqlType:
    if at.is_word("TIMESTAMP"):
        if cursor.accept("WITHOUT TIME ZONE"):
            return schema.TIMESTAMP_NTZ
        cursor.accept("WITH LOCAL TIME ZONE")
        if cursor.at("WITH TIME ZONE"):
            message = "TIMESTAMP is a moment in every zone already: leave WITH TIME ZONE out."
            raise cursor.refusal("UNSUPPORTED_TYPE", message)
    if cursor.at("PRECISION"):
        raise cursor.refusal("UNSUPPORTED_TYPE", "Spark's name is DOUBLE alone: leave PRECISION out.")
    if cursor.at("["):
        raise cursor.refusal("UNSUPPORTED_TYPE", f"an array is written ARRAY<{at.text.upper()}>.")
    if cursor.at("COLLATE"):
        raise cursor.refusal("UNSUPPORTED_TYPE", "collations are not supported; strings compare as UTF-8 bytes.")
    return sql_type


def _parse_decimal(cursor: Cursor) -> SqlType:
    at = cursor.take()
    precision, scale = DEFAULT_PRECISION, 0
    if cursor.accept("("):
        precision = cursor.integer("a precision")
        if cursor.accept(","):
            scale = cursor.integer("a scale")
        cursor.expect(")")
    if not 1 <= precision <= MAX_PRECISION:
        raise _invalid(cursor, at, f"the precision of a DECIMAL is 1 to {MAX_PRECISION}, not {precision}.")
    if scale > precision:
        raise _invalid(cursor, at, f"the scale {scale} of a DECIMAL cannot exceed its precision {precision}.")
    return schema.decimal(precision, scale)


def _parse_array(cursor: Cursor) -> SqlType:
    cursor.expect("ARRAY <")
    element = parse_type(cursor)
    cursor.expect(">")
    return schema.array(element)


def _parse_map(cursor: Cursor) -> SqlType:
    cursor.expect("MAP <")
    at = cursor.peek()
    key = parse_type(cursor)
    if key.contains_map:
        raise _invalid(cursor, at, "the key of a MAP cannot hold a MAP.")
    cursor.expect(",")
    value = parse_type(cursor)
    cursor.expect(">")
    return schema.map_of(key, value)


def _parse_struct(cursor: Cursor) -> SqlType:
    cursor.expect("STRUCT <")
    names: list[str] = []
    types: list[SqlType] = []
    while True:
        at = cursor.peek()
        name = cursor.name("a field")
        if name.lower() in (known.lower() for known in names):
            raise _invalid(cursor, at, f"the STRUCT has two fields named '{name}'.")
        cursor.accept(":")
        names.append(name)
        types.append(parse_type(cursor))
        if cursor.at("NOT NULL") or cursor.at("COMMENT"):
            message = "fields of a STRUCT take neither NOT NULL nor COMMENT; declare them on the column."
            raise cursor.refusal("UNSUPPORTED_TYPE", message)
        if not cursor.accept(","):
            break
    if not cursor.accept(">"):
        raise cursor.unexpected("',' or '>'")
    return SqlType("STRUCT", children=tuple(types), field_names=tuple(names))


_NESTED: dict[str, Callable[[Cursor], SqlType]] = {"ARRAY": _parse_array, "MAP": _parse_map, "STRUCT": _parse_struct}


def _unknown(cursor: Cursor, at: Lexeme) -> SqlError:
    name = at.text.upper()
    if name in _NESTED:
        hint = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING, INT>", "STRUCT": "STRUCT<a: INT, b: STRING>"}[name]
        return _invalid(cursor, at, f"{name} needs its types in angle brackets: {hint}.")
    if name in _UNSUPPORTED:
        return cursor.refusal("UNSUPPORTED_TYPE", f"columns cannot be {name}; {_UNSUPPORTED[name]}.", at)
    known = (*SIMPLE_TYPES, *DECIMAL_NAMES, *_NESTED)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}."
    return cursor.refusal("UNSUPPORTED_TYPE", f"there is no type '{at.text}'; {hint}", at)


def _invalid(cursor: Cursor, at: Lexeme, message: str) -> SqlError:
    return cursor.error("INVALID_TYPE", message, at)
