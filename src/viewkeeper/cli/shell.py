"""The SQL shell: reads statements over as many lines as they take, runs them, shows results and errors, goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from viewkeeper.cli.commands import DOT_COMMANDS, DotCommands
from viewkeeper.cli.completion import Completions
from viewkeeper.cli.output import duration, print_result, say
from viewkeeper.cli.scripts import is_complete, is_text, run_statement
from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.errors import ViewkeeperError
from viewkeeper.statements.excerpt import pointing_into, text_with_excerpt
from viewkeeper.statements.parse import split_script

if TYPE_CHECKING:
    from viewkeeper.database import Database

PROMPT, CONTINUATION = "viewkeeper> ", "       ...> "
ROWS_MAX = 1_000


class Shell:
    """A conversation with a store.

    Args:
        db: the open store.
        as_json: print results as JSON.
        read: returns the next input, for tests; the terminal by default.
    """

    def __init__(self, db: Database, as_json: bool = False, read: Callable[[], str] | None = None) -> None:
        self._db = db
        self._as_json = as_json
        self._completions = Completions(db, [name for name, _, _ in DOT_COMMANDS])
        self._commands = DotCommands(db, as_json)
        self._read = read or self._terminal()

    def run(self) -> None:
        """Read, run and print until the end is asked for."""
        say(f"{self._db.status()['store']}: SQL ends with a semicolon; .help tells the rest.")
        while not self._commands.is_over:
            try:
                self.take(self._read())
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

    def take(self, text: str) -> None:
        """Run one input: statements, or a command that begins with a point."""
        stripped = text.strip()
        try:
            if stripped.startswith("."):
                self._commands.run(stripped)
            else:
                self._statements(text)
        except ViewkeeperError as error:
            say(text_with_excerpt(error))
        except KeyboardInterrupt:
            say("Interrupted.")

    def _statements(self, text: str) -> None:
        with pointing_into(text):
            pieces = split_script(text)
        for piece in pieces:
            started = SYSTEM_CLOCK.monotonic_seconds()
            try:
                result = run_statement(self._db, piece.text)
            finally:
                self._completions.forget()
            print_result(result, self._as_json, is_text(piece.text, result), ROWS_MAX)
            by = f" by {result.executor}" if result.columns else ""
            say(f"{duration(SYSTEM_CLOCK.monotonic_seconds() - started)}{by}")

    def _terminal(self) -> Callable[[], str]:
        session: PromptSession[str] = PromptSession(
            history=history(),
            lexer=PygmentsLexer(SqlLexer),
            completer=self._completions,
            complete_while_typing=False,
            key_bindings=_key_bindings(),
            multiline=True,
            prompt_continuation=CONTINUATION,
            enable_history_search=True,
        )
        return lambda: session.prompt(PROMPT)


def history() -> History:
    """Return what was typed in earlier shells: a file of this user, or nothing where it cannot be written."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    folder = Path(home) / "viewkeeper"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "history"
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: Any) -> None:
        """Run what can be run, else begin a new line."""
        buffer = event.current_buffer
        document: Document = buffer.document
        if not document.text_after_cursor.strip() and is_complete(document.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
