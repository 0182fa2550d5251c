"""What the commands share: the argument STORE, the options ``--json`` and ``--set``, and opening the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from viewkeeper.database import Database
    from viewkeeper.settings import Settings

STATUS_INTERRUPTED = 130
STORE_VARIABLE = "VIEWKEEPER_STORE"
STORE_HELP = f"The store's folder. It may be left out where the variable {STORE_VARIABLE} names it."

_KINDS: dict[type, Callable[[str], Any]] = {int: int, float: float, str: str}

StoreArgument = Annotated[str | None, typer.Argument(metavar="STORE", help=STORE_HELP, show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting for this run, for example executor=spark; may be given several times. "
        "docs/settings.md lists them.",
        show_default=False,
    ),
]


class UsageError(typer.BadParameter):
    """A command that was not understood: it ends with status 2 and this sentence."""

    def format_message(self) -> str:
        """Return the sentence alone."""
        return self.message


def take_store(values: Sequence[str | None], least: int = 0, most: int | None = 0) -> tuple[str, list[str]]:
    """Tell the store from the other arguments of a command.

    The store comes first. With ``VIEWKEEPER_STORE`` set it may be left out: then a first argument that is no folder, or
    that the command cannot do without, is not the store.

    Args:
        values: the arguments as they came; None for those left out.
        least: how many the command needs beside the store.
        most: how many it takes beside the store; None: any number.

    Raises:
        UsageError: too few are left, or no store is named.
    """
    given = [value for value in values if value is not None]
    preset = os.environ.get(STORE_VARIABLE)
    fits = most is None or len(given) <= most
    if preset and fits and not (len(given) > least and os.path.isdir(given[0])):
        store, rest = preset, given
    elif given:
        store, rest = given[0], given[1:]
    else:
        raise UsageError(f"Name the store: its folder as the first argument, or in the variable {STORE_VARIABLE}.")
    if len(rest) < least:
        raise UsageError(f"An argument is missing, or the store is named neither first nor by {STORE_VARIABLE}.")
    return store, rest


def parse_settings(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Return what ``--set`` gave, each value in its setting's type.

    Args:
        pairs: texts of the form NAME=VALUE.

    Raises:
        UsageError: a text without ``=``.

    Example:
        >>> parse_settings(["executor=spark", "epoch_rows_max=1000"])
        {'executor': 'spark', 'epoch_rows_max': 1000}
    """
    from viewkeeper.settings import SETTINGS

    found: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, not {pair!r}.")
        kind = _KINDS[type(SETTINGS[name].default)] if name in SETTINGS else str
        try:
            found[name] = kind(value)
        except ValueError:
            # Kept as it is: Settings.of says what the setting takes.
            found[name] = value
    return found


def open_database(store: str, settings: Sequence[str] | None = None, create: bool = False) -> Database:
    """Open the store for a command.

    Args:
        store: its folder.
        settings: what ``--set`` gave.
        create: make it where there is none.
    """
    from viewkeeper.database import connect

    return connect(store, create=create, **parse_settings(settings))


def settings_of(pairs: Sequence[str] | None) -> Settings:
    """Return the settings that ``--set`` makes, for commands that open a store without a connection."""
    from viewkeeper.settings import Settings

    return Settings.of(parse_settings(pairs))
