"""Other processes for the tests of the embedded store."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SOURCE = Path(__file__).resolve().parents[3] / "src"

PREAMBLE = """
import os, resource, signal, sys
from viewkeeper.adapters.lmdb.registry import REGISTRY
from viewkeeper.adapters.lmdb.folder import open_folder
from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import ViewkeeperError
QUICK = EnvironmentOptions(durability="none")
def say(*words): print(*words, flush=True)
def hear(): return sys.stdin.readline().strip()
"""


class Child:
    """A running child: it hears and says lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin: IO[str] = process.stdin
        self._stdout: IO[str] = process.stdout

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> str:
        """Return the child's next line."""
        line = self._stdout.readline()
        assert line, "the child ended without a word"
        return line.strip()

    def tell(self, line: str = "") -> None:
        """Send the child a line."""
        self._stdin.write(line + "\n")
        self._stdin.flush()

    def kill(self) -> None:
        """End the child by SIGKILL."""
        self.process.kill()
        self.process.wait()

    def finish(self) -> None:
        """Wait for the child's own end, which must be a good one."""
        self._stdin.close()
        assert self.process.wait() == 0


@contextmanager
def child(code: str, *arguments: str) -> Iterator[Child]:
    """Run Python code, after the preamble above, in a process that does not outlive the block."""
    command = [sys.executable, "-c", PREAMBLE + textwrap.dedent(code), *arguments]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    )
    with process:
        try:
            yield Child(process)
        finally:
            process.kill()


def run(code: str, *arguments: str) -> list[str]:
    """Run Python code to its end; return the lines that it said."""
    command = [sys.executable, "-c", PREAMBLE + textwrap.dedent(code), *arguments]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    finished = subprocess.run(
        command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()
