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

    Where there is no store, the shell makes one and says so, and so does a script that begins with CREATE TABLE; any
    other is refused, for its store is probably misspelt. Statements run one after the other, each a transaction of its
    own; the first that fails ends the script. The shell has history and completion; .help
    tells its commands, which scripts may hold too, each on a line of its own.
    """
    place, path = _store_and_file(store, file)
    if path is not None and execute:
        raise UsageError("Give a script, or -e, not both.")
    scripts = [("-e", text) for text in execute or ()]
    if path is not None:
        scripts.append((path, _text_of(path)))
    if not scripts and not sys.stdin.isatty():
        scripts.append(("standard input", sys.stdin.read()))
    with _opened(place, settings, not scripts or _begins_a_store(scripts[0][1])) as db:
        if scripts:
            from viewkeeper.cli.scripts import run_script

            for name, text in scripts:
                if run_script(db, text, name, as_json):
                    break
        else:
            from viewkeeper.cli.shell import Shell

            Shell(db, as_json).run()


def _opened(place: str, settings: list[str] | None, create: bool) -> Database:
    """Open the store; one that is made is never made silently."""
    from viewkeeper.cli.output import say
    from viewkeeper.errors import StoreError

    try:
        return open_database(place, settings)
    except StoreError as error:
        if not create or error.code != "STORE_NOT_FOUND":
            raise
    db = open_database(place, settings, create=True)
    say(f"There was no store at {place}: made a new one.")
    return db


def _begins_a_store(script: str) -> bool:
    """Whether a script can be meant for a store that is not there yet: its first statement is CREATE TABLE."""
    from viewkeeper.statements.excerpt import pointing_into
    from viewkeeper.statements.lexer import tokenize

    with pointing_into(script):
        return [lexeme.text.upper() for lexeme in tokenize(script)[:2]] == ["CREATE", "TABLE"]


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
        raise InputError(
            "FILE_NOT_FOUND", f"There is no file {path}: check the path, or write -e before SQL."
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            "FILE_INVALID", f"{path} is not UTF-8: byte {error.start} is wrong. Save it as UTF-8."
        ) from None
    except OSError as error:
        raise InputError(
            "FILE_INVALID", f"{path} cannot be read: {error.strerror}. Name a file that this user may read."
        ) from None
