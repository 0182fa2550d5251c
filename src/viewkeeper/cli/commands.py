"""The commands that begin with a point: what the shell and scripts can do besides SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from viewkeeper.cli.inspect import print_status, quoted
from viewkeeper.cli.output import print_result, print_table, say
from viewkeeper.errors import InputError

if TYPE_CHECKING:
    from viewkeeper.database import Database

# Command, what follows it, what it does; the methods have their names.
DOT_COMMANDS = (
    (".help", "", "Show this."),
    (".tables", "", "List the tables."),
    (".views", "", "List the views, their state and lag."),
    (".schema", "NAME", "Show the CREATE statement of a table or view; of all without NAME."),
    (".status", "", "Show what there is, how fresh, and who maintains it."),
    (".quit", "", "Leave; so does Ctrl-D."),
)


class DotCommands:
    """The commands over a store.

    Args:
        db: the open store.
        as_json: print results as JSON.
    """

    def __init__(self, db: Database, as_json: bool = False) -> None:
        self._db = db
        self._as_json = as_json
        self.is_over = False
        """Whether the end was asked for."""

    def run(self, text: str) -> None:
        """Run one command.

        Raises:
            InputError: ``COMMAND_NOT_FOUND``, or as reading and showing raise.
        """
        name, _, rest = text.strip().rstrip(";").partition(" ")
        if name not in {command for command, _, _ in DOT_COMMANDS}:
            raise InputError("COMMAND_NOT_FOUND", f"There is no command {name}: .help lists them.", {"name": name})
        method: Callable[[str], None] = getattr(self, f"_{name[1:]}")
        method(rest.strip())

    def _help(self, rest: str) -> None:
        for command, argument, meaning in DOT_COMMANDS:
            print(f"{command + ' ' + argument:<14} {meaning}")
        print("\nEverything else is SQL and ends with a semicolon; it may take several lines.")

    def _tables(self, rest: str) -> None:
        print_result(self._db.sql("SHOW TABLES"), self._as_json)

    def _views(self, rest: str) -> None:
        found = self._db.status()
        names = ("name", "state", "refresh", "rows", "rows_behind")
        print_table([n.replace("_", " ") for n in names], [[v[n] for n in names] for v in found["views"]])
        if found["hint"]:
            say(found["hint"])

    def _schema(self, rest: str) -> None:
        for name in [rest.strip("`")] if rest else [*self._db.tables(), *self._db.views()]:
            result = self._db.sql(f"SHOW CREATE {quoted(name)}")
            print("\n".join(str(row[0]) for row in result.tuples()).rstrip(";") + ";")

    def _status(self, rest: str) -> None:
        print_status(self._db.status())

    def _quit(self, rest: str) -> None:
        self.is_over = True
