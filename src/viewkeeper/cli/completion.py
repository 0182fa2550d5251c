"""Completion in the SQL shell: keywords, commands, names of tables and views, and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from viewkeeper.cli.inspect import quoted
from viewkeeper.cli.relations import schema_of
from viewkeeper.errors import ViewkeeperError

if TYPE_CHECKING:
    from viewkeeper.database import Database

KEYWORDS = (
    "ADD", "ALL", "ALTER", "ANALYZE", "AND", "ANY", "AS", "ASC", "AUTO", "BETWEEN", "BIGINT", "BINARY", "BOOLEAN",
    "BY", "CASCADE", "CASE", "CAST", "COALESCE", "COLUMN", "COMMENT", "CONTINUOUS", "COUNT", "CREATE", "DATA", "DATE",
    "DAYS", "DECIMAL", "DECISIONS", "DEFAULT", "DELETE", "DEMAND", "DESC", "DESCRIBE", "DISTINCT", "DOUBLE", "DROP",
    "ELSE", "END", "EVERY", "EXISTS", "EXPLAIN", "EXTENDED", "FALSE", "FILTER", "FLOAT", "FROM", "FULL", "GROUP",
    "HAVING", "HOURS", "IF", "IN", "INCREMENTAL", "INNER", "INSERT", "INT", "INTERVAL", "INTO", "IS", "JOIN", "KEY",
    "LEFT", "LIKE", "LIMIT", "MATCHED", "MATERIALIZED", "MAX", "MERGE", "MIN", "MINUTES", "NO", "NOT", "NULL", "ON",
    "OR", "ORDER", "POLICY", "PRIMARY", "REFRESH", "RENAME", "REPAIR", "REPLACE", "RESUME", "SCHEDULE", "SECONDS",
    "SELECT", "SET", "SHOW", "SMALLINT", "STRING", "SUM", "SUSPEND", "TABLE", "TABLES", "THEN", "TIMESTAMP",
    "TIMESTAMP_NTZ", "TINYINT", "TO", "TRUE", "TRUNCATE", "UNION", "UPDATE", "USING", "VALUES", "VERIFY", "VIEW",
    "VIEWS", "WHEN", "WHERE", "WITH",
)  # fmt: skip
_WORD = re.compile(r"(?:(`[^`]*`|\w+)\.)?(`[^`]*|\w*)$")
_PLAIN = re.compile(r"[^\W\d]\w*")


class Completions(Completer):
    """Offers what may be meant by the word before the cursor.

    Args:
        db: the open store, whose names are looked up when they are first needed.
        dot_commands: the shell's own commands.
    """

    def __init__(self, db: Database, dot_commands: Sequence[str]) -> None:
        self._db = db
        self._dot_commands = dot_commands
        self._columns: dict[str, tuple[str, ...]] | None = None

    def forget(self) -> None:
        """Look the names up again: a statement may have changed them."""
        self._columns = None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions of the word before the cursor."""
        text = document.text_before_cursor
        if text.lstrip().startswith(".") and " " not in text.strip():
            word = text.lstrip()
            yield from _matching(word, self._dot_commands, "command")
            return
        match = _WORD.search(text)
        if match is None:
            return
        owner, word = match.group(1), match.group(2)
        if owner is not None:
            yield from _matching(word, self._columns_of(owner.strip("`")), "column")
        elif word:
            yield from self._names(word)
            yield from _matching(word, KEYWORDS, "")

    def _names(self, word: str) -> Iterator[Completion]:
        yield from _matching(word, sorted(self._known), "name")
        columns = {column for columns in self._known.values() for column in columns}
        yield from _matching(word, sorted(columns), "column")

    def _columns_of(self, owner: str) -> Sequence[str]:
        return next((columns for name, columns in self._known.items() if name.lower() == owner.lower()), ())

    @property
    def _known(self) -> dict[str, tuple[str, ...]]:
        if self._columns is None:
            self._columns = {name: self._look_up(name) for name in [*self._db.tables(), *self._db.views()]}
        return self._columns

    def _look_up(self, name: str) -> tuple[str, ...]:
        try:
            return schema_of(self._db, name).names
        except ViewkeeperError:
            # A view that is not filled yet, or has just been dropped elsewhere: its name is all there is.
            return ()


def _matching(word: str, names: Iterable[str], kind: str) -> Iterator[Completion]:
    """Yield the names that begin as ``word`` does; keywords in the case in which it is typed."""
    typed = word.removeprefix("`").lower()
    for name in names:
        if not name.lower().startswith(typed):
            continue
        if kind == "":
            text = name.lower() if word.islower() else name
        elif kind == "command" or (_PLAIN.fullmatch(name) and not word.startswith("`")):
            text = name
        else:
            text = quoted(name)
        yield Completion(text, start_position=-len(word), display_meta=kind)
