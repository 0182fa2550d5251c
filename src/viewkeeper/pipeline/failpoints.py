"""Named places where a test lets the process die: before and after each durable step.

The environment variable ``VIEWKEEPER_FAILPOINT`` is one of

    name        at the first arrival at that place the process kills itself as ``kill -9`` would
    name#n      at the n-th arrival
    @path       at an arrival at the place that the file names; the file goes first, so that one of many processes dies
                (the workers of a cluster), once, and whoever writes the file again arms them again

A process that was forked is armed by ``arm``, and a simulation puts a hook of its own in place of death. Unset, a
failpoint costs two comparisons.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "VIEWKEEPER_FAILPOINT"

NAMES = (
    "commit:before",
    "commit:after",
    "stage:before",
    "stage:after",
    "stage:compare",
    "publish:before",
    "publish:before-commit",
    "publish:after",
    "purge:before",
    "purge:between",
    "purge:after",
    "build:held",
    "build:begun",
    "build:before-swap",
    "build:after-swap",
    "catalog:before-commit",
    "catalog:after",
    "remove:before",
    "remove:between",
    "remove:after",
)

Hook = Callable[[str], None]


class _Armed:
    """The armed failpoint of this process, and the simulation's hook."""

    def __init__(self) -> None:
        self.hook: Hook | None = None
        self.is_armed = False
        self.arm(os.environ.get(VARIABLE, ""))

    def arm(self, text: str) -> None:
        name, _, count = text.rpartition("#")
        self.token = text.removeprefix("@") if text.startswith("@") else ""
        self.name = name or text
        self.left = int(count) if name else 1
        self.is_armed = bool(text)

    def is_hit(self, name: str) -> bool:
        if self.token:
            return _take(self.token, name)
        self.left -= self.name == name
        return self.name == name and self.left <= 0


def _take(token: str, name: str) -> bool:
    """Remove the file ``token`` if it names this place; return whether this process was the one that removed it."""
    try:
        if Path(token).read_text(encoding="utf-8") != name:
            return False
        os.unlink(token)
    except FileNotFoundError:
        return False
    return True


_armed = _Armed()


def failpoint(name: str) -> None:
    """Die here if this failpoint is armed."""
    if _armed.hook is not None:
        _armed.hook(name)
    if _armed.is_armed and _armed.is_hit(name):
        os.kill(os.getpid(), signal.SIGKILL)


def arm(text: str) -> None:
    """Arm a failpoint of this process, as the environment variable does for a new one.

    Args:
        text: as the environment variable has it; nothing disarms.
    """
    _armed.arm(text)


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Call ``hook`` with the name of each failpoint that is reached inside the block; it may raise.

    Args:
        hook: what a simulation does there instead of dying.
    """
    before, _armed.hook = _armed.hook, hook
    try:
        yield
    finally:
        _armed.hook = before
