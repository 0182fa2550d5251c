"""Large payloads go by file: all come back as they were, and what cannot be written or read is said so."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pyarrow as pa
import pytest

from viewkeeper.errors import StoreError
from viewkeeper.executors.spark.payload import ALIGNMENT
from viewkeeper.executors.spark.payload_files import LARGE_BYTES, by_file, fetched

PAYLOADS = [
    b"\0" * 100,
    b"\1" * LARGE_BYTES,
    b"\2" * (LARGE_BYTES - 1),
    b"\4" * (3 * LARGE_BYTES + 1),
    b"\0" + bytes(LARGE_BYTES),
]


def test_large_payloads_come_back_and_small_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.payloads"
    sent = by_file(PAYLOADS, str(path))
    assert [fetched(pa.py_buffer(one)).to_pybytes() for one in sent] == PAYLOADS
    assert [len(one) < LARGE_BYTES for one in sent] == [True] * 5
    assert [one == payload for one, payload in zip(sent, PAYLOADS, strict=True)] == [True, False, True, False, False]
    assert {fetched(pa.py_buffer(sent[i])).address % ALIGNMENT for i in (1, 3, 4)} == {0}


def test_small_payloads_make_no_file(tmp_path: Path) -> None:
    assert by_file([b"", b"abc"], str(tmp_path / "a.payloads")) == [b"", b"abc"]
    assert by_file([], str(tmp_path / "b.payloads")) == []
    assert list(tmp_path.iterdir()) == []
    assert fetched(pa.py_buffer(b"")).to_pybytes() == b""


@pytest.mark.parametrize("left", [None, 0, LARGE_BYTES])
def test_a_file_that_is_gone_or_cut_is_told(tmp_path: Path, left: int | None) -> None:
    path = tmp_path / "a.payloads"
    *_, last = by_file(PAYLOADS, str(path))
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(StoreError) as caught:
        fetched(pa.py_buffer(last))
    assert caught.value.code == "STAGED_FILE_LOST"
    assert str(path) in str(caught.value)


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * LARGE_BYTES, hard))
        with pytest.raises(StoreError) as caught:
            by_file(PAYLOADS, str(tmp_path / "a.payloads"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.code == "STAGING_FAILED"
    assert list(tmp_path.iterdir()) == []
