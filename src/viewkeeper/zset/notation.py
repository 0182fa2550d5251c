"""Deltas as small text tables, for tests, documents and the command line.

    k:bigint not null | name:string | at:timestamp         | __weight
    1                 | EWR         | 2013-01-01 05:15:00Z | +1
    2                 | "a | b"     | NULL                 | -1

Cells are separated by ``|``, blanks around them mean nothing, lines that are empty or start with ``#`` are skipped. The
column ``__weight`` has no type, stands first or last, and may be absent: all rows are then inserted. NULL is ``NULL``;
strings that could be misread stand in JSON's quotes; BINARY is ``X'00ff'``; ARRAY, MAP (a list of pairs) and STRUCT (a
list of its fields) are JSON whose leaves are written as cells are, in quotes where JSON has no such literal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from viewkeeper.errors import InputError
from viewkeeper.zset import schema as types
from viewkeeper.zset.delta import WEIGHT_NAME, Delta
from viewkeeper.zset.schema import Column, Schema, SqlType
from viewkeeper.zset.values import from_raw, from_raw_list, to_raw, to_raw_list

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_PLAIN_TEXT = re.compile(r"\w(?:[\w .,:+/@()-]*[\w.)])?", re.ASCII)
_CELL = re.compile(r'\s*((?:"(?:[^"\\]|\\.)*"|[^|"])*)(?:\||$)')
_HEADER = re.compile(r'("(?:[^"\\]|\\.)*"|[^:]*):(.*)')
_NOT_NULL = " not null"
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\w+|[<>(),:])')
_SIMPLE = {
    str(sql_type): sql_type
    for sql_type in vars(types).values()
    if isinstance(sql_type, SqlType) and not sql_type.name.startswith("INTERVAL")
}
_INTERVALS = {
    "interval day to second": types.INTERVAL_DAY_TIME,
    "interval year to month": types.INTERVAL_YEAR_MONTH,
}


def parse(text: str, schema: Schema | None = None) -> tuple[Schema, Delta]:
    """Read a text table.

    Args:
        text: the table, header first.
        schema: the columns; without it the header gives the types, with it the header may leave them out.

    Raises:
        InputError: NOTATION_INVALID, naming the line.

    Example:
        >>> schema, delta = parse('''
        ...     k:int | name:string | __weight
        ...     1     | EWR         | +1
        ...     1     | JFK         | -1
        ... ''')
        >>> delta.to_arrow().to_pydict()
        {'k': [1, 1], 'name': ['EWR', 'JFK'], '__weight': [1, -1]}
    """
    numbered = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, line) for number, line in numbered if line and not line.startswith("#")]
    if not lines:
        raise InputError("NOTATION_INVALID", "The text table is empty: its first line names the columns.")
    header = _cells(*lines[0])
    weight_at = _weight_position(header)
    names = [cell for i, cell in enumerate(header) if i != weight_at]
    if schema is None:
        schema = Schema(tuple(_column(cell, lines[0][0]) for cell in names))
    if len(names) != len(schema):
        raise _invalid(lines[0][0], f"{len(names)} columns are named, the schema has {len(schema)}")
    readers = [_reader(sql_type) for sql_type in schema.types]
    columns: list[list[Any]] = [[] for _ in names]
    weights: list[int] = []
    for number, line in lines[1:]:
        cells = _cells(number, line)
        if len(cells) != len(header):
            raise _invalid(number, f"{len(cells)} cells stand under {len(header)} columns")
        try:
            weights.append(1 if weight_at is None else int(cells.pop(weight_at)))
            for column, read, cell in zip(columns, readers, cells, strict=True):
                column.append(None if cell == "NULL" else read(cell))
        except (ValueError, TypeError, ArithmeticError, InputError) as error:
            raise _invalid(number, f"a cell does not fit its type ({error})") from error
    arrays = [from_raw_list(column, sql_type) for column, sql_type in zip(columns, schema.types, strict=True)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema.to_arrow())
    return schema, Delta(rows, np.array(weights, np.int64))


def format(delta: Delta, schema: Schema) -> str:  # noqa: A001 - notation.format reads well
    """Write a delta as a text table that ``parse`` reads back to the same rows, order and weights.

    Example:
        >>> print(format(Delta.from_rows(pa.record_batch({"k": [1, None]})), Schema((Column("k", types.BIGINT),))))
        k:bigint | __weight
        1        | +1
        NULL     | +1
    """
    table = [[*map(_header, schema.columns), WEIGHT_NAME]]
    columns = []
    for array, sql_type in zip(delta.rows.columns, schema.types, strict=True):
        write = _writer(sql_type)
        columns.append(["NULL" if value is None else write(value) for value in to_raw_list(array)])
    columns.append([f"{weight:+d}" for weight in delta.weights.tolist()])
    table += [list(row) for row in zip(*columns, strict=True)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(lines)


def _invalid(number: int, problem: str) -> InputError:
    return InputError("NOTATION_INVALID", f"Line {number} of the text table: {problem}.", {"line": number})


def _cells(number: int, line: str) -> list[str]:
    cells, place = [], 0
    while place <= len(line):
        match = _CELL.match(line, place)
        if match is None:
            raise _invalid(number, "a quote is not closed")
        cells.append(match[1].strip())
        place = match.end()
        if not match[0].endswith("|"):
            break
    return cells


def _weight_position(header: list[str]) -> int | None:
    return next((i for i in (0, len(header) - 1) if header[i] == WEIGHT_NAME), None)


# ---- columns and types ----


def _header(column: Column) -> str:
    return f"{_name(column.name)}:{_type_text(column.type)}{'' if column.nullable else _NOT_NULL}"


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _column(cell: str, number: int) -> Column:
    match = _HEADER.fullmatch(cell)
    if match is None:
        raise _invalid(number, f"the column '{cell}' has no type; write name:type")
    text = match[2].strip()
    nullable = not text.endswith(_NOT_NULL)
    text = text if nullable else text.removesuffix(_NOT_NULL)
    try:
        return Column(_unquoted(match[1].strip()), parse_type(text), nullable)
    except ValueError as error:
        raise _invalid(number, str(error)) from error


def _type_text(sql_type: SqlType) -> str:
    if sql_type.name == "STRUCT":
        pairs = zip(sql_type.field_names, sql_type.children, strict=True)
        return f"struct<{','.join(f'{_name(name)}:{_type_text(child)}' for name, child in pairs)}>"
    if sql_type.is_nested:
        return f"{sql_type.name.lower()}<{','.join(map(_type_text, sql_type.children))}>"
    return str(sql_type)


def parse_type(text: str) -> SqlType:
    """Return the type that ``text`` names as Spark's ``simpleString`` does.

    Raises:
        ValueError: for text that names no type.

    Example:
        >>> str(parse_type("map<string,array<decimal(10,2)>>"))
        'map<string,array<decimal(10,2)>>'
    """
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"'{text}' is not a type")
        tokens.append(match[1])
        place = match.end()
    try:
        sql_type = _parse_tokens(tokens)
    except IndexError:
        raise ValueError(f"the type '{text}' is not complete") from None
    if tokens:
        raise ValueError(f"'{text}' goes on behind a type")
    return sql_type


def _parse_tokens(tokens: list[str]) -> SqlType:
    word = tokens.pop(0).lower()
    if word in ("array", "map", "struct"):
        _expect(tokens, "<")
        names, children = [], []
        while tokens[0] != ">":
            if word == "struct":
                names.append(_unquoted(tokens.pop(0)))
                _expect(tokens, ":")
            children.append(_parse_tokens(tokens))
            if tokens[0] == ",":
                tokens.pop(0)
        _expect(tokens, ">")
        return SqlType(word.upper(), children=tuple(children), field_names=tuple(names))
    if word == "decimal":
        _expect(tokens, "(")
        precision = int(tokens.pop(0))
        _expect(tokens, ",")
        scale = int(tokens.pop(0))
        _expect(tokens, ")")
        return types.decimal(precision, scale)
    if word == "interval":
        interval = " ".join([word, *(tokens.pop(0).lower() for _ in range(3))])
        if interval in _INTERVALS:
            return _INTERVALS[interval]
    if word not in _SIMPLE:
        raise ValueError(f"'{word}' is not a type")
    return _SIMPLE[word]


def _expect(tokens: list[str], token: str) -> None:
    found = tokens.pop(0)
    if found != token:
        raise ValueError(f"'{token}' is expected in a type, not '{found}'")


# ---- cells ----


def _writer(sql_type: SqlType) -> Callable[[Any], str]:
    """Return the function from a raw value (not None) to its cell."""
    if sql_type.name == "STRING":
        return _write_text
    if sql_type.is_nested:
        leaves = _json_writer(sql_type)
        return lambda value: json.dumps(leaves(value), ensure_ascii=False)
    if sql_type.name == "BINARY":
        return lambda value: f"X'{value.hex()}'"
    if sql_type.name == "BOOLEAN":
        return lambda value: "true" if value else "false"
    if sql_type.name == "TIMESTAMP":
        shown = from_raw(types.TIMESTAMP_NTZ)
        return lambda value: shown(value).isoformat(sep=" ") + "Z"
    if sql_type.name in ("DATE", "TIMESTAMP_NTZ"):
        convert = from_raw(sql_type)
        return lambda value: str(convert(value))
    if sql_type.name == "DECIMAL":
        convert = from_raw(sql_type)
        return lambda value: f"{convert(value):f}"
    return repr if sql_type.is_floating else str


def _write_text(value: str) -> str:
    is_plain = _PLAIN_TEXT.fullmatch(value) and value != "NULL"
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _reader(sql_type: SqlType) -> Callable[[str], Any]:
    """Return the function from a cell that is not NULL to its raw value."""
    if sql_type.name == "STRING":
        return _unquoted
    if sql_type.is_nested:
        leaves = _json_reader(sql_type)
        return lambda cell: leaves(json.loads(cell))
    if sql_type.name == "BINARY":
        return _read_binary
    if sql_type.name == "BOOLEAN":
        return _read_boolean
    if sql_type.name in ("INTERVAL_DAY_TIME", "INTERVAL_YEAR_MONTH"):
        return int
    convert, read = to_raw(sql_type), _PYTHON.get(sql_type.name, int)
    return lambda cell: convert(read(cell))


_PYTHON: dict[str, Callable[[str], Any]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMP_NTZ": datetime.fromisoformat,
}


def _read_boolean(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError(f"BOOLEAN is true or false, not {cell}")
    return cell.lower() == "true"


def _read_binary(cell: str) -> bytes:
    if not (cell.startswith("X'") and cell.endswith("'")):
        raise ValueError(f"BINARY is written X'…', not {cell}")
    return bytes.fromhex(cell[2:-1])


def _json_writer(sql_type: SqlType) -> Callable[[Any], Any]:
    """Return the function from a raw value or None inside JSON to what JSON holds for it."""
    inner = [_json_writer(child) for child in sql_type.children]
    if sql_type.name == "ARRAY":
        return lambda items: None if items is None else [inner[0](item) for item in items]
    if sql_type.name == "MAP":
        return lambda pairs: None if pairs is None else [[inner[0](k), inner[1](v)] for k, v in pairs]
    if sql_type.name == "STRUCT":
        return lambda items: None if items is None else [f(item) for f, item in zip(inner, items, strict=True)]
    if _is_json(sql_type):
        return lambda value: value
    write = _writer(sql_type)
    return lambda value: None if value is None else write(value)


def _json_reader(sql_type: SqlType) -> Callable[[Any], Any]:
    inner = [_json_reader(child) for child in sql_type.children]
    if sql_type.name == "ARRAY":
        return lambda items: None if items is None else [inner[0](item) for item in items]
    if sql_type.name == "MAP":
        return lambda pairs: None if pairs is None else [(inner[0](k), inner[1](v)) for k, v in pairs]
    if sql_type.name == "STRUCT":
        return lambda items: None if items is None else [f(item) for f, item in zip(inner, items, strict=True)]
    if sql_type.is_floating:
        return lambda value: None if value is None else float(value)
    if _is_json(sql_type):
        return lambda value: value
    read = _reader(sql_type)
    return lambda value: None if value is None else read(value)


def _is_json(sql_type: SqlType) -> bool:
    return sql_type.is_integer or sql_type.is_floating or sql_type.name in ("BOOLEAN", "STRING", "VOID")
