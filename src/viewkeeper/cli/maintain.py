"""``viewkeeper maintain`` and ``refresh``: keeping views fresh, continuously or once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from viewkeeper.cli.options import (
    STATUS_INTERRUPTED,
    JsonOption,
    SettingsOption,
    StoreArgument,
    open_database,
    settings_of,
    take_store,
)

if TYPE_CHECKING:
    from viewkeeper.cli.board import Board
    from viewkeeper.cli.maintaining import MaintainingThread
    from viewkeeper.runtime import MaintainerLock, OpenStore

# How long a console that nobody watches waits between two looks at the board, and a screen between two pictures.
_LINES_SECONDS = 1.0
_SCREEN_SECONDS = 0.25

_STANDBY_HELP = "If another process maintains the store, wait until it ends, and take over."


def maintain(
    store: StoreArgument = None,
    standby: Annotated[bool, typer.Option("--standby", help=_STANDBY_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write each epoch as a line of JSON.")] = False,
    settings: SettingsOption = None,
) -> None:
    """Keep views fresh continuously, until Ctrl-C.

    Runs the epochs of CONTINUOUS and EVERY views, and does what other processes ask for. What fails, as on a full disk,
    is tried again until it succeeds, and `viewkeeper status` says what waits and why. Ctrl-C or SIGTERM ends it
    after the running epoch; a second one at once, which is safe too: an epoch that was not published is run again by
    whoever comes next.
    """
    from viewkeeper.cli.board import Board
    from viewkeeper.cli.maintaining import MaintainingThread
    from viewkeeper.database.background import scrub_of
    from viewkeeper.database.engine import Engine
    from viewkeeper.runtime import open_store

    place, _ = take_store([store])
    chosen = settings_of(settings)
    opened = open_store(place, chosen, create=False)
    try:
        with _maintaining(opened, standby) as lock:
            engine = Engine(opened, chosen)
            board = Board(engine.coordinator, place, as_json)
            thread = MaintainingThread(
                engine.coordinator, board.note_epoch, board.note_error, lock.note, scrub_of(engine)
            )
            thread.stop_on_signals()
            with thread:
                _show(board, thread, as_json)
    finally:
        opened.close()


@contextmanager
def _maintaining(store: OpenStore, standby: bool) -> Iterator[MaintainerLock]:
    """Hold the maintainer's lock."""
    from viewkeeper.cli.output import say

    lock = store.lock
    assert lock is not None, "a store in a folder has a lock"
    if standby and (holder := lock.holder()) is not None:
        say(f"Waiting for process {holder.pid} on {holder.host} to end.")
    lock.acquire(blocking=standby)
    try:
        yield lock
    finally:
        lock.release()


def _show(board: Board, thread: MaintainingThread, as_json: bool) -> None:
    """Show the board until the maintainer has ended."""
    from viewkeeper.cli.output import say

    try:
        _follow(board, thread, as_json)
    except KeyboardInterrupt:
        # The second Ctrl-C. An epoch is running: the store cannot be closed under it, and need not be.
        say("Ended at once.")
        sys.stdout.flush()
        os._exit(STATUS_INTERRUPTED)
    if not as_json:
        say(f"Ended after {board.summary()}.")


def _follow(board: Board, thread: MaintainingThread, as_json: bool) -> None:
    from viewkeeper.cli.output import console, say

    out = console()
    if as_json:
        thread.wait()
    elif out.is_terminal:
        from rich.live import Live

        with Live(board.picture(), console=out, auto_refresh=False) as live:
            while not thread.wait(_SCREEN_SECONDS):
                live.update(board.picture(thread.is_stopping), refresh=True)
            live.update(board.picture(thread.is_stopping), refresh=True)
    else:
        say(f"Maintaining {board.store}.")
        is_over = False
        while not is_over:
            is_over = thread.wait(_LINES_SECONDS)
            for line in board.news():
                print(line, flush=True)


def refresh(
    store: StoreArgument = None,
    views: Annotated[
        list[str] | None, typer.Argument(metavar="VIEW", help="Views to refresh; all if left out.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Fill them anew from the base tables.")] = False,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
) -> None:
    """Bring views up to the log's end.

    If another process maintains the store, it does the work and this command waits.
    """
    from viewkeeper.cli.output import ProgressBar, counted, duration, print_json

    place, names = take_store([store, *(views or ())], most=None)
    with open_database(place, settings) as db, ProgressBar("Refreshing") as bar:
        done = db.refresh(*names, full=full, progress=bar.epoch)
    if as_json:
        print_json(
            {
                "epochs": done.epochs,
                "log_rows": done.log_rows,
                "rows": done.rows,
                "seconds": done.seconds,
                "executor": done.executor,
                "position": str(done.position),
            }
        )
        return
    if not done.epochs:
        print(f"Nothing was waiting: position {done.position}.")
        return
    epochs, read, changed = counted(done.epochs, "epoch"), counted(done.log_rows, "row"), counted(done.rows, "view row")
    print(f"{epochs} in {duration(done.seconds)} by {done.executor}: {read} read, {changed} changed.")
    print(f"Position {done.position}.")
