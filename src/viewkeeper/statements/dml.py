"""INSERT, UPDATE, DELETE and MERGE: their frame; the expressions in it stay text."""

from __future__ import annotations

from collections.abc import Callable, Collection

from viewkeeper.statements.cursor import QUERY_STARTS, Cursor
from viewkeeper.statements.lexer import Lexeme
from viewkeeper.statements.model import Delete, Insert, Merge, MergeClause, MergeKind, SqlText, Update

_TABLE_NAME = "the name of a table"
_WHEN_KINDS: dict[str, MergeKind] = {
    "WHEN NOT MATCHED BY SOURCE": "NOT_MATCHED_BY_SOURCE",
    "WHEN NOT MATCHED BY TARGET": "NOT_MATCHED",
    "WHEN NOT MATCHED": "NOT_MATCHED",
    "WHEN MATCHED": "MATCHED",
}
_WHEN_FOLLOWERS = ("THEN", "AND", "BY")


def parse_insert(cursor: Cursor) -> Insert:
    """Read INSERT INTO.

    Raises:
        SqlError: COLUMN_DECLARED_TWICE, where the list names a column twice.
        UnsupportedSql: INSERT_OVERWRITE_NOT_SUPPORTED, INSERT_CLAUSE_NOT_SUPPORTED.
    """
    cursor.expect("INSERT")
    if cursor.at("OVERWRITE"):
        message = "INSERT OVERWRITE is not supported; use TRUNCATE TABLE and INSERT INTO, or MERGE INTO."
        raise cursor.refusal("INSERT_OVERWRITE_NOT_SUPPORTED", message)
    cursor.expect("INTO")
    if not _at_query(cursor, 1):
        cursor.accept("TABLE")
    table = cursor.name(_TABLE_NAME)
    columns = None
    if cursor.at("(") and not _at_query(cursor, 1):
        columns = _columns(cursor)
    if cursor.at_any(("BY NAME", "REPLACE WHERE", "PARTITION", "IF NOT EXISTS")):
        message = "of INSERT only INSERT INTO t [(columns)] query is supported; name the columns in the list."
        raise cursor.refusal("INSERT_CLAUSE_NOT_SUPPORTED", message)
    return Insert(table, columns, cursor.query(), **cursor.origin)


def parse_update(cursor: Cursor) -> Update:
    """Read UPDATE.

    Raises:
        UnsupportedSql: UPDATE_FROM_NOT_SUPPORTED.
    """
    cursor.expect("UPDATE")
    table = cursor.name(_TABLE_NAME)
    alias = cursor.alias(before=("SET", "WHERE"))
    cursor.expect("SET")
    qualifiers = (alias,) if alias else (table,)
    assignments = _assignments(cursor, qualifiers, lambda: cursor.at("WHERE") or _at_from(cursor))
    if _at_from(cursor):
        message = "UPDATE reads no other table; use MERGE INTO … USING … ON … WHEN MATCHED THEN UPDATE SET …."
        raise cursor.refusal("UPDATE_FROM_NOT_SUPPORTED", message)
    where = _where(cursor)
    cursor.expect_end(also=() if where else ("WHERE",))
    return Update(table, alias, assignments, where, **cursor.origin)


def _at_from(cursor: Cursor) -> bool:
    return cursor.at("FROM") and not cursor.at("DISTINCT", -1)  # IS DISTINCT FROM


def parse_delete(cursor: Cursor) -> Delete:
    """Read DELETE FROM.

    Raises:
        UnsupportedSql: DELETE_USING_NOT_SUPPORTED.
    """
    cursor.expect("DELETE FROM")
    table = cursor.name(_TABLE_NAME)
    alias = cursor.alias(before=("WHERE", "USING"))
    if cursor.at("USING"):
        message = "DELETE reads no other table; use MERGE INTO … USING … ON … WHEN MATCHED THEN DELETE."
        raise cursor.refusal("DELETE_USING_NOT_SUPPORTED", message)
    where = _where(cursor)
    cursor.expect_end(also=() if where else ("WHERE",))
    return Delete(table, alias, where, **cursor.origin)


def parse_merge(cursor: Cursor) -> Merge:
    """Read MERGE INTO.

    Raises:
        SqlError: MERGE_CLAUSE_UNREACHABLE for a clause behind one without condition, INSERT_COUNT_MISMATCH where
            INSERT has not as many values as columns, COLUMN_DECLARED_TWICE.
        UnsupportedSql: SCHEMA_EVOLUTION_NOT_SUPPORTED.
    """
    cursor.expect("MERGE")
    if cursor.at("WITH SCHEMA EVOLUTION"):
        message = "MERGE does not add columns; use ALTER TABLE … ADD COLUMN before it."
        raise cursor.refusal("SCHEMA_EVOLUTION_NOT_SUPPORTED", message)
    cursor.expect("INTO")
    target = cursor.name(_TABLE_NAME)
    target_alias = cursor.alias(before=("USING",))
    cursor.expect("USING")
    source = _merge_source(cursor)
    source_alias = cursor.alias(before=("ON",))
    cursor.expect("ON")
    on = cursor.text("a condition", _outside_case(cursor, lambda: _at_when(cursor)))
    qualifiers = (target_alias,) if target_alias else (target,)
    clauses: list[MergeClause] = []
    while cursor.at("WHEN"):
        clauses.append(_merge_clause(cursor, clauses, qualifiers))
    if not clauses:
        raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED", ("WHEN",))
    cursor.expect_end(also=("WHEN",))
    return Merge(target, target_alias, source, source_alias, on, tuple(clauses), **cursor.origin)


def _merge_source(cursor: Cursor) -> SqlText:
    first = cursor.position
    if cursor.accept("("):
        if not cursor.at_any(QUERY_STARTS):
            raise cursor.unexpected("a query", QUERY_STARTS[:-1])
        cursor.text("a query")
        cursor.expect(")")
    else:
        cursor.name("the name of a table or view")
    return cursor.text_since(first)


def _merge_clause(cursor: Cursor, before: list[MergeClause], qualifiers: tuple[str, ...]) -> MergeClause:
    at = cursor.peek()
    kind = _WHEN_KINDS[cursor.expect_any(tuple(_WHEN_KINDS))]
    if any(clause.kind == kind and clause.condition is None for clause in before):
        message = "this clause is never reached, because one before it takes all rows; give that one a condition."
        raise cursor.error("MERGE_CLAUSE_UNREACHABLE", message, at)
    condition = None
    if cursor.accept("AND"):
        condition = cursor.text("a condition", _outside_case(cursor, lambda: cursor.at("THEN")))
    cursor.expect("THEN")
    if kind == "NOT_MATCHED":
        return _merge_insert(cursor, condition)
    if cursor.expect_any(("UPDATE", "DELETE")) == "DELETE":
        return MergeClause(kind, condition, "DELETE")
    cursor.expect("SET")
    if kind == "MATCHED" and cursor.accept("*"):
        return MergeClause(kind, condition, "UPDATE", star=True)
    ends = _outside_case(cursor, lambda: _at_when(cursor))
    return MergeClause(kind, condition, "UPDATE", assignments=_assignments(cursor, qualifiers, ends))


def _merge_insert(cursor: Cursor, condition: SqlText | None) -> MergeClause:
    cursor.expect("INSERT")
    if cursor.accept("*"):
        return MergeClause("NOT_MATCHED", condition, "INSERT", star=True)
    columns = _columns(cursor)
    cursor.expect("VALUES")
    at = cursor.peek()
    cursor.expect("(")
    values = [cursor.text("a value", lambda: cursor.at(","))]
    while cursor.accept(","):
        values.append(cursor.text("a value", lambda: cursor.at(",")))
    cursor.close_list()
    if len(values) != len(columns):
        message = f"INSERT names {len(columns)} columns, but VALUES gives {len(values)}; write one value for each."
        raise cursor.error("INSERT_COUNT_MISMATCH", message, at)
    return MergeClause("NOT_MATCHED", condition, "INSERT", columns=columns, values=tuple(values))


def _assignments(
    cursor: Cursor, qualifiers: tuple[str, ...], ends: Callable[[], bool]
) -> tuple[tuple[str, SqlText], ...]:
    assignments: dict[str, tuple[str, SqlText]] = {}
    while True:
        at = cursor.peek()
        column = cursor.column_name(qualifiers)
        _check_new(cursor, column, assignments, at)
        cursor.expect("=")
        value = cursor.text("a value", lambda: cursor.at(",") or ends())
        assignments[column.lower()] = (column, value)
        if not cursor.accept(","):
            return tuple(assignments.values())


def _columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    columns: dict[str, str] = {}
    while True:
        at = cursor.peek()
        column = cursor.name("a column")
        _check_new(cursor, column, columns, at)
        columns[column.lower()] = column
        if not cursor.accept(","):
            break
    cursor.close_list()
    return tuple(columns.values())


def _check_new(cursor: Cursor, column: str, known: Collection[str], at: Lexeme) -> None:
    if column.lower() in known:
        raise cursor.error("COLUMN_DECLARED_TWICE", f"the column '{column}' is named twice; name it once.", at)


def _where(cursor: Cursor) -> SqlText | None:
    return cursor.text("a condition") if cursor.accept("WHERE") else None


def _at_query(cursor: Cursor, ahead: int) -> bool:
    """Return whether a query begins ``ahead`` of here; a column or table may have such a name, too."""
    return cursor.at_any(QUERY_STARTS, ahead) and not cursor.at_any((",", ")"), ahead + 1)


def _at_when(cursor: Cursor) -> bool:
    """Return whether a clause of MERGE begins here: WHEN [NOT] MATCHED, and not the WHEN of a CASE."""
    matched = 1 if cursor.at("WHEN MATCHED") else 2 if cursor.at("WHEN NOT MATCHED") else 0
    return matched > 0 and cursor.at_any(_WHEN_FOLLOWERS, matched + 1)


def _outside_case(cursor: Cursor, ends: Callable[[], bool]) -> Callable[[], bool]:
    """Return a test for the end of a text that ignores what stands between CASE and END."""
    depth = 0

    def ends_here() -> bool:
        nonlocal depth
        if depth == 0 and ends():
            return True
        if cursor.at_any(("CASE", "END")) and not cursor.at(".", -1) and not cursor.at(".", 1):
            depth = max(0, depth + (1 if cursor.at("CASE") else -1))
        return False

    return ends_here
