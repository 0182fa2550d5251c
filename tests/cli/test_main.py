"""Errors become sentences and exit statuses; help is complete; starting is light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tests.cli.command import COMMAND, environment, run
from tools.docs_cli import command_page
from viewkeeper import __version__
from viewkeeper.cli.main import app

GROUP: Any = typer.main.get_command(app)
HEAVY = {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "lmdb", "sqlglot", "prompt_toolkit", "msgspec"}


def test_alone_it_prints_help() -> None:
    result = run()
    assert result.exit_code == 0
    assert all(name in result.stdout for name in GROUP.commands)


def test_version() -> None:
    assert run("--version").stdout == f"viewkeeper {__version__}\n"


def test_an_unknown_command_gets_a_suggestion() -> None:
    result = run("refesh")
    assert result.exit_code == 2
    assert "No such command 'refesh'. Did you mean 'refresh'?" in result.stderr


def test_a_store_must_be_named() -> None:
    result = run("status")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Error: Name the store: its folder as the first argument, or in the variable VIEWKEEPER_STORE.\n"
    )


def test_an_error_is_one_sentence_with_a_code(tmp_path: Path) -> None:
    result = run("status", tmp_path / "none.vk")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("[STORE_NOT_FOUND] ")
    assert result.stderr.count("\n") == 1


def test_settings_are_checked(store: Path) -> None:
    assert run("status", store, "--set", "executor").exit_code == 2
    result = run("status", store, "--set", "executr=spark")
    assert (result.exit_code, result.stderr) == (
        1,
        "[UNKNOWN_SETTING] There is no setting 'executr'. Did you mean 'executor'?\n",
    )
    assert "[INVALID_SETTING]" in run("status", store, "--set", "epoch_rows_max=many").stderr


@pytest.mark.parametrize("name", GROUP.commands)
def test_help_is_complete(name: str) -> None:
    command = GROUP.commands[name]
    summary = command.help.partition("\n")[0]
    assert summary.endswith(".")
    assert f"  {summary}\n" in run().stdout, "the summary does not fit the list of commands"
    for parameter in command.params:
        assert parameter.help, f"{name} {parameter.name} has no help"
        assert parameter.help.rstrip().endswith("."), parameter.help


def test_the_page_of_commands_has_them_all() -> None:
    page = command_page()
    for name in GROUP.commands:
        assert f"## viewkeeper {name}\n" in page


@pytest.mark.slow
def test_starting_loads_nothing_heavy() -> None:
    code = "import sys, viewkeeper.cli.main; print(*{m.partition('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert HEAVY & set(loaded.stdout.split()) == set()


@pytest.mark.slow
def test_it_runs_as_a_process(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("somebody's folder")
    process = subprocess.run([*COMMAND, "status", tmp_path], env=environment(), capture_output=True, text=True)
    assert process.returncode == 1
    assert process.stderr.startswith("[NOT_A_STORE] ")
