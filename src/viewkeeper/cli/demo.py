"""``viewkeeper demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_STORE_HELP = "The store's folder; if left out, what VIEWKEEPER_STORE names, else flights.vk in the current folder."


def demo(
    store: Annotated[Path | None, typer.Argument(metavar="STORE", help=_STORE_HELP, show_default=False)] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=365, help="Stop after so many days; the whole year if left out.", show_default=False),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Write lines, also where a screen could be drawn.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Remove the store of an earlier demo and start over.")] = False,
) -> None:
    """Play a year of real flights through live views.

    At the end each view is verified. Interrupted, the same command goes on where it was. Needs the extra demo.
    """
    from rich.console import Console

    from viewkeeper.demo.run import run_demo

    status = run_demo(store, days, Console(highlight=False), plain, fresh=fresh)
    if status:
        raise typer.Exit(status)
