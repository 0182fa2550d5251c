"""``viewkeeper sql``: statements from the command line, a file, a pipe, or typed into the shell."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from viewkeeper.cli.options import (
    STORE_VARIABLE,
    JsonOption,
    SettingsOption,
    StoreArgument,
    UsageError,
    open_database,
    take_store,
)

if TYPE_CHECKING:
    from viewkeeper.database import Database
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.evaluation.result import Result
    from viewkeeper.statements.model import SqlText

_FILE_HELP = "A script to run. A single argument is the script, not the store, if it is a file or ends in .sql."
_EXECUTE_HELP = "SQL to run; may be given several times."


def sql(
    store: StoreArgument = None,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=_FILE_HELP, show_default=False)] = None,
    execute: Annotated[
        list[str] | None, typer.Option("--execute", "-e", metavar="SQL", help=_EXECUTE_HELP, show_default=False)
    ] = None,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
) -> None:
    """Run SQL: from -e, a file or a pipe, else in a shell.

    The store is made where there is none. Statements run one after the other, each a transaction of its own; the first
    that fails ends the script. The shell has history, completion and .help.
    """
    place, path = _store_and_file(store, file)
    if path is not None and execute:
        raise UsageError("Give a script, or -e, not both.")
    scripts = [("-e", text) for text in execute or ()]
    if path is not None:
        scripts.append((path, _text_of(path)))
    if not scripts and not sys.stdin.isatty():
        scripts.append(("standard input", sys.stdin.read()))
    with open_database(place, settings, create=True) as db:
        if scripts:
            for name, text in scripts:
                run_script(db, text, name, as_json)
        else:
            from viewkeeper.cli.shell import Shell

            Shell(db, as_json).run()


def run_script(db: Database, text: str, name: str, as_json: bool = False, rows_max: int | None = None) -> None:
    """Run the statements of a script and print what each gives back.

    Args:
        db: an open store.
        text: the script.
        name: what errors call it.
        as_json: print results as JSON, one value a statement.
        rows_max: print at most so many rows of a table; None: all.

    Raises:
        ViewkeeperError: of the first statement that fails, which it names where there are several.
    """
    from viewkeeper.cli.output import print_result
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.statements.parse import split_script

    pieces = split_script(text)
    for piece in pieces:
        try:
            result = run_statement(db, piece.text)
        except ViewkeeperError as error:
            raise (_located(error, piece, name) if len(pieces) > 1 else error) from None
        print_result(result, as_json, is_text(piece.text, result), rows_max)


def run_statement(db: Database, statement: str) -> Result:
    """Run one statement, with a progress bar while a view is filled."""
    from viewkeeper.cli.output import ProgressBar

    with ProgressBar("Filling the view") as bar:
        return db.sql(statement, progress=bar.epoch)


def is_text(statement: str, result: Result) -> bool:
    """Whether the rows of a statement's result are lines of a text: a plan or a definition."""
    first = statement.split(None, 1)[0].upper()
    return first in ("EXPLAIN", "SHOW") and result.columns in (("plan",), ("statement",))


def _located(error: ViewkeeperError, piece: SqlText, name: str) -> ViewkeeperError:
    """Return the error with the place of its statement: places in its message are counted within the statement."""
    message = f"{error.message} (In the statement at {piece.place} of {name}.)"
    return type(error)(error.code, message, error.details)


def _store_and_file(store: str | None, file: str | None) -> tuple[str, str | None]:
    """Tell the store, a folder, from the script, a file."""
    if file is None and store is not None:
        if os.path.isfile(store) or store.endswith(".sql"):
            preset = os.environ.get(STORE_VARIABLE)
            if not preset:
                raise UsageError(f"{store} is a script: name the store before it, or in {STORE_VARIABLE}.")
            return preset, store
        return store, None
    place, _ = take_store([store])
    return place, file


def _text_of(path: str) -> str:
    from viewkeeper.errors import InputError

    try:
        with open(path, encoding="utf-8-sig") as script:
            return script.read()
    except FileNotFoundError:
        raise InputError("FILE_NOT_FOUND", f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise InputError("FILE_INVALID", f"{path} is not UTF-8: byte {error.start} is wrong.") from None
    except OSError as error:
        raise InputError("FILE_INVALID", f"{path} cannot be read: {error.strerror}.") from None
