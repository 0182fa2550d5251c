"""Named places where a test lets the process die: before and after each durable step.

The environment variable ``VIEWKEEPER_FAILPOINT`` is ``name`` or ``name#n``: at the n-th arrival (default the first) at
that place the process kills itself as ``kill -9`` would. A process that was forked is armed by ``arm``, and a simulation
puts a hook of its own in place of death. Unset, a failpoint costs two comparisons.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "VIEWKEEPER_FAILPOINT"

NAMES = (
    "commit:before",
    "commit:after",
    "stage:before",
    "stage:after",
    "publish:before",
    "publish:before-commit",
    "publish:after",
    "purge:before",
    "purge:after",
    "build:before-swap",
    "build:after-swap",
)

Hook = Callable[[str], None]


class _Armed:
    """The armed failpoint of this process, and the simulation's hook."""

    def __init__(self) -> None:
        self.hook: Hook | None = None
        self.arm(os.environ.get(VARIABLE, ""))

    def arm(self, text: str) -> None:
        name, _, count = text.rpartition("#")
        self.name = name or text
        self.left = int(count) if name else 1


_armed = _Armed()


def failpoint(name: str) -> None:
    """Die here if this failpoint is armed."""
    if _armed.hook is not None:
        _armed.hook(name)
    if _armed.name != name:
        return
    _armed.left -= 1
    if _armed.left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)


def arm(text: str) -> None:
    """Arm a failpoint of this process, as the environment variable does for a new one.

    Args:
        text: ``name``, ``name#n``, or nothing to disarm.
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
