"""Pages of the mapped file that a process has read are let go, wherever the file is mapped."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from viewkeeper.adapters.lmdb.mapped import mapped_at
from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import StoreError
from viewkeeper.pipeline.memory import NO_USE, EpochMemory, EpochSize

MIB = 1 << 20
TELLS = Path("/proc/self/maps").exists()
GROWS = EnvironmentOptions(durability="none", map_size_bytes=4 * MIB)


@pytest.fixture
def space(tmp_path: Path):
    place = tmp_path / "a folder"
    place.mkdir()
    space = LmdbSpace(str(place), GROWS)
    yield space
    space.close()


def shown_bytes() -> int:
    return psutil.Process().memory_info().shared


def fill(space: LmdbSpace) -> bool:
    """Write 30 MB; return whether they had room, else the map has doubled."""
    try:
        with space.write() as txn:
            txn.multi_put("t", [(b"%06d" % number, b"x" * 3_000) for number in range(10_000)])
    except StoreError as error:
        if error.code != "MAP_FULL":
            raise
        return False
    return True


def test_what_was_read_is_let_go_also_after_the_map_has_grown(space: LmdbSpace) -> None:
    space.release_memory()
    fills = 0
    while not fill(space):
        fills += 1
    assert fills >= 3
    for _ in range(2):
        with space.read() as txn:
            assert sum(len(value) for _, value in txn.scan("t")) == 30_000_000
        before = shown_bytes()
        space.release_memory()
        if TELLS:
            assert before - shown_bytes() > 30_000_000


def test_a_small_epoch_keeps_what_it_read_while_there_is_room(space: LmdbSpace) -> None:
    while not fill(space):
        pass
    bound_bytes = 16 * psutil.Process().memory_info().rss
    sizes = EpochSize(bound_bytes)
    for log_bytes, keeps in ((sizes.log_bytes // 16, True), (sizes.log_bytes // 2, False)):
        space.release_memory()
        before = shown_bytes()
        kept = sizes.pages_kept_bytes(log_bytes)
        epoch = EpochMemory([space], True, kept)
        with space.read() as txn:
            assert sum(len(value) for _, value in txn.scan("t")) == 30_000_000
        epoch.is_over(NO_USE)
        if TELLS:
            assert (shown_bytes() - before > 30_000_000) is keeps
    # Where little of the bound is left, a small one lets go too.
    crowded = EpochSize(bound_bytes // 16)
    EpochMemory([space], True, crowded.pages_kept_bytes(crowded.log_bytes // 16))
    if TELLS:
        assert shown_bytes() - before < 30_000_000


def test_a_file_is_found_where_it_is_mapped(space: LmdbSpace, tmp_path: Path) -> None:
    addresses = mapped_at(str(tmp_path / "a folder" / "data.mdb"))
    assert (addresses is not None) == TELLS
    if addresses is not None:
        assert len(addresses) == 4 * MIB
    assert mapped_at(str(tmp_path / "data.mdb")) is None
