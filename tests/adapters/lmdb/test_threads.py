"""Threads of one process that meet in one environment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.adapters.lmdb.children import run
from viewkeeper.adapters.lmdb.folder import open_folder
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.clock import SimulatedClock
from viewkeeper.errors import StoreError


def test_a_reader_begun_before_another_thread_opened_the_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_folder(tmp_path / "shop.vk") as store, store.base.write() as transaction:
        transaction.put("t", b"k", b"v")
    with open_folder(tmp_path / "shop.vk", create=False) as store:
        shared = store.base.shared()
        begin = shared._begin
        begun: list[bool] = []

        def begin_and_be_overtaken(write: bool, is_reader: bool | None = None) -> Any:
            made = begin(write, is_reader)
            begun.append(write)
            if begun == [False]:
                # What another thread does that reads for the first time, right after this one has begun.
                shared._open_handles()
            return made

        monkeypatch.setattr(shared, "_begin", begin_and_be_overtaken)
        with store.base.read() as reader:
            assert reader.get("t", b"k") == b"v"
        assert begun == [False, True, False]


def test_a_reader_that_comes_while_the_map_grows_waits_for_it(tmp_path: Path) -> None:
    with open_folder(tmp_path / "shop.vk") as store:
        with store.base.write() as transaction:
            transaction.put("t", b"k", b"v")
        shared = store.base.shared()
        get = store.base.point_get("t", lambda txn: True)
        assert get(b"k") == b"v"
        found: list[bytes | None] = []
        readers = [
            threading.Thread(target=lambda: found.append(get(b"k"))),
            threading.Thread(target=lambda: read(store)),
        ]

        def read(store: Any) -> None:
            with store.base.read() as txn:
                found.append(txn.get("t", b"k"))

        class Growing:
            """The environment, with readers coming in the middle of its growth."""

            def __init__(self, environment: Any) -> None:
                self._environment = environment

            def __getattr__(self, name: str) -> Any:
                return getattr(self._environment, name)

            def set_mapsize(self, size: int) -> None:
                for reader in readers:
                    reader.start()
                while len(shared.reading) < len(readers):
                    pass  # until both have registered and wait
                assert found == []
                self._environment.set_mapsize(size)

        environment = shared.environment
        shared.environment = cast("Any", Growing(environment))
        shared.grow()
        shared.environment = environment
        for reader in readers:
            reader.join()
        assert found == [b"v", b"v"]


class Still(SimulatedClock):
    """A clock that stands still, so that whoever waits waits for what he waits for; it tells that somebody does."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.waited.set()
        os.sched_yield()


GROW = """
    space = LmdbSpace(sys.argv[1], QUICK)
    with space.write() as transaction:
        transaction.multi_put("t", [(b"%06d" % number, b"x" * 1000) for number in range(int(sys.argv[2]))])
"""
SMALL = EnvironmentOptions(durability="none", map_size_bytes=1 << 20)
ROWS = 5000


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "space").mkdir()
    space = LmdbSpace(str(tmp_path / "space"), SMALL)
    with space.write() as txn:
        txn.multi_put("t", [(b"%06d" % number, b"old") for number in range(100)])
    space.close()
    return str(tmp_path / "space")


@pytest.mark.slow
def test_a_map_that_others_have_grown_is_adopted_when_this_process_reads_no_more(place: str) -> None:
    """LMDB must not move a map under a reader of the process: the adoption waits for it, the reader reads on."""
    clock, finish = Still(), threading.Event()
    space = LmdbSpace(place, SMALL, clock)
    found: list[object] = []
    opened, finished = threading.Event(), threading.Event()

    def read_slowly() -> None:
        with space.read() as txn:
            pairs = txn.scan("t")
            next(pairs)
            opened.set()
            finish.wait()
            found.append([value for _, value in pairs])
        finished.set()

    reader = threading.Thread(target=read_slowly)
    reader.start()
    opened.wait()
    run(GROW, place, str(ROWS))
    counts: list[int] = []

    def count() -> None:
        with space.read() as txn:
            counts.append(txn.count("t"))

    def write() -> None:
        with space.write() as txn:
            txn.put("t", b"new", b"new")

    others = [threading.Thread(target=work) for work in (count, count, write)]
    for other in others:
        other.start()
    clock.waited.wait()
    assert not finished.is_set()
    finish.set()
    for thread in (reader, *others):
        thread.join()
    assert found == [[b"old"] * 99]
    assert set(counts) <= {ROWS, ROWS + 1}
    assert len(counts) == 2
    space.close()


@pytest.mark.slow
def test_a_scan_that_rests_does_not_keep_others_from_the_larger_map_for_ever(place: str) -> None:
    clock = SimulatedClock()
    space = LmdbSpace(place, SMALL, clock)
    with space.read() as resting:
        pairs = resting.scan("t")
        next(pairs)
        run(GROW, place, str(ROWS))
        with space.read() as txn:
            assert txn.count("t") == ROWS
        assert 1.0 <= clock.monotonic_seconds() < 1.1
        with pytest.raises(StoreError) as caught:
            list(pairs)
        assert caught.value.code == "TRANSACTION_CLOSED"
    assert space.readers() == []
    space.close()


@pytest.mark.slow
def test_threads_read_and_write_while_another_process_grows_the_map_again_and_again(place: str) -> None:
    space = LmdbSpace(place, SMALL)
    is_over = threading.Event()
    wrong: list[BaseException] = []
    rounds = 0

    def work(step: Callable[[], None]) -> None:
        try:
            while not is_over.is_set():
                step()
        except BaseException as error:
            wrong.append(error)

    def read() -> None:
        with space.read() as txn:
            found = [value for _, value in txn.scan("t", b"0", b"000100")]
        assert found in ([b"old"] * 100, [b"x" * 1000] * 100)

    def write() -> None:
        try:
            with space.write() as txn:
                txn.put("mine", b"k", b"v")
        except StoreError as error:
            if error.code != "MAP_FULL":  # before the first growth, beside readers of old moments
                raise
        for number in range(500):  # the write lock is not fair: let the other process have it
            get(b"%06d" % number)

    get = space.point_get("t", lambda txn: True)
    threads = [threading.Thread(target=work, args=(step,)) for step in (read, write, space.release_memory)]
    for thread in threads:
        thread.start()
    for rounds in range(1, 3):
        run(GROW, place, str(rounds * 3 * ROWS))
    is_over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    with space.read() as txn:
        assert txn.count("t") == rounds * 3 * ROWS
        assert txn.get("mine", b"k") == b"v"
    space.close()
