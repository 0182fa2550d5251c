"""Running the command: in this process, in a process of its own, and on a terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from tests.architecture.project import ROOT
from viewkeeper.cli.main import app

COMMAND = [sys.executable, "-m", "viewkeeper.cli.main"]
WAIT_SECONDS = 60.0


def run(*arguments: object, given: str | None = None, store: object = None) -> Result:
    """Run the command in this process.

    Args:
        arguments: what is typed behind ``viewkeeper``.
        given: standard input.
        store: what VIEWKEEPER_STORE names.
    """
    variables = {"VIEWKEEPER_STORE": None if store is None else str(store)}
    return CliRunner().invoke(app, [*map(str, arguments)], input=given, env=variables, prog_name="viewkeeper")


def done(*arguments: object, given: str | None = None, store: object = None) -> str:
    """Run the command, which must succeed, and return its standard output."""
    result = run(*arguments, given=given, store=store)
    assert result.exit_code == 0, result.output
    return result.stdout


def json_of(*arguments: object, store: object = None) -> Any:
    """Run the command with ``--json`` and return what it printed."""
    return json.loads(done(*arguments, "--json", store=store))


def environment() -> dict[str, str]:
    """Return the variables of child processes: the package importable, no store named."""
    variables = {name: value for name, value in os.environ.items() if name != "VIEWKEEPER_STORE"}
    return variables | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "TERM": "xterm", "COLUMNS": "200"}


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own, its output in pipes."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], text=True, env=environment(), cwd=ROOT, **(pipes | options)
    )


def wait_for_line(process: subprocess.Popen[str], text: str, stream: str = "stderr") -> str:
    """Read lines until one holds ``text``, and return it."""
    for line in getattr(process, stream):
        if text in line:
            return str(line)
    raise AssertionError(f"{stream} ended without {text!r}; status {process.wait(WAIT_SECONDS)}")


class Terminal:
    """The command on a terminal of its own; use as a context manager.

    Args:
        arguments: what is typed behind ``viewkeeper``.
        home: where its history goes.
    """

    def __init__(self, *arguments: object, home: Path) -> None:
        variables = environment() | {"XDG_STATE_HOME": str(home), "PROMPT_TOOLKIT_NO_CPR": "1"}
        self._pid, self._descriptor = os.forkpty()
        if self._pid == 0:
            os.chdir(ROOT)
            os.execve(sys.executable, [*COMMAND, *map(str, arguments)], variables)
        self.seen = ""
        self._status: int | None = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *about: object) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    def type(self, text: str) -> None:
        """Type ``text``."""
        os.write(self._descriptor, text.encode())

    def expect(self, text: str) -> None:
        """Read until ``text`` has appeared behind what was expected before."""
        while text not in self.seen:
            assert self._read(), f"it ended without {text!r}: {self.seen}"
        self.seen = self.seen.partition(text)[2]

    def status(self) -> int:
        """Read to the end and return the exit status."""
        while self._read():
            pass
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status

    def _read(self) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], WAIT_SECONDS)
        assert ready, f"nothing came for {WAIT_SECONDS} s behind: {self.seen}"
        try:
            read = os.read(self._descriptor, 65536)
        except OSError:
            # Linux tells of the other side's end by EIO.
            return False
        self.seen += read.decode(errors="replace")
        return bool(read)
