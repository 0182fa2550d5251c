"""The child process of ``db.maintain()``: ``python -m viewkeeper.cli.maintain_child STORE SETTINGS_JSON``.

It maintains until its standard input closes, which also happens when its parent is killed, or until SIGTERM or SIGINT.
Nobody reads its standard error while it runs, so a full pipe must not hold it up: everything goes nowhere but the last
line, which says why it ended, if that was an error.
"""

from __future__ import annotations

import os
import sys
import threading

import msgspec

from viewkeeper.cli.maintaining import MaintainingThread
from viewkeeper.database.background import scrub_of
from viewkeeper.database.engine import Engine
from viewkeeper.errors import ViewkeeperError
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings

_INPUT, _ERROR = 0, 2


def run(location: str, settings: Settings) -> None:
    """Maintain the store at ``location`` until the end is asked for.

    Args:
        location: its folder.
        settings: of the connection that maintains it.

    Raises:
        ConflictError: ``MAINTAINER_RUNNING``.
        ViewkeeperError: what else keeps it from maintaining.
    """
    store = open_store(location, settings, create=False)
    lock = store.lock
    assert lock is not None, "a store in a folder has a lock"
    try:
        lock.acquire()
        engine = Engine(store, settings)
        thread = MaintainingThread(engine.coordinator, note=lock.note, scrub=scrub_of(engine))
        thread.stop_on_signals()
        threading.Thread(target=_stop_at_end_of_input, args=(thread,), daemon=True).start()
        with thread:
            thread.wait()
    finally:
        lock.release()
        store.close()


def _stop_at_end_of_input(thread: MaintainingThread) -> None:
    # Not sys.stdin: its lock, held by a thread that waits here for ever, would end the interpreter with a fatal error.
    while os.read(_INPUT, 4096):
        pass
    thread.stop()


def main() -> int:
    """Run with the arguments of the process; returns the exit status."""
    location, encoded = sys.argv[1:]
    kept = os.dup(_ERROR)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _ERROR)
    try:
        run(location, msgspec.json.decode(encoded, type=Settings))
    except ViewkeeperError as error:
        os.write(kept, f"{error}\n".encode())
        return 1
    except Exception as error:
        os.write(kept, f"[MAINTAINER_FAILED] {type(error).__name__}: {' '.join(str(error).split())[:2000]}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
