"""Running a script piece by piece, with what each gives back printed and each error placed.

The pieces are statements, and commands that begin with a point, each a line of its own between statements.
"""

from __future__ import annotations

import re

from viewkeeper.cli.commands import DotCommands
from viewkeeper.cli.output import ProgressBar, print_result
from viewkeeper.database import Database
from viewkeeper.errors import SqlError, ViewkeeperError
from viewkeeper.evaluation.result import Result
from viewkeeper.statements.excerpt import pointing_into
from viewkeeper.statements.lexer import tokenize
from viewkeeper.statements.model import Places, SqlText
from viewkeeper.statements.parse import split_script

_COMMAND = re.compile(r"^[ \t]*(\.[A-Za-z][^\n]*)", re.MULTILINE)


def run_script(db: Database, text: str, name: str, as_json: bool = False) -> bool:
    """Run the statements and commands of a script and print what each gives back.

    Args:
        db: an open store.
        text: the script.
        name: what errors call it.
        as_json: print results as JSON, one value a statement.

    Returns:
        Whether ``.quit`` has ended it.

    Raises:
        ViewkeeperError: of the first piece that fails, which it names where there are several.
    """
    commands = DotCommands(db, as_json)
    with pointing_into(text):
        pieces = split_pieces(text)
    for piece in pieces:
        try:
            if piece.text.startswith("."):
                commands.run(piece.text)
                if commands.is_over:
                    return True
                continue
            result = run_statement(db, piece.text)
        except ViewkeeperError as error:
            raise (_located(error, piece, name) if len(pieces) > 1 else error) from None
        print_result(result, as_json, is_text(piece.text, result))
    return False


def split_pieces(text: str) -> list[SqlText]:
    r"""Return the statements and the commands of a script, each with its place.

    Example:
        >>> [piece.text for piece in split_pieces(".tables\nSELECT\n.5; -- half\n.quit\nSELECT 1")]
        ['.tables', 'SELECT\n.5', '.quit', 'SELECT 1']
    """
    places = Places(text)
    commands, statements, start = [], text, 0
    for found in _COMMAND.finditer(text):
        if is_complete(text[start : found.start()]):
            commands.append(SqlText(found[1].rstrip(), places.at(found.start(1))))
            start = found.end()
            # Blanks, so that what follows keeps its place.
            statements = statements[: found.start()] + " " * len(found[0]) + statements[start:]
    return sorted([*commands, *split_script(statements)], key=lambda piece: piece.place.offset)


def is_complete(text: str) -> bool:
    """Whether an input can be run, or goes on in the next line.

    A command that begins with a point is complete, and so is SQL whose last word is a semicolon; one inside an open
    string, quoted name or comment does not count.

    Example:
        >>> [is_complete(t) for t in (".help", "SELECT 1", "SELECT 1;", "SELECT ';", "SELECT 1; -- all")]
        [True, False, True, False, True]
    """
    if not text.strip() or text.lstrip().startswith("."):
        return True
    try:
        lexemes = tokenize(text)
    except SqlError as error:
        return "unclosed" not in error.details
    return not lexemes or lexemes[-1].is_word(";")


def run_statement(db: Database, statement: str) -> Result:
    """Run one statement, with a progress bar while a view is filled."""
    with ProgressBar("Filling the view") as bar:
        return db.sql(statement, progress=bar.epoch)


def is_text(statement: str, result: Result) -> bool:
    """Whether the rows of a statement's result are lines of a text: a plan or a definition."""
    first = statement.split(None, 1)[0].upper()
    return first in ("EXPLAIN", "SHOW") and result.columns in (("plan",), ("statement",))


def _located(error: ViewkeeperError, piece: SqlText, name: str) -> ViewkeeperError:
    """Return the error with the place of its piece: places in its message are counted within the piece."""
    what = "command" if piece.text.startswith(".") else "statement"
    message = f"{error.message} (In the {what} at {piece.place} of {name}.)"
    located = type(error)(error.code, message, error.details)
    for note in getattr(error, "__notes__", ()):
        located.add_note(note)
    return located
