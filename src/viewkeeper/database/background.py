"""``db.maintain()``: the maintainer in a child process, ended with its block."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from viewkeeper.closing import Closing
from viewkeeper.database.script import context_of
from viewkeeper.errors import ConflictError, InputError, StoreError
from viewkeeper.evaluation.scrub import Scrub

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

_POLL_SECONDS = 0.01
_STOP_SECONDS = 20.0


def scrub_of(engine: Engine) -> Scrub:
    """Return what checks the views of a connection that maintains its store, in quiet moments."""
    settings = engine.settings
    return Scrub(context_of(engine), settings.scrub_interval_seconds, settings.scrub_rows, engine.clock)


class BackgroundMaintainer(Closing):
    """A child process that maintains the store of a connection; use as a context manager.

    Args:
        engine: the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._process: subprocess.Popen[str] | None = None

    @property
    def process_id(self) -> int | None:
        """The child's process id while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the child and return when it holds the maintainer's lock.

        Raises:
            InputError: ``STORE_IN_MEMORY``.
            ConflictError: ``MAINTAINER_RUNNING``.
            StoreError: ``MAINTAINER_FAILED`` with what it said.
        """
        store = self._engine.store
        if store.location is None or store.lock is None:
            raise InputError("STORE_IN_MEMORY", "A store in memory has no maintainer: call refresh().")
        settings = msgspec.json.encode(self._engine.settings).decode()
        command = [sys.executable, "-m", "viewkeeper.cli.maintain_child", store.location, settings]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        while True:
            holder = store.lock.holder()
            if holder is not None and holder.pid == self._process.pid:
                return
            if self._process.poll() is not None:
                raise self._failure()
            self._engine.clock.sleep(_POLL_SECONDS)

    def _failure(self) -> Exception:
        process, self._process = self._process, None
        said = process.communicate()[1].strip() if process is not None else ""
        last = said.splitlines()[-1] if said else "it said nothing"
        if "MAINTAINER_RUNNING" in last:
            return ConflictError("MAINTAINER_RUNNING", last.split("] ", 1)[-1])
        return StoreError("MAINTAINER_FAILED", f"The maintainer did not start: {last}")

    def stop(self) -> None:
        """End the child after its running epoch; stopping twice is fine."""
        process, self._process = self._process, None
        if process is None:
            return
        # The child ends when its standard input closes: also when this process is killed.
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()

    def refusal(self) -> InputError | None:
        """Return the error of a maintainer that has been stopped, None while it runs."""
        if self._process is not None:
            return None
        return InputError("MAINTAINER_ENDED", "This maintainer has ended: start another with db.maintain().")

    def close(self) -> None:
        """End the child, as ``stop``."""
        self.stop()
