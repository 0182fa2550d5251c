"""The arrows between packages hold, and the light parts load nothing heavy."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.project import ROOT, SOURCE, name_of, python_files

# Where each engine may be imported; an empty tuple means nowhere.
HOMES = {
    "pyspark": ("executors/spark/",),
    "py4j": ("executors/spark/",),
    "lmdb": ("adapters/lmdb/",),
    "sqlglot": ("plan/", "statements/"),
    "pandas": (),
    "polars": (),
}
ENTRANCES = ("time", "random", "secrets", "uuid")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a command in the project's root, with the package importable."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@cache
def imports_at_run_time(path: Path) -> list[tuple[str, int]]:
    """Return (module, line) of all imports in a file but those that only a type checker sees."""
    found: list[tuple[str, int]] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node.lineno))
        waiting.extend(ast.iter_child_nodes(node))
    return found


@pytest.mark.slow
def test_the_arrows_hold() -> None:
    linted = run("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))")
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("engine", HOMES)
def test_engines_stay_at_home(engine: str) -> None:
    found = [
        f"{name_of(path)}:{line}"
        for path in python_files("src")
        for module, line in imports_at_run_time(path)
        if module.partition(".")[0] == engine and not path.relative_to(SOURCE).as_posix().startswith(HOMES[engine])
    ]
    assert found == []


def test_time_and_chance_enter_by_one_door() -> None:
    found = [
        f"{name_of(path)}:{line}: {module}"
        for path in python_files("src")
        for module, line in imports_at_run_time(path)
        if module in ENTRANCES and path != SOURCE / "clock.py"
    ]
    assert found == []


@pytest.mark.slow
def test_importing_the_package_loads_no_engine() -> None:
    loaded = run("-c", "import sys, viewkeeper; print(*{'pyspark', 'py4j', 'pandas', 'typer'} & sys.modules.keys())")
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.split() == []
