"""Named places where a test lets the process die: before and after each durable step.

The environment variable ``VIEWKEEPER_FAILPOINT`` is ``name`` or ``name#n``: at the n-th arrival (default the first) at
that place the process kills itself as ``kill -9`` would. Unset, a failpoint costs one comparison.
"""

from __future__ import annotations

import os
import signal

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


class _Armed:
    """The armed failpoint of this process, read once."""

    def __init__(self) -> None:
        text = os.environ.get(VARIABLE, "")
        name, _, count = text.rpartition("#")
        self.name = name or text
        self.left = int(count) if name else 1


_armed = _Armed()


def failpoint(name: str) -> None:
    """Die here if this failpoint is armed."""
    if _armed.name != name:
        return
    _armed.left -= 1
    if _armed.left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
