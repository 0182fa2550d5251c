"""The command ``viewkeeper``: its subcommands, and errors turned into sentences and exit statuses.

Status 0: done. 1: it could not be done, or a check found something; a sentence with a code stands on standard error.
2: the command was not understood. 130: interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from viewkeeper.cli import bench, demo, doctor, inspect, maintain, sql, transfer
from viewkeeper.cli.options import STATUS_INTERRUPTED
from viewkeeper.errors import ViewkeeperError

STATUS_FAILED = 1


class Commands(TyperGroup):
    """The subcommands, in the order in which they are told; what they raise becomes an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except ViewkeeperError as error:
            from viewkeeper.statements.excerpt import text_with_excerpt

            print(text_with_excerpt(error), file=sys.stderr)
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            raise typer.Exit(STATUS_INTERRUPTED) from None
        raise typer.Exit(STATUS_FAILED)


app = typer.Typer(
    name="viewkeeper",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    demo.demo,
    sql.sql,
    maintain.maintain,
    maintain.refresh,
    inspect.status,
    inspect.verify,
    inspect.explain,
    transfer.load,
    transfer.export,
    bench.bench,
    doctor.doctor,
):
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from viewkeeper import __version__

        print(f"viewkeeper {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """SQL materialised views over a key-value store, kept fresh from its transaction log.

    A command's first argument is the store, a folder; the variable VIEWKEEPER_STORE may name it instead.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command; the entry point of the installed script."""
    app(prog_name="viewkeeper")


if __name__ == "__main__":
    main()
