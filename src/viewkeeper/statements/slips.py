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
_BEHIND_NAME = ("FROM", "AS", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "ASC", "DESC", "IS", "IN", "LIKE")


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
    for n, (left, right) in enumerate(pairwise(lexemes)):
        if left.kind != "symbol":
            continue
        if left.text.startswith("{%") or (left.text == "{" and right.text == "{"):
            message = "a template stands here, where SQL is expected: render it first (`dbt compile` writes plain SQL)."
            return cursor.error("SYNTAX_ERROR", message, left)
        if left.text == "," and _begins_nothing(right, lexemes[n + 2] if n + 2 < len(lexemes) else None):
            message = f"nothing stands between this comma and {right}: leave the comma out, or write what is missing."
            return cursor.error("SYNTAX_ERROR", message, left)
    return _first_or_last_comma(cursor, lexemes)


def _first_or_last_comma(cursor: Cursor, lexemes: Sequence[Lexeme]) -> SqlError | None:
    last = lexemes[-1]
    if last.kind == "symbol" and last.text == ",":
        message = "nothing stands behind this comma: leave the comma out, or write what is missing."
        return cursor.error("SYNTAX_ERROR", message, last)
    for n, right in enumerate(lexemes[1:], 1):
        if right.kind == "symbol" and right.text == "," and _is_before_first(lexemes[:n][-2:]):
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
    if any(map(last.is_word, ("DISTINCT", "ALL"))):
        return before.is_word("SELECT") or before.is_word("(")
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
