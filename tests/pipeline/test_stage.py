"""Staged files: what is read is what was written, whole or not at all, and nobody else's file is removed."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.errors import StoreError
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.stage import DRAFT_SUFFIX, clear_stage, read_stage, stage_path, sweep_stage, write_stage

names = st.text(min_size=1, max_size=12).filter(lambda s: s.isprintable())
tables = st.dictionaries(
    names,
    st.lists(st.dictionaries(st.binary(max_size=9), st.none() | st.binary(max_size=9), min_size=1), max_size=3),
    max_size=4,
)
merges = st.dictionaries(names, st.dictionaries(st.binary(max_size=9), st.integers(-(2**40), 2**40), min_size=1))
counts = st.dictionaries(names, st.integers(0, 2**40))


def written(tables_: dict, merges_: dict, rows: dict) -> WriteSet:
    writes = WriteSet()
    for state, pieces in tables_.items():
        for piece in pieces:
            keys = sorted(piece)
            writes.change(state, keys, [piece[key] for key in keys])
    for state, entries in merges_.items():
        for key, weight in entries.items():
            writes.merge(state, key, weight)
    writes.rows.update(rows)
    return writes


@settings(deadline=None)
@given(tables, merges, counts)
def test_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, tables_: dict, merges_: dict, rows: dict
) -> None:
    folder = tmp_path_factory.mktemp("staging")
    writes = written(tables_, merges_, rows)
    path = stage_path(str(folder), "continuous", 1, 0, 0)
    write_stage(path, writes)
    assert read_stage(path) == writes
    assert [entry.name for entry in folder.iterdir()] == [Path(path).name]


def test_what_was_read_outlives_the_file(tmp_path: Path) -> None:
    writes = written({"a": [{b"k%03d" % i: b"v" * i for i in range(500)}]}, {}, {})
    path = stage_path(str(tmp_path), "continuous", 1, 0, 0)
    write_stage(path, writes)
    read = read_stage(path)
    Path(path).unlink()
    assert read == writes


def test_large_pieces_between_small_ones_stay_in_order(tmp_path: Path) -> None:
    large = {b"%06d" % i: None if i % 7 == 0 else b"v" * (i % 5) for i in range(30_000)}
    small = {b"a": b"1", b"b": None}
    writes = written({"x": [small, large, small], "y": [large], "z": [small]}, {"bag": {b"e": 2}}, {"x": 9})
    path = stage_path(str(tmp_path), "continuous", 1, 0, 0)
    write_stage(path, writes)
    assert read_stage(path) == writes


def test_every_attempt_has_a_path_of_its_own() -> None:
    paths = {stage_path("folder", "continuous", 3, 1, 0) for _ in range(100)}
    assert len(paths) == 100


def test_a_lost_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        read_stage(str(tmp_path / "gone.arrow"))
    assert caught.value.code == "STAGED_FILE_LOST"
    (tmp_path / "torn.arrow").write_bytes(b"ARROW1\0\0 and no more")
    with pytest.raises(StoreError) as caught:
        read_stage(str(tmp_path / "torn.arrow"))
    assert caught.value.code == "STAGED_FILE_LOST"


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    writes = written({"a": [{b"k%06d" % i: b"v" * 100 for i in range(5000)}]}, {}, {})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        with pytest.raises(StoreError) as caught:
            write_stage(stage_path(str(tmp_path), "continuous", 1, 0, 0), writes)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.code == "STAGING_FAILED"
    assert list(tmp_path.iterdir()) == []


def stage(folder: Path, cadence: str, epoch: int, suffix: str = ".arrow") -> str:
    path = stage_path(str(folder), cadence, epoch, 1, 0, suffix)
    write_stage(path, written({"a": [{b"k": b"v"}]}, {}, {}))
    return path


def test_clears_published_epochs_of_its_own_cadence_only(tmp_path: Path) -> None:
    old, now = stage(tmp_path, "every-0.5", 6), stage(tmp_path, "every-0.5", 7)
    draft = stage(tmp_path, "every-0.5", 7)
    Path(draft).rename(draft + DRAFT_SUFFIX)
    kept = [stage(tmp_path, *of) for of in (("every-0.5", 7), ("every-0.5", 8), ("every-0", 5), ("continuous", 1))]
    (tmp_path / "notes.txt").write_text("somebody's")
    assert clear_stage(str(tmp_path), "every-0.5", 7, keep=[kept[0]]) == 3
    assert not any(Path(p).exists() for p in (old, now, draft + DRAFT_SUFFIX))
    assert all(Path(p).exists() for p in [*kept, str(tmp_path / "notes.txt")])
    assert clear_stage(str(tmp_path), "every-0.5", None) == 2
    assert not Path(kept[0]).exists()
    assert Path(kept[3]).exists()


def test_sweeps_all_but_the_next_epochs(tmp_path: Path) -> None:
    epochs = {"every-0.5": 7, "build-12": 0}
    kept = [stage(tmp_path, "every-0.5", 8), stage(tmp_path, "build-12", 1, ".payloads")]
    lost = [stage(tmp_path, "every-0.5", epoch) for epoch in (6, 7, 9)]
    lost += [stage(tmp_path, "build-11", 1, ".payloads"), stage(tmp_path, "every-0", 8)]
    draft = stage(tmp_path, "build-12", 3)
    Path(draft).rename(draft + DRAFT_SUFFIX)
    (tmp_path / "notes.txt").write_text("somebody's")
    late: list[str] = []

    def read_published() -> dict[str, int]:
        late.append(stage(tmp_path, "new", 1))
        return epochs

    assert sweep_stage(str(tmp_path), read_published) == len(lost) + 1
    there = {str(tmp_path / "notes.txt"), *kept, *late}
    assert {str(path) for path in tmp_path.iterdir()} == there, "what came after the list may be of whoever came later"


def test_sweeping_nothing_asks_nothing(tmp_path: Path) -> None:
    assert sweep_stage(str(tmp_path), dict) == 0
