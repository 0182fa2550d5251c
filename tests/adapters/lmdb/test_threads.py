"""Threads of one process that meet in one environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
