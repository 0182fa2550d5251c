"""What is probably wrong with a query that cannot be parsed: a misspelled keyword, a missing comma, another dialect.

A guess counts only where the query, changed accordingly, can be read further than before.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from viewkeeper.errors import SqlError
from viewkeeper.plan.place import Place, located
from viewkeeper.statements.lexer import Lexeme, tokenize

# Returns where reading stops, None where all can be read.
Stop = Callable[[str], "int | None"]

_KEYWORDS = (
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "INNER", "LEFT",
    "RIGHT", "FULL", "OUTER", "CROSS", "ON", "USING", "UNION", "ALL", "EXCEPT", "INTERSECT", "AND", "OR", "NOT", "IN",
    "IS", "NULL", "LIKE", "BETWEEN", "EXISTS", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "VALUES",
    "WITH", "OVER", "PARTITION",
)  # fmt: skip
_LOOK_BACK, _LOOK_AHEAD = 4, 2
_CLAUSES = "SELECT … FROM … JOIN … ON … WHERE … GROUP BY … HAVING … ORDER BY … LIMIT …"
_BY = ("GROUP", "ORDER", "PARTITION", "CLUSTER", "DISTRIBUTE", "SORT")
# What other systems have, by the words at which reading stops, or just before.
_FOREIGN: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ON", "CONFLICT"), "INSERT has no ON CONFLICT: use MERGE INTO, or db.put, which overwrites the row of that key."),
    (("ON", "DUPLICATE"), "INSERT has no ON DUPLICATE KEY: use MERGE INTO, or db.put, which overwrites the row."),
    (("RETURNING",), "Statements return no rows that they wrote: leave RETURNING out and SELECT by key."),
    (("FOR", "UPDATE"), "Reading locks nothing: leave FOR UPDATE out, and write with db.check_and_put."),
    (("FOR", "SHARE"), "Reading locks nothing: leave FOR SHARE out."),
    (("WITH", "DATA"), "A view is filled when it is created: leave WITH DATA out."),
    (("TOP",), "There is no TOP: write LIMIT at the end of the query."),
    (("~",), "There is no operator ~ between texts: write RLIKE for a regular expression."),
    (("!", "~"), "There is no operator !~: write NOT … RLIKE for a regular expression."),
    (("$",), 'Parameters have names: write :name, and pass {"name": value}.'),
    (("%",), 'Parameters have names: write :name instead of %s, and pass {"name": value}.'),
)  # fmt: skip


@dataclass(frozen=True)
class Diagnosis:
    """Why a query cannot be read.

    Args:
        message: what is wrong and what to do.
        start: the offset of the words it is about.
        stop: the offset behind them.
    """

    message: str
    start: int
    stop: int


def diagnose(sql: str, at: int, stop_of: Stop, description: str = "") -> Diagnosis:
    """Return what is probably wrong with ``sql``.

    Args:
        sql: a query whose strings, quoted names and comments are closed.
        at: the offset where reading it stopped.
        stop_of: tries another text.
        description: what the parser says is missing, where it says so.

    Example:
        >>> diagnose("SELECT * FORM t", 14, lambda sql: None).message
        'FORM is no keyword: did you mean FROM?'
    """
    lexemes = tokenize(sql)
    i = next((n for n, lexeme in enumerate(lexemes) if lexeme.stop > at), len(lexemes) - 1)
    return (
        _foreign(lexemes, i)
        or _misspelled(sql, lexemes, i, stop_of)
        or _inserted(sql, lexemes, i, stop_of)
        or (None if description else _misspelled(sql, lexemes, i, stop_of, at))
        or _plain(lexemes, i, description)
    )


def placed_by_spark(error: SqlError, sql: str, place: Place) -> SqlError:
    """Return an error of Spark's analyzer at its place in the user's text, with our reason where Spark has none.

    Args:
        error: with ``spark_place``, line and column from 0, in its details.
        sql: the query as Spark read it.
        place: where it stands in the user's text.
    """
    details = dict(error.details)
    at = details.pop("spark_place", None)
    if not isinstance(at, tuple):
        return error
    lines = sql.split("\n")
    offset = sum(len(line) + 1 for line in lines[: at[0]]) + at[1]
    message = error.message
    lexeme = next((x for x in tokenize(sql) if x.stop > offset), None)
    start, stop = (lexeme.start, lexeme.stop) if lexeme else (offset, len(sql))
    if error.code == "PARSE_SYNTAX_ERROR":
        found = diagnose(sql, offset, lambda _: 0)
        message, start, stop = found.message, found.start, found.stop
    details |= place.details(start, stop)
    return type(error)(error.code, located(message, details), details)


def _foreign(lexemes: Sequence[Lexeme], i: int) -> Diagnosis | None:
    for first in range(max(i - 1, 0), min(i + 2, len(lexemes))):
        for words, message in _FOREIGN:
            found = lexemes[first : first + len(words)]
            if len(found) == len(words) and all(map(Lexeme.is_word, found, words)):
                return Diagnosis(message, found[0].start, found[-1].stop)
    return None


def _misspelled(
    sql: str, lexemes: Sequence[Lexeme], i: int, stop_of: Stop, beyond: int | None = None
) -> Diagnosis | None:
    """Try keywords for words that resemble them.

    Return the first with which all can be read, or, where ``beyond`` is given, what can be read up to there.
    """
    for lexeme, keyword in _similar(lexemes, i):
        stop = stop_of(sql[: lexeme.start] + keyword + sql[lexeme.stop :])
        shift = len(keyword) - (lexeme.stop - lexeme.start)
        if stop is None or (beyond is not None and stop - shift > beyond):
            return Diagnosis(f"{lexeme.text} is no keyword: did you mean {keyword}?", lexeme.start, lexeme.stop)
    return None


def _similar(lexemes: Sequence[Lexeme], i: int) -> Iterator[tuple[Lexeme, str]]:
    """Yield the words around ``i`` with the keywords that they resemble, the nearest first."""
    around = range(max(i - _LOOK_BACK, 0), min(i + _LOOK_AHEAD + 1, len(lexemes)))
    for n in sorted(around, key=lambda n: abs(n - i)):
        word = lexemes[n].text.upper()
        if lexemes[n].kind == "word" and len(word) > 1 and word not in _KEYWORDS:
            for keyword in difflib.get_close_matches(word, _KEYWORDS, n=2, cutoff=0.65):
                if word != f"{keyword}S":  # ORDERS is a good name
                    yield lexemes[n], keyword


def _inserted(sql: str, lexemes: Sequence[Lexeme], i: int, stop_of: Stop) -> Diagnosis | None:
    """Try BY behind GROUP and ORDER, and commas."""
    for n in range(i, max(i - _LOOK_BACK, 0), -1):
        before, here = lexemes[n - 1], lexemes[n]
        if any(map(before.is_word, _BY)) and stop_of(f"{sql[: here.start]}BY {sql[here.start :]}") is None:
            return Diagnosis(f"BY is missing behind {before.text.upper()}.", here.start, here.stop)
        can_begin = here.kind in ("word", "quoted", "string", "number") and here.text.upper() not in _KEYWORDS
        if can_begin and stop_of(f"{sql[: here.start]}, {sql[here.start :]}") is None:
            return Diagnosis(f"Is a comma missing before {here}? An alias is one word.", here.start, here.stop)
    return None


def _plain(lexemes: Sequence[Lexeme], i: int, description: str) -> Diagnosis:
    here = lexemes[i]
    if description:
        ending = "at the end of the query" if i == len(lexemes) - 1 else f"near {here}"
        return Diagnosis(f"{description} {ending}.", here.start, here.stop)
    behind = f" behind {lexemes[i - 1]}" if i > 0 else ""
    message = f"{here} cannot stand here{behind}. The clauses of a query: {_CLAUSES}."
    return Diagnosis(message, here.start, here.stop)
