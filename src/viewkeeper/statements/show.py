"""SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from viewkeeper.statements.cursor import QUERY_STARTS, Cursor
from viewkeeper.statements.model import (
    Describe,
    ExplainCreate,
    ExplainQuery,
    ExplainView,
    ShowCreate,
    ShowDecisions,
    ShowFunctions,
    ShowTables,
    ShowViews,
    Statement,
)
from viewkeeper.statements.views import parse_create_view

_OBJECT_NAME = "the name of a table or view"
_EXPLAIN_MODES = ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")


def parse_show(cursor: Cursor) -> Statement:
    """Read SHOW TABLES, MATERIALIZED VIEWS, [USER] FUNCTIONS, CREATE or REFRESH DECISIONS."""
    cursor.expect("SHOW")
    if cursor.at("VIEWS"):
        wanted = "TABLES, MATERIALIZED VIEWS, FUNCTIONS or CREATE"
        raise cursor.unexpected(wanted, hint="Write SHOW MATERIALIZED VIEWS.")
    wanted_words = ("TABLES", "MATERIALIZED VIEWS", "FUNCTIONS", "USER FUNCTIONS", "CREATE", "REFRESH DECISIONS")
    found = cursor.expect_any(wanted_words)
    if found == "REFRESH DECISIONS":
        of_one = cursor.accept("FOR")
        view = cursor.name("the name of a view") if of_one else None
        cursor.expect_end(also=() if of_one else ("FOR",))
        return ShowDecisions(view, **cursor.origin)
    if found == "CREATE":
        _accept_kind(cursor)
        name = cursor.name(_OBJECT_NAME)
        cursor.expect_end()
        return ShowCreate(name, **cursor.origin)
    if cursor.at_any(("LIKE", "IN", "FROM")):
        raise cursor.unexpected("the end of the statement", hint=f"SHOW {found} lists all of this store.")
    cursor.expect_end()
    if found == "TABLES":
        return ShowTables(**cursor.origin)
    if found.endswith("FUNCTIONS"):
        return ShowFunctions(**cursor.origin)
    return ShowViews(**cursor.origin)


def parse_describe(cursor: Cursor) -> Describe:
    """Read DESCRIBE.

    Raises:
        UnsupportedSql: STATEMENT_NOT_SUPPORTED for DESCRIBE of a query, a function or a database.
    """
    cursor.expect_any(("DESCRIBE", "DESC"))
    if cursor.at("(") or _names_other_thing(cursor):
        message = "only tables and views are described; EXPLAIN shows what a query does."
        raise cursor.refusal("STATEMENT_NOT_SUPPORTED", message)
    _accept_kind(cursor)
    extended = _followed_by_name(cursor, "EXTENDED") and cursor.accept("EXTENDED")
    name = cursor.name(_OBJECT_NAME)
    cursor.expect_end()
    return Describe(name, extended, **cursor.origin)


def parse_explain(cursor: Cursor) -> Statement:
    """Read EXPLAIN of a CREATE MATERIALIZED VIEW, of a view or of a query.

    Raises:
        UnsupportedSql: EXPLAIN_NOT_SUPPORTED for other statements and for Spark's modes.
    """
    cursor.expect("EXPLAIN")
    if cursor.at_any(_EXPLAIN_MODES):
        message = f"EXPLAIN has no mode {cursor.peek().text.upper()}; leave it out."
        raise cursor.refusal("EXPLAIN_NOT_SUPPORTED", message)
    if cursor.at("ANALYZE"):
        return _parse_explain_analyze(cursor)
    if cursor.at_any(("CREATE MATERIALIZED", "CREATE OR REPLACE MATERIALIZED")):
        origin = cursor.origin
        cursor.begin_inner()
        return ExplainCreate(parse_create_view(cursor), **origin)
    if cursor.accept("MATERIALIZED VIEW"):
        name = cursor.name("the name of a view")
        cursor.expect_end()
        return ExplainView(name, **cursor.origin)
    if cursor.at_any(("CREATE", "INSERT", "UPDATE", "DELETE", "MERGE", "DROP", "ALTER", "REFRESH")):
        message = "EXPLAIN takes CREATE MATERIALIZED VIEW …, MATERIALIZED VIEW name, or a query."
        raise cursor.refusal("EXPLAIN_NOT_SUPPORTED", message)
    if not cursor.at_any(QUERY_STARTS):
        words = ("CREATE MATERIALIZED VIEW", "MATERIALIZED VIEW", *QUERY_STARTS[:-1])
        raise cursor.unexpected("CREATE MATERIALIZED VIEW, MATERIALIZED VIEW or a query", words)
    return ExplainQuery(cursor.query(), **cursor.origin)


def _parse_explain_analyze(cursor: Cursor) -> ExplainView:
    if not cursor.at("ANALYZE MATERIALIZED VIEW"):
        message = "EXPLAIN ANALYZE takes MATERIALIZED VIEW name, which it refreshes; for others leave ANALYZE out."
        raise cursor.refusal("EXPLAIN_NOT_SUPPORTED", message)
    cursor.expect("ANALYZE MATERIALIZED VIEW")
    name = cursor.name("the name of a view")
    cursor.expect_end()
    return ExplainView(name, analyze=True, **cursor.origin)


def _accept_kind(cursor: Cursor) -> None:
    """Move behind TABLE or [MATERIALIZED] VIEW; alone, these words are the name."""
    if _followed_by_name(cursor, "TABLE"):
        cursor.accept("TABLE")
    elif _followed_by_name(cursor, "VIEW"):
        cursor.accept("VIEW")
    else:
        cursor.accept("MATERIALIZED VIEW")


def _followed_by_name(cursor: Cursor, word: str) -> bool:
    return cursor.at(word) and cursor.peek(1).kind in ("word", "quoted")


def _names_other_thing(cursor: Cursor) -> bool:
    things = ("FUNCTION", "DATABASE", "SCHEMA", "CATALOG", "QUERY", "SELECT", "WITH", "VALUES", "FROM")
    return cursor.at_any(things) and cursor.peek(1).kind != "end"
