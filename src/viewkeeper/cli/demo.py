"""``viewkeeper demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_STORE_HELP = "The folder to put the store in; one is chosen if it is left out."
_DAYS_HELP = "Stop after so many days of the year."


def demo(
    store: Annotated[Path | None, typer.Argument(metavar="STORE", help=_STORE_HELP, show_default=False)] = None,
    days: Annotated[int | None, typer.Option(min=1, max=365, help=_DAYS_HELP, show_default="the whole year")] = None,
) -> None:
    """Play a year of real flights through six live views, and verify each.

    Interrupted, the same command goes on where it was. Needs the extra demo.
    """
    from viewkeeper.cli.output import console
    from viewkeeper.demo.run import run_demo

    run_demo(store, days, console())
