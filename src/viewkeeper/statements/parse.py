"""SQL text → statements: the entry to this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewkeeper.errors import SqlError
from viewkeeper.statements import dml, functions, show, tables, views
from viewkeeper.statements.cursor import QUERY_STARTS, Cursor
from viewkeeper.statements.lexer import Lexeme, place_details, split, tokenize
from viewkeeper.statements.model import Place, Places, Query, SqlText, Statement
from viewkeeper.statements.refusals import find_refusal
from viewkeeper.statements.slips import find_slip

PARSERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE TABLE": tables.parse_create_table,
    "DROP TABLE": tables.parse_drop_table,
    "TRUNCATE": tables.parse_truncate_table,
    "ALTER TABLE": tables.parse_alter_table,
    "CREATE MATERIALIZED": views.parse_create_view,
    "CREATE OR REPLACE MATERIALIZED": views.parse_create_view,
    "ALTER MATERIALIZED": views.parse_alter_view,
    "REFRESH": views.parse_refresh_view,
    "DROP MATERIALIZED": views.parse_drop_view,
    "VERIFY": views.parse_verify_view,
    "DROP FUNCTION": functions.parse_drop_function,
    "SHOW": show.parse_show,
    "DESCRIBE": show.parse_describe,
    "DESC": show.parse_describe,
    "EXPLAIN": show.parse_explain,
    "INSERT": dml.parse_insert,
    "UPDATE": dml.parse_update,
    "DELETE": dml.parse_delete,
    "MERGE": dml.parse_merge,
}


_ELSEWHERE = {
    "UPSERT": "Write MERGE INTO, or db.put, which overwrites the row of that key.",
    "REPLACE": "Write MERGE INTO, or db.put, which overwrites the row of that key.",
    "RENAME": "Write ALTER MATERIALIZED VIEW v RENAME TO w.",
}


def parse_script(sql: str) -> list[Statement]:
    """Return the statements of a script, separated by semicolons; their places are those in the script.

    Args:
        sql: any number of statements; comments and empty statements are left out.

    Raises:
        SqlError: SYNTAX_ERROR, with line, column, the text near it and perhaps a suggestion, or the code of a
            statement that says something impossible.
        UnsupportedSql: for SQL that is understood and not taken; the message names what works instead.

    Example:
        >>> [type(s).__name__ for s in parse_script("SHOW TABLES; DROP TABLE t; SELECT 1")]
        ['ShowTables', 'DropTable', 'Query']
    """
    places = Places(sql)
    return [_parse(sql, lexemes, places) for lexemes in split(sql)]


def parse_statement(sql: str) -> Statement:
    """Return the one statement in ``sql``; a semicolon may end it.

    Raises:
        SqlError: SYNTAX_ERROR where there is none, MULTIPLE_STATEMENTS where there are several, else as
            ``parse_script``.

    Example:
        >>> parse_statement("REFRESH MATERIALIZED VIEW v FULL")
        RefreshView(name='v', full=True)
    """
    statements = split(sql)
    places = Places(sql)
    if not statements:
        raise SqlError(
            "SYNTAX_ERROR", "There is no statement: write one, as SHOW TABLES.", place_details(sql, places.at(0))
        )
    if len(statements) > 1:
        place = places.at(statements[1][0].start)
        message = f"At {place}: a second statement begins, where one is expected; give them one by one."
        raise SqlError("MULTIPLE_STATEMENTS", message, place_details(sql, place))
    return _parse(sql, statements[0], places)


def split_script(sql: str) -> list[SqlText]:
    r"""Return the text and place of each statement of a script, without reading what they say.

    Example:
        >>> [piece.text for piece in split_script("SELECT ';' ; -- done\n SHOW TABLES")]
        ["SELECT ';'", 'SHOW TABLES']
    """
    places = Places(sql)
    return [SqlText(sql[s[0].start : s[-1].stop], places.at(s[0].start)) for s in split(sql)]


def find_name(text: SqlText, name: str) -> Place | None:
    """Return the place of the first mention of ``name`` in ``text``, None where there is none.

    Args:
        text: a statement's or a query's SQL.
        name: a table, view or column; case does not matter.
    """
    mentions = (x for x in tokenize(text.text) if x.kind in ("word", "quoted") and x.text.lower() == name.lower())
    first = next(mentions, None)
    return text.place_at(first.start) if first else None


def _parse(sql: str, lexemes: Sequence[Lexeme], places: Places) -> Statement:
    cursor = Cursor(sql, lexemes, places)
    slip = find_slip(cursor, sql, lexemes)
    if slip is not None:
        raise slip
    if cursor.at_any(QUERY_STARTS):
        return _parse_query(cursor)
    refusal = find_refusal(cursor)
    if refusal is not None:
        raise refusal
    for words, parser in PARSERS.items():
        if cursor.at(words):
            return parser(cursor)
    raise _unknown(cursor)


def _parse_query(cursor: Cursor) -> Query:
    if cursor.at("WITH"):
        _refuse_insert_behind_with(cursor)
    return Query(cursor.query(), **cursor.origin)


def _refuse_insert_behind_with(cursor: Cursor) -> None:
    ahead, depth = 0, 0
    while (lexeme := cursor.peek(ahead)).kind != "end":
        depth += lexeme.is_word("(") - lexeme.is_word(")")
        if depth == 0 and cursor.at_any(("INSERT INTO", "INSERT OVERWRITE"), ahead):
            message = "write WITH behind INSERT INTO: INSERT INTO t WITH … SELECT …."
            raise cursor.refusal("WITH_BEFORE_INSERT_NOT_SUPPORTED", message, lexeme)
        ahead += 1


def _unknown(cursor: Cursor) -> SqlError:
    foreign = next((hint for word, hint in _ELSEWHERE.items() if cursor.at(word)), "")
    if cursor.accept_any(("CREATE", "ALTER", "DROP")):
        cursor.accept("OR REPLACE")
        return cursor.unexpected("TABLE or MATERIALIZED VIEW", ("TABLE", "MATERIALIZED VIEW"))
    words = tuple(dict.fromkeys(start.split()[0] for start in PARSERS)) + QUERY_STARTS[:-1]
    return cursor.unexpected("a statement", words, hint=foreign or f"Statements begin with {', '.join(words)}.")
