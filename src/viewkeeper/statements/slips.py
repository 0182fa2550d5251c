"""Slips that the parsers further down would let pass, or report at the wrong place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from viewkeeper.errors import SqlError
from viewkeeper.statements.cursor import Cursor
from viewkeeper.statements.lexer import Lexeme

_QUOTES = frozenset("‘’‚“”„«»´")
_DASHES = frozenset("–—−")


# Behind FROM that is a column's name; FROM that begins a clause has a table's name behind it.
_BEHIND_NAME = (
    *("FROM", "AS", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT"),
    *("ASC", "DESC", "NULLS", "ROWS", "WITH", "GROUPING", "UNION", "INTERSECT", "EXCEPT", "MINUS"),
    *("IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "NOT", "AND", "OR", "DIV", "COLLATE"),
)


def find_slip(cursor: Cursor, sql: str, lexemes: Sequence[Lexeme]) -> SqlError | None:
    """Return the error of a stray comma, of a template, or of what a word processor made; None where there is none.

    Args:
        cursor: of the statement.
        sql: the whole text.
        lexemes: those of the statement.
    """
    if not sql.isascii():
        for lexeme in lexemes:
            error = _of_word_processor(cursor, lexeme)
            if error is not None:
                return error
    names = _names(lexemes)
    for n, (left, right) in enumerate(pairwise(lexemes)):
        if left.kind != "symbol":
            continue
        if left.text.startswith("{%") or (left.text == "{" and right.text == "{"):
            message = "a template stands here, where SQL is expected: render it first (`dbt compile` writes plain SQL)."
            return cursor.error("SYNTAX_ERROR", message, left)
        following = lexemes[n + 2] if n + 2 < len(lexemes) and n not in names else None
        if left.text == "," and _begins_nothing(right, following):
            message = f"nothing stands between this comma and {right}: leave the comma out, or write what is missing."
            return cursor.error("SYNTAX_ERROR", message, left)
    return _first_or_last_comma(cursor, lexemes, names)


def _names(lexemes: Sequence[Lexeme]) -> range:
    """Return where the list of columns of a table, a view or an INSERT stands: each word in it is a name."""
    first = lexemes[0]
    if first.is_word("ALTER") and len(lexemes) > 1 and lexemes[1].is_word("TABLE"):
        return range(len(lexemes))
    opening = next((n for n, lexeme in enumerate(lexemes) if lexeme.kind == "symbol"), 0)
    is_behind_name = lexemes[opening].is_word("(") and not any(lexeme.is_word("AS") for lexeme in lexemes[:opening])
    if not is_behind_name or not (first.is_word("CREATE") or first.is_word("INSERT")):
        return range(0)
    depth = 0
    for n in range(opening, len(lexemes)):
        depth += lexemes[n].is_word("(") - lexemes[n].is_word(")")
        if not depth:
            # INSERT may have a query in parentheses instead.
            inner = lexemes[opening + 1 : n]
            is_list = first.is_word("CREATE") or all(lexeme.is_word(",") for lexeme in inner[1::2])
            return range(opening, n) if is_list else range(0)
    return range(0)


def _first_or_last_comma(cursor: Cursor, lexemes: Sequence[Lexeme], names: range) -> SqlError | None:
    last = lexemes[-1]
    if last.kind == "symbol" and last.text == ",":
        message = "nothing stands behind this comma: leave the comma out, or write what is missing."
        return cursor.error("SYNTAX_ERROR", message, last)
    for n, right in enumerate(lexemes[1:], 1):
        if right.kind != "symbol" or right.text != "," or (n in names and lexemes[n - 1].kind == "word"):
            continue
        if _is_before_first(lexemes[max(n - 2, 0) : n]):
            message = "nothing stands before this comma: leave the comma out, or write what is missing."
            return cursor.error("SYNTAX_ERROR", message, right)
    return None


def _is_before_first(lexemes: Sequence[Lexeme]) -> bool:
    """Return whether a list begins behind ``lexemes``, where the parsers further down pass over a comma."""
    last = lexemes[-1]
    before = lexemes[0] if len(lexemes) > 1 else None
    if last.kind == "symbol":
        return last.text == "("
    if last.kind != "word" or before is None:
        return last.kind == "word" and last.is_word("SELECT")
    if last.is_word("BY"):
        return any(map(before.is_word, ("GROUP", "ORDER", "PARTITION", "CLUSTER", "DISTRIBUTE", "SORT")))
    # ``SELECT select, a`` and ``a AS select`` name columns.
    return last.is_word("SELECT") and not any(map(before.is_word, ("SELECT", "AS", ",", ".")))


def _begins_nothing(lexeme: Lexeme, following: Lexeme | None) -> bool:
    """Return whether ``lexeme`` ends a list; ``(a, from)`` names a column."""
    if lexeme.is_word("FROM"):
        if following is None or any(map(following.is_word, _BEHIND_NAME)):
            return False
        return following.kind in ("word", "quoted", "string") or following.is_word("(")
    return lexeme.kind == "symbol" and lexeme.text in (",", ")")


def _of_word_processor(cursor: Cursor, lexeme: Lexeme) -> SqlError | None:
    if lexeme.kind not in ("word", "symbol"):
        return None
    for character in lexeme.text:
        if character in _QUOTES:
            message = f"{character} is a quotation mark of word processors: write ' around texts and ` around names."
            return cursor.error("SYNTAX_ERROR", message, lexeme)
        if character in _DASHES:
            return cursor.error("SYNTAX_ERROR", f"{character} is a dash of word processors: write - for minus.", lexeme)
    return None
