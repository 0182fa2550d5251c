"""Threads of one process that meet in one environment."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from viewkeeper.adapters.lmdb.folder import open_folder


def test_a_reader_begun_before_another_thread_opened_the_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_folder(tmp_path / "shop.vk") as store, store.base.write() as transaction:
        transaction.put("t", b"k", b"v")
    with open_folder(tmp_path / "shop.vk", create=False) as store:
        shared = store.base.shared()
        begin = shared._begin
        begun: list[bool] = []

        def begin_and_be_overtaken(write: bool) -> Any:
            made = begin(write)
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
