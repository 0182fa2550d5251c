"""A cursor over the lexemes of one statement: what every statement's parser reads from.

Expected words are written as one string, for example ``cursor.accept("IF NOT EXISTS")``; symbols count as words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.statements.lexer import Lexeme, place_details
from viewkeeper.statements.model import Place, Places, SqlText

QUERY_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]*[A-Za-z_][A-Za-z0-9_]*")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


class Origin(TypedDict):
    """The fields that every statement begins with."""

    sql: str
    place: Place


class Cursor:
    """Reads the lexemes of one statement from left to right.

    Args:
        sql: the user's whole text, a script perhaps.
        lexemes: those of this statement, at least one.
        places: turns offsets into ``sql`` into places.
    """

    def __init__(self, sql: str, lexemes: Sequence[Lexeme], places: Places) -> None:
        self._sql = sql
        self._lexemes = lexemes
        self._places = places
        self._position = 0
        self._first = 0
        stop = lexemes[-1].stop
        self._end = Lexeme("end", "", stop, stop)

    @property
    def origin(self) -> Origin:
        """The text and the place of the statement."""
        start, stop = self._lexemes[self._first].start, self._lexemes[-1].stop
        return {"sql": self._sql[start:stop], "place": self._places.at(start)}

    def begin_inner(self) -> None:
        """Let the statement begin here: what stands before (EXPLAIN) does not belong to it."""
        self._first = self._position

    # Looking and moving

    def peek(self, ahead: int = 0) -> Lexeme:
        """Return the lexeme ``ahead`` of the next one, without moving."""
        index = self._position + ahead
        return self._lexemes[index] if index < len(self._lexemes) else self._end

    def take(self) -> Lexeme:
        """Return the next lexeme and move behind it."""
        lexeme = self.peek()
        self._position += 1
        return lexeme

    def at(self, words: str, ahead: int = 0) -> bool:
        """Return whether ``words`` come next."""
        return all(self.peek(ahead + i).is_word(word) for i, word in enumerate(words.split()))

    def at_any(self, words: Iterable[str], ahead: int = 0) -> bool:
        """Return whether one of ``words`` comes next."""
        return any(self.at(word, ahead) for word in words)

    def at_end(self) -> bool:
        """Return whether the statement is read."""
        return self.peek().kind == "end"

    def accept(self, words: str) -> bool:
        """Move behind ``words`` and return True where they come next; else stay and return False."""
        if not self.at(words):
            return False
        self._position += len(words.split())
        return True

    def accept_any(self, words: Iterable[str]) -> str | None:
        """Move behind the first of ``words`` that comes next and return it, None where none does."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, words: str) -> None:
        """Move behind ``words``.

        Raises:
            SqlError: SYNTAX_ERROR, where something else comes next.
        """
        for i, word in enumerate(words.split()):
            if not self.accept(word):
                rest = " ".join(words.split()[i:])
                raise self.unexpected(rest, (word,))

    def expect_any(self, words: Sequence[str]) -> str:
        """Move behind one of ``words`` and return it.

        Raises:
            SqlError: SYNTAX_ERROR, where something else comes next.
        """
        found = self.accept_any(words)
        if found is None:
            raise self.unexpected(" or ".join(words), words)
        return found

    def expect_end(self, also: Sequence[str] = ()) -> None:
        """Check that the statement ends here.

        Args:
            also: words that might have come instead, for suggestions.

        Raises:
            SqlError: SYNTAX_ERROR, where something is left.
        """
        if not self.at_end():
            raise self.unexpected(" or ".join((*also, "the end of the statement")), also)

    # Names and values

    def name(self, what: str) -> str:
        """Read a name of one part.

        Args:
            what: what it names, for errors: "the name of a table".

        Raises:
            SqlError: SYNTAX_ERROR, where there is none.
            UnsupportedSql: QUALIFIED_NAME_NOT_SUPPORTED for ``db.t``.
        """
        start = self.peek()
        name = self._name_part(what)
        if self.at("."):
            message = (
                f"'{name}.…' has several parts, but a store is one namespace: write {what} as one name, "
                f"in backticks where it holds a dot."
            )
            raise self.refusal("QUALIFIED_NAME_NOT_SUPPORTED", message, start)
        return name

    def column_name(self, qualifiers: Iterable[str]) -> str:
        """Read the name of a column to assign to, perhaps behind the table's name or alias.

        Args:
            qualifiers: names that may stand before it.

        Raises:
            UnsupportedSql: NESTED_ASSIGNMENT_NOT_SUPPORTED for a field of a STRUCT.
        """
        start = self.peek()
        parts = [self._name_part("a column")]
        while self.accept("."):
            parts.append(self._name_part("a column"))
        if len(parts) > 1 and parts[0].lower() in {qualifier.lower() for qualifier in qualifiers}:
            del parts[0]
        if len(parts) > 1 or self.at("["):
            message = f"Only whole columns can be assigned: assign a new value to '{parts[0]}', not to a part of it."
            raise self.refusal("NESTED_ASSIGNMENT_NOT_SUPPORTED", message, start)
        return parts[0]

    def name_list(self, what: str) -> tuple[str, ...]:
        """Read names, at least one, in parentheses."""
        self.expect("(")
        names = [self.name(what)]
        while self.accept(","):
            names.append(self.name(what))
        self.close_list()
        return tuple(names)

    def close_list(self) -> None:
        """Move behind the parenthesis that ends a list."""
        if not self.accept(")"):
            raise self.unexpected("',' or ')'")

    def alias(self, before: Sequence[str]) -> str | None:
        """Read ``[AS] alias``; None where one of the words ``before`` or the end comes first."""
        if self.accept("AS"):
            return self.name("an alias")
        lexeme = self.peek()
        if lexeme.kind in ("word", "quoted") and not self.at_any(before):
            return self.name("an alias")
        return None

    def string(self, what: str) -> str:
        """Read a string in single or double quotes and return its value."""
        if self.peek().kind != "string":
            raise self.unexpected(f"{what} in quotes")
        return self.take().text

    def integer(self, what: str) -> int:
        """Read a whole number."""
        lexeme = self.peek()
        if lexeme.kind != "number" or not lexeme.text.isdecimal():
            raise self.unexpected(what)
        return int(self.take().text)

    def _name_part(self, what: str) -> str:
        lexeme = self.peek()
        if lexeme.kind == "string" and self._sql[lexeme.start] == '"':
            raise self.unexpected(what, hint="Double quotes make a string; names go in backticks.")
        if lexeme.kind == "word" and not _PLAIN_NAME.fullmatch(lexeme.text):
            hint = f"Names of other characters than A-Z, 0-9 and _ go in backticks: `{lexeme.text}`."
            raise self.unexpected(what, hint=hint)
        if lexeme.kind not in ("word", "quoted") or not lexeme.text:
            raise self.unexpected(what)
        following = self.peek(1)
        if lexeme.kind == "word" and following.is_word("-") and following.start == lexeme.stop:
            self.take()
            raise self.unexpected(f"a name without '-' after '{lexeme.text}'", hint="Put such names in backticks.")
        return self.take().text

    # Pieces of SQL that later stages parse

    def text(self, what: str, ends: Callable[[], bool] = lambda: False) -> SqlText:
        """Read the SQL up to the place, outside brackets, where it ends, and return it as written.

        Args:
            what: what it is, for errors: "a value".
            ends: tells whether it ends before the next lexeme; a closing bracket and the statement's end always
                end it.

        Raises:
            SqlError: SYNTAX_ERROR, where it is empty or a bracket is not closed.
        """
        first = self._position
        open_brackets: list[Lexeme] = []
        while not self.at_end():
            lexeme = self.peek()
            if not open_brackets and (ends() or (lexeme.kind == "symbol" and lexeme.text in _BRACKETS.values())):
                break
            self._match_bracket(lexeme, open_brackets)
            self.take()
        if open_brackets:
            expected = _BRACKETS[open_brackets[-1].text]
            raise self.unexpected(f"'{expected}' for the '{open_brackets[-1].text}' at {self._at(open_brackets[-1])}")
        if self._position == first:
            raise self.unexpected(what)
        return self.text_since(first)

    def text_since(self, first: int) -> SqlText:
        """Return the SQL from the lexeme at ``first`` to the last one read."""
        start, stop = self._lexemes[first].start, self._lexemes[self._position - 1].stop
        return SqlText(self._sql[start:stop], self._places.at(start))

    @property
    def position(self) -> int:
        """The index of the next lexeme."""
        return self._position

    def query(self) -> SqlText:
        """Read the rest of the statement as a query.

        Raises:
            SqlError: SYNTAX_ERROR, where no query begins here.
        """
        if not self.at_any(QUERY_STARTS):
            raise self.unexpected("a query", QUERY_STARTS[:-1])
        query = self.text("a query")
        self.expect_end()
        return query

    def _match_bracket(self, lexeme: Lexeme, open_brackets: list[Lexeme]) -> None:
        if lexeme.kind != "symbol":
            return
        if lexeme.text in _BRACKETS:
            open_brackets.append(lexeme)
        elif lexeme.text in _BRACKETS.values():
            expected = _BRACKETS[open_brackets.pop().text]
            if lexeme.text != expected:
                raise self.unexpected(f"'{expected}'")

    # Errors

    def unexpected(self, expected: str, words: Iterable[str] = (), hint: str = "") -> SqlError:
        """Return the error that something else than ``expected`` comes next.

        Args:
            expected: what may stand here.
            words: words among it; the one that resembles what was found is suggested.
            hint: a sentence on what to write instead.
        """
        found = self.peek()
        suggestion = self._suggestion(found, words)
        message = f"At {self._at(found)}: expected {expected}, found {found}."
        if suggestion:
            message += f" Did you mean {suggestion}?"
        if hint:
            message += f" {hint}"
        details = place_details(self._sql, self._places.at(found.start))
        return SqlError("SYNTAX_ERROR", message, {**details, "suggestion": suggestion} if suggestion else details)

    def error(self, code: str, message: str, at: Lexeme) -> SqlError:
        """Return an error with the place of ``at``."""
        return SqlError(code, f"At {self._at(at)}: {message}", self._details(at))

    def refusal(self, code: str, message: str, at: Lexeme | None = None) -> UnsupportedSql:
        """Return the refusal of SQL that we do not take, with the place of ``at``, by default the next lexeme."""
        at = at or self.peek()
        return UnsupportedSql(code, f"At {self._at(at)}: {message}", self._details(at))

    def _details(self, at: Lexeme) -> dict[str, object]:
        return place_details(self._sql, self._places.at(at.start))

    def _at(self, lexeme: Lexeme) -> Place:
        return self._places.at(lexeme.start)

    @staticmethod
    def _suggestion(found: Lexeme, words: Iterable[str]) -> str | None:
        if found.kind != "word":
            return None
        singles = {word: None for phrase in words for word in phrase.split()}
        close = difflib.get_close_matches(found.text.upper(), singles, n=1, cutoff=0.7)
        return close[0] if close and close[0] != found.text.upper() else None
