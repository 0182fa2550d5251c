"""``pip install .``: the wheel has all that the package needs, and gives a working ``viewkeeper`` command."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.docs.test_readme import README, promised, snippets

pytestmark = pytest.mark.slow

WAIT_SECONDS = 120
SOURCE = ROOT / "src" / "viewkeeper"


def run(*command: object, folder: Path) -> str:
    """Run a command that knows nothing of this checkout; it must succeed; return what it prints."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIEWKEEPER"))}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=variables, capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of(package: Path) -> set[Path]:
    return {path.relative_to(package) for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of commands of a new environment with the wheel; what the wheel needs is this environment's."""
    folder = tmp_path_factory.mktemp("install")
    pip = [sys.executable, "-m", "pip"]
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT, folder=folder)
    (wheel,) = folder.glob("viewkeeper-*.whl")
    venv.create(folder / "new", with_pip=False)
    python = folder / "new" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, folder=folder)
    # A path file shows modules, and reads no path files there: the editable install of this checkout stays unseen.
    (site,) = (folder / "new").glob("lib/python*/site-packages")
    (site / "needs.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python.parent


def test_the_installed_command_and_the_first_session_work(commands: Path, tmp_path: Path) -> None:
    where = run(commands / "python", "-c", "import viewkeeper; print(viewkeeper.__file__)", folder=tmp_path)
    package = Path(where.strip()).parent
    assert package.is_relative_to(commands.parent)
    assert files_of(package) == files_of(SOURCE)
    assert "Java" in run(commands / "viewkeeper", "doctor", folder=tmp_path)
    session = snippets(README, needs_spark=False)[0].text
    assert run(commands / "python", "-W", "ignore", "-c", session, folder=tmp_path).splitlines() == promised(session)
    shown = run(commands / "viewkeeper", "sql", "shop.vk", "-e", "SELECT total FROM by_city", folder=tmp_path)
    assert "48" in shown
