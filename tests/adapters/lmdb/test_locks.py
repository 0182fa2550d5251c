"""The maintainer's lock, among real processes."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from tests.adapters.lmdb.children import child
from viewkeeper.adapters.lmdb.locks import HolderInfo, ProcessLock
from viewkeeper.clock import SimulatedClock
from viewkeeper.errors import ConflictError, StoreError

HOLD = """
    lock = ProcessLock(sys.argv[1])
    lock.acquire()
    say("held")
    hear()
    lock.release()
    say("released")
    hear()
"""


def test_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "maintainer.lock"
    lock, other = ProcessLock(path, SimulatedClock(12.5)), ProcessLock(path)
    assert lock.holder() is None
    lock.acquire()
    lock.acquire()
    assert lock.held
    assert lock.holder() == other.holder() == HolderInfo(os.getpid(), socket.gethostname(), 12.5)
    with pytest.raises(ConflictError) as caught:
        other.acquire()
    assert caught.value.code == "MAINTAINER_RUNNING"
    assert not other.held
    lock.release()
    assert lock.held
    lock.release()
    lock.release()
    assert not lock.held
    assert other.holder() is None
    with other:
        assert other.held
        assert lock.holder() is not None
    assert other.holder() is None


@pytest.mark.slow
def test_another_process_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "maintainer.lock")
    with child(HOLD, path) as holder:
        assert holder.hear() == "held"
        with pytest.raises(ConflictError) as caught:
            ProcessLock(path).acquire(blocking=False)
        assert caught.value.details["pid"] == holder.pid
        assert caught.value.details["host"] == socket.gethostname()
        assert f"process {holder.pid} on {socket.gethostname()}" in caught.value.message
        holder.tell()
        assert holder.hear() == "released"
        with ProcessLock(path) as mine:
            assert mine.holder() == ProcessLock(path).holder()


@pytest.mark.slow
def test_it_goes_with_a_killed_process(tmp_path: Path) -> None:
    path = str(tmp_path / "maintainer.lock")
    lock = ProcessLock(path)
    with child(HOLD, path) as holder:
        assert holder.hear() == "held"
        found = lock.holder()
        assert found is not None
        assert found.pid == holder.pid
        holder.kill()
    # The file still names the dead one, and is not believed.
    assert str(holder.pid) in Path(path).read_text()
    assert lock.holder() is None
    lock.acquire()
    assert lock.holder() == HolderInfo(os.getpid(), socket.gethostname(), pytest.approx(lock.holder().since_seconds))  # type: ignore[union-attr]
    lock.release()


@pytest.mark.slow
def test_a_standby_takes_over(tmp_path: Path) -> None:
    path = str(tmp_path / "maintainer.lock")
    standby = """
        say("waiting")
        ProcessLock(sys.argv[1]).acquire(blocking=True)
        say("took over")
    """
    with child(HOLD, path) as holder, child(standby, path) as waiting:
        assert holder.hear() == "held"
        assert waiting.hear() == "waiting"
        holder.kill()
        assert waiting.hear() == "took over"


@pytest.mark.slow
def test_a_forked_child_does_not_keep_it(tmp_path: Path) -> None:
    path = str(tmp_path / "maintainer.lock")
    forks = """
        lock = ProcessLock(sys.argv[1])
        lock.acquire()
        if os.fork() == 0:
            say(lock.held, lock.holder().pid == os.getppid())
            lock.release()
            say("still", lock.holder().pid == os.getppid())
            hear()
            os._exit(0)
        signal.pause()
    """
    with child(forks, path) as holder:
        assert holder.hear() == "False True"
        assert holder.hear() == "still True"
        holder.kill()
        # The grandchild lives on, waiting for a line, and the lock is free.
        ProcessLock(path).acquire()


def test_a_look_at_the_holder_hinders_nobody(tmp_path: Path) -> None:
    path = tmp_path / "maintainer.lock"
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            ProcessLock(path).holder()

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for _ in range(100):
        with ProcessLock(path) as lock:
            assert lock.held
    stop.set()
    for watcher in watchers:
        watcher.join()


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        ProcessLock(tmp_path / "gone" / "maintainer.lock").acquire()
    assert caught.value.code == "STORE_NOT_FOUND"
