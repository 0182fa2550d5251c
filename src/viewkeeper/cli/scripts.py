"""Running SQL text statement by statement, with what each gives back printed and each error placed."""

from __future__ import annotations

from viewkeeper.cli.output import ProgressBar, print_result
from viewkeeper.database import Database
from viewkeeper.errors import ViewkeeperError
from viewkeeper.evaluation.result import Result
from viewkeeper.statements.excerpt import pointing_into
from viewkeeper.statements.model import SqlText
from viewkeeper.statements.parse import split_script


def run_script(db: Database, text: str, name: str, as_json: bool = False) -> None:
    """Run the statements of a script and print what each gives back.

    Args:
        db: an open store.
        text: the script.
        name: what errors call it.
        as_json: print results as JSON, one value a statement.

    Raises:
        ViewkeeperError: of the first statement that fails, which it names where there are several.
    """
    with pointing_into(text):
        pieces = split_script(text)
    for piece in pieces:
        try:
            result = run_statement(db, piece.text)
        except ViewkeeperError as error:
            raise (_located(error, piece, name) if len(pieces) > 1 else error) from None
        print_result(result, as_json, is_text(piece.text, result))


def run_statement(db: Database, statement: str) -> Result:
    """Run one statement, with a progress bar while a view is filled."""
    with ProgressBar("Filling the view") as bar:
        return db.sql(statement, progress=bar.epoch)


def is_text(statement: str, result: Result) -> bool:
    """Whether the rows of a statement's result are lines of a text: a plan or a definition."""
    first = statement.split(None, 1)[0].upper()
    return first in ("EXPLAIN", "SHOW") and result.columns in (("plan",), ("statement",))


def _located(error: ViewkeeperError, piece: SqlText, name: str) -> ViewkeeperError:
    """Return the error with the place of its statement: places in its message are counted within the statement."""
    message = f"{error.message} (In the statement at {piece.place} of {name}.)"
    located = type(error)(error.code, message, error.details)
    for note in getattr(error, "__notes__", ()):
        located.add_note(note)
    return located
