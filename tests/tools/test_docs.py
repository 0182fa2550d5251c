"""The generated pages say what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import typer.main

from tests.architecture.project import SOURCE
from tools.docs_cli import page_of
from tools.docs_errors import Entry, entries_of, error_page

MODULE = """
def get(name):
    message = f"There is no table {name!r} in {self.store.path}."
    raise InputError("TABLE_NOT_FOUND", message, {"table": name})

def plan(node):
    raise context.refusal("WINDOW_NOT_YET", node)  # told by limitations.md
    raise context.error("UNRESOLVED_COLUMN", "There is no column " + name + ".", node)
    raise StoreError("DISK_FULL", "The disk is full: " + "make room.")
    raise InputError(code, "not a literal")
    raise ValueError("LOOKS_LIKE_A_CODE")
"""


def test_errors_are_found_with_kind_and_message(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    assert sorted(entries_of(tmp_path / "module.py", tmp_path)) == [
        Entry("DISK_FULL", "StoreError", "The disk is full: make room.", "module.py"),
        Entry("TABLE_NOT_FOUND", "InputError", "There is no table {name} in {self.store.path}.", "module.py"),
        Entry("UNRESOLVED_COLUMN", "SqlError", "There is no column {name}.", "module.py"),
    ]


def test_the_page_of_errors_knows_our_own() -> None:
    assert "| `JAVA_NOT_FOUND` | `ViewkeeperError` | Spark needs Java 17 or 21" in error_page(SOURCE)


def test_commands_are_told_with_arguments_options_and_defaults() -> None:
    app = typer.Typer(help="Views.")

    @app.command()
    def verify(
        store: Annotated[str, typer.Argument(help="The store.")],
        days: Annotated[int, typer.Option(help="How many | days.")] = 7,
        repair: Annotated[bool, typer.Option("--repair", help="Put it right.")] = False,
    ) -> None:
        """Compare a view with its query."""

    @app.command(hidden=True)
    def secret() -> None:
        """Not for users."""

    page = page_of(typer.main.get_command(app), "viewkeeper")
    assert "## viewkeeper verify\n\n    viewkeeper verify [OPTIONS] STORE\n\nCompare a view with its query.\n" in page
    assert "| `STORE` |  | The store. |" in page
    assert "| `--days` | `7` | How many \\| days. |" in page
    assert "| `--repair` |  | Put it right. |" in page
    assert "secret" not in page
