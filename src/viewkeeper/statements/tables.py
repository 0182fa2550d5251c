"""CREATE TABLE, DROP TABLE, TRUNCATE TABLE and ALTER TABLE."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace

from viewkeeper.errors import SqlError
from viewkeeper.statements.cursor import Cursor
from viewkeeper.statements.data_types import parse_type
from viewkeeper.statements.lexer import Lexeme
from viewkeeper.statements.model import (
    AlterTableAddColumn,
    AlterTableDropColumns,
    AlterTableRenameColumn,
    AlterTableWidenColumn,
    ColumnDefinition,
    CreateTable,
    DropTable,
    SqlText,
    Statement,
    TruncateTable,
)

_COLUMN_CLAUSES = ("NOT NULL", "DEFAULT", "COMMENT", "PRIMARY KEY")
_TABLE_CONSTRAINTS = ("UNIQUE (", "CHECK (", "FOREIGN KEY (")
_TABLE_CLAUSES = (
    "USING", "PARTITIONED BY", "CLUSTERED BY", "CLUSTER BY", "COMMENT", "TBLPROPERTIES", "OPTIONS", "LOCATION",
    "ROW FORMAT", "STORED", "WITH", "DEFAULT COLLATION",
)  # fmt: skip


@dataclass
class _Key:
    """The primary key as far as it is read: where it is declared, and its columns with their places."""

    at: Lexeme | None = None
    columns: list[tuple[str, Lexeme]] = field(default_factory=list)


def parse_create_table(cursor: Cursor) -> CreateTable:
    """Read CREATE TABLE.

    Raises:
        SqlError: PRIMARY_KEY_REQUIRED, PRIMARY_KEY_DECLARED_TWICE, COLUMN_NOT_FOUND (in the key),
            COLUMN_DECLARED_TWICE, KEY_TYPE_NOT_SUPPORTED, or an error of a name or a type.
        UnsupportedSql: CREATE_TABLE_AS_SELECT_NOT_SUPPORTED, CONSTRAINT_NOT_SUPPORTED,
            COLUMN_CLAUSE_NOT_SUPPORTED, TABLE_CLAUSE_NOT_SUPPORTED.
    """
    cursor.expect("CREATE TABLE")
    if_not_exists = cursor.accept("IF NOT EXISTS")
    if cursor.at("IF EXISTS"):
        raise cursor.unexpected("IF NOT EXISTS or the name of a table", hint="Write CREATE TABLE IF NOT EXISTS.")
    name_at = cursor.peek()
    name = cursor.name("the name of a table")
    _refuse_table_clauses(cursor)
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    key = _Key()
    while True:
        if not _parse_constraint(cursor, key):
            columns.append(_parse_column(cursor, columns, key))
        if not cursor.accept(","):
            break
    cursor.close_list()
    _refuse_table_clauses(cursor)
    cursor.expect_end()
    if not columns:
        raise cursor.error(
            "SYNTAX_ERROR", f"the table '{name}' has no columns; write their names and types before the key.", name_at
        )
    if key.at is None:
        message = (
            f"the table '{name}' has no primary key. Add PRIMARY KEY ({columns[0].name}), or the columns that "
            f"identify a row, behind the last column."
        )
        raise cursor.error("PRIMARY_KEY_REQUIRED", message, name_at)
    key_positions = _resolve_key(cursor, columns, key)
    columns = [replace(c, nullable=c.nullable and i not in key_positions) for i, c in enumerate(columns)]
    primary_key = tuple(columns[i].name for i in key_positions)
    return CreateTable(name, if_not_exists, tuple(columns), primary_key, **cursor.origin)


def parse_drop_table(cursor: Cursor) -> DropTable:
    """Read DROP TABLE."""
    cursor.expect("DROP TABLE")
    if_exists = cursor.accept("IF EXISTS")
    name = cursor.name("the name of a table")
    cascade = cursor.accept("CASCADE")
    cursor.expect_end(also=() if cascade else ("CASCADE",))
    return DropTable(name, if_exists, cascade, **cursor.origin)


def parse_truncate_table(cursor: Cursor) -> TruncateTable:
    """Read TRUNCATE TABLE."""
    cursor.expect("TRUNCATE TABLE")
    name = cursor.name("the name of a table")
    if cursor.at("PARTITION"):
        raise cursor.refusal("TABLE_CLAUSE_NOT_SUPPORTED", "tables have no partitions; use DELETE FROM … WHERE ….")
    cursor.expect_end()
    return TruncateTable(name, **cursor.origin)


def parse_alter_table(cursor: Cursor) -> Statement:
    """Read ALTER TABLE … ADD, RENAME, DROP and ALTER COLUMN.

    Raises:
        UnsupportedSql: ALTER_TABLE_NOT_SUPPORTED for all other changes, COLUMN_POSITION_NOT_SUPPORTED for FIRST and
            AFTER, PRIMARY_KEY_CANNOT_CHANGE for a column that would join the primary key.
    """
    cursor.expect("ALTER TABLE")
    table = cursor.name("the name of a table")
    if cursor.accept("RENAME COLUMN"):
        column = cursor.name("a column")
        cursor.expect("TO")
        new_name = cursor.name("the column's new name")
        cursor.expect_end()
        return AlterTableRenameColumn(table, column, new_name, **cursor.origin)
    if cursor.accept_any(("DROP COLUMN", "DROP COLUMNS")):
        return AlterTableDropColumns(table, _parse_names(cursor), **cursor.origin)
    if cursor.accept_any(("ALTER COLUMN", "CHANGE COLUMN")):
        return _parse_widening(cursor, table)
    if cursor.at_any(("DROP", "RENAME", "ALTER", "CHANGE", "REPLACE", "SET", "UNSET", "RECOVER", "CLUSTER")):
        message = (
            "a table's columns can be added, renamed, dropped and made wider; for other changes create a new table, "
            "fill it with INSERT INTO … SELECT …, and drop the old one."
        )
        raise cursor.refusal("ALTER_TABLE_NOT_SUPPORTED", message)
    return _parse_add_columns(cursor, table)


def _parse_names(cursor: Cursor) -> tuple[str, ...]:
    """Read the end of DROP COLUMNS: names, with or without parentheses."""
    in_parentheses = cursor.accept("(")
    names: list[str] = []
    while True:
        at = cursor.peek()
        name = cursor.name("a column")
        if name.lower() in (known.lower() for known in names):
            raise cursor.error("COLUMN_DECLARED_TWICE", f"the column '{name}' is named twice; name it once.", at)
        names.append(name)
        if not cursor.accept(","):
            break
    if in_parentheses:
        cursor.close_list()
    cursor.expect_end()
    return tuple(names)


def _parse_widening(cursor: Cursor, table: str) -> AlterTableWidenColumn:
    column = cursor.name("a column")
    if not cursor.accept("TYPE"):
        message = (
            "only the type of a column can be altered: write TYPE and the wider type; for its name, RENAME COLUMN."
        )
        raise cursor.refusal("ALTER_TABLE_NOT_SUPPORTED", message)
    sql_type = parse_type(cursor)
    cursor.expect_end()
    return AlterTableWidenColumn(table, column, sql_type, **cursor.origin)


def _parse_add_columns(cursor: Cursor, table: str) -> AlterTableAddColumn:
    cursor.expect("ADD")
    if cursor.at_any(("CONSTRAINT", "PRIMARY KEY", *_TABLE_CONSTRAINTS, "PARTITION")):
        raise cursor.refusal(
            "ALTER_TABLE_NOT_SUPPORTED",
            "only columns can be added to a table; write the key in CREATE TABLE, and leave other constraints out.",
        )
    if not cursor.at_any(("COLUMN", "COLUMNS")):
        raise cursor.unexpected("COLUMN or COLUMNS", ("COLUMN",), "Write ALTER TABLE … ADD COLUMN name TYPE.")
    cursor.expect_any(("COLUMN", "COLUMNS"))
    in_parentheses = cursor.accept("(")
    columns: list[ColumnDefinition] = []
    while True:
        columns.append(_parse_added_column(cursor, columns))
        if not cursor.accept(","):
            break
    if in_parentheses:
        cursor.close_list()
    cursor.expect_end()
    return AlterTableAddColumn(table, tuple(columns), **cursor.origin)


def _parse_added_column(cursor: Cursor, before: list[ColumnDefinition]) -> ColumnDefinition:
    key = _Key()
    column = _parse_column(cursor, before, key)
    if key.at is not None:
        message = "the primary key of a table cannot change; create a new table with the key that you need."
        raise cursor.refusal("PRIMARY_KEY_CANNOT_CHANGE", message, key.at)
    return column


def _parse_column(cursor: Cursor, before: list[ColumnDefinition], key: _Key) -> ColumnDefinition:
    at = cursor.peek()
    name = cursor.name("a column")
    if name.lower() in {column.name.lower() for column in before}:
        raise cursor.error("COLUMN_DECLARED_TWICE", f"there are two columns named '{name}'; rename or drop one.", at)
    sql_type = parse_type(cursor)
    nullable = True
    default: SqlText | None = None
    comment: str | None = None
    seen: set[str] = set()
    while True:
        clause_at = cursor.peek()
        clause = cursor.accept_any(_COLUMN_CLAUSES)
        if clause is None:
            break
        if clause in seen:
            raise cursor.error("SYNTAX_ERROR", f"{clause} stands twice for the column '{name}'; keep one.", clause_at)
        seen.add(clause)
        if clause == "NOT NULL":
            nullable = False
        elif clause == "DEFAULT":
            default = cursor.text("a value", lambda: _ends_default(cursor))
        elif clause == "COMMENT":
            comment = cursor.string("a comment")
        else:
            _declare_key(cursor, key, clause_at, [(name, at)])
    _refuse_column_clauses(cursor)
    if not (cursor.at_end() or cursor.at_any((",", ")"))):
        raise cursor.unexpected("',' or ')'", _COLUMN_CLAUSES)
    return ColumnDefinition(name, sql_type, nullable, default, comment)


def _ends_default(cursor: Cursor) -> bool:
    if cursor.at("NOT NULL"):
        return not cursor.at("IS", -1)  # DEFAULT x IS NOT NULL
    return cursor.at_any((",", "COMMENT", "PRIMARY KEY", "REFERENCES", "CHECK (", "UNIQUE", "FIRST", "AFTER"))


def _parse_constraint(cursor: Cursor, key: _Key) -> bool:
    """Read a table constraint where one comes next; only the primary key is taken."""
    at = cursor.peek()
    named = cursor.at("CONSTRAINT") and cursor.at_any(("PRIMARY KEY", *_TABLE_CONSTRAINTS), 2)
    if named:
        cursor.expect("CONSTRAINT")
        cursor.name("a constraint")
    if cursor.at_any(_TABLE_CONSTRAINTS):
        raise _constraint_refusal(cursor)
    if not cursor.at("PRIMARY KEY"):
        return False
    cursor.expect("PRIMARY KEY (")
    columns = []
    while True:
        column_at = cursor.peek()
        columns.append((cursor.name("a column of the key"), column_at))
        if not cursor.accept(","):
            break
    cursor.close_list()
    _declare_key(cursor, key, at, columns)
    return True


def _declare_key(cursor: Cursor, key: _Key, at: Lexeme, columns: list[tuple[str, Lexeme]]) -> None:
    if key.at is not None:
        message = "the table has a primary key already; write one PRIMARY KEY (a, b) for a key of several columns."
        raise cursor.error("PRIMARY_KEY_DECLARED_TWICE", message, at)
    key.at, key.columns = at, columns


def _resolve_key(cursor: Cursor, columns: list[ColumnDefinition], key: _Key) -> list[int]:
    positions: list[int] = []
    by_name = {column.name.lower(): i for i, column in enumerate(columns)}
    for name, at in key.columns:
        position = by_name.get(name.lower())
        if position is None:
            raise _no_such_column(cursor, name, at, [column.name for column in columns])
        if position in positions:
            raise cursor.error("COLUMN_DECLARED_TWICE", f"the key names the column '{name}' twice; name it once.", at)
        if columns[position].type.is_nested:
            message = (
                f"the column '{name}' is {columns[position].type} and cannot be part of a primary key; "
                f"use a column of a simple type."
            )
            raise cursor.error("KEY_TYPE_NOT_SUPPORTED", message, at)
        positions.append(position)
    return positions


def _no_such_column(cursor: Cursor, name: str, at: Lexeme, known: list[str]) -> SqlError:
    close = difflib.get_close_matches(name.lower(), [column.lower() for column in known], n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"its columns are {', '.join(known)}."
    return cursor.error("COLUMN_NOT_FOUND", f"the key names '{name}', which the table does not have; {hint}", at)


def _constraint_refusal(cursor: Cursor) -> SqlError:
    message = "of constraints only PRIMARY KEY and NOT NULL are supported; leave this one out."
    return cursor.refusal("CONSTRAINT_NOT_SUPPORTED", message)


def _refuse_column_clauses(cursor: Cursor) -> None:
    if cursor.at_any(("UNIQUE", "REFERENCES", "CHECK", "CONSTRAINT")):
        raise _constraint_refusal(cursor)
    if cursor.at("GENERATED"):
        message = "generated columns are not supported; compute the value in a view."
        raise cursor.refusal("COLUMN_CLAUSE_NOT_SUPPORTED", message)
    if cursor.at_any(("AUTO_INCREMENT", "AUTOINCREMENT", "IDENTITY")):
        message = "numbers are not drawn by the store; leave this out, and give each row its number."
        raise cursor.refusal("COLUMN_CLAUSE_NOT_SUPPORTED", message)
    if cursor.at("FIRST") or cursor.at("AFTER"):
        message = "a new column is always the last one; name the columns in SELECT in the order that you want."
        raise cursor.refusal("COLUMN_POSITION_NOT_SUPPORTED", message)


def _refuse_table_clauses(cursor: Cursor) -> None:
    if cursor.at_any(("AS SELECT", "AS WITH", "AS VALUES", "AS FROM", "AS TABLE", "AS (", "LIKE")):
        message = "list the columns and the primary key, and fill the table with INSERT INTO … SELECT …; "
        message += "for a result that stays up to date use CREATE MATERIALIZED VIEW … AS …."
        raise cursor.refusal("CREATE_TABLE_AS_SELECT_NOT_SUPPORTED", message)
    clause = next((words for words in _TABLE_CLAUSES if cursor.at(words)), None)
    if clause is not None:
        message = f"{clause} does not apply: the store keeps tables by primary key in its own form; leave it out."
        raise cursor.refusal("TABLE_CLAUSE_NOT_SUPPORTED", message)
