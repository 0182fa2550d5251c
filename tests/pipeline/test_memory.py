"""The size of an epoch follows what the epochs before it have been measured to use."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import psutil

from viewkeeper.coordinator.core import Coordinator
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.pipeline import memory
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
from viewkeeper.pipeline.memory import EpochSize, ancestors, begin_peak, peak_bytes, together
from viewkeeper.settings import Settings

MIB = 1 << 20
BOUND = 2048 * MIB


def use(size: EpochSize, fixed: int, factor: float, epochs: int) -> list[int]:
    """Run ``epochs`` full epochs of a machine that uses ``fixed`` bytes and ``factor`` for each of the log."""
    peaks = []
    for _ in range(epochs):
        peaks.append(fixed + int(factor * size.log_bytes))
        size.measured(size.log_bytes, peaks[-1])
    return peaks


def test_the_first_epoch_is_small():
    assert EpochSize(BOUND).log_bytes == 64 * MIB


def test_sizes_grow_while_there_is_room_and_leave_a_fifth():
    size = EpochSize(BOUND)
    peaks = use(size, 300 * MIB, 5.0, 60)
    assert peaks == sorted(peaks)
    assert 0.75 * BOUND < peaks[-1] <= 0.8 * BOUND + MIB


def test_sizes_shrink_until_a_fifth_is_free():
    size = EpochSize(BOUND)
    peaks = use(size, 700 * MIB, 25.0, 30)
    assert peaks[0] > BOUND
    assert peaks[5] < 0.85 * BOUND
    assert peaks[-1] < 0.81 * BOUND


def test_a_small_epoch_does_not_let_the_next_grow():
    size = EpochSize(BOUND)
    size.measured(1 * MIB, 200 * MIB)
    assert size.log_bytes == 64 * MIB


def test_a_small_epoch_that_used_too_much_counts():
    size = EpochSize(BOUND)
    size.measured(32 * MIB, BOUND)
    assert size.log_bytes == int(32 * MIB * 0.8 * 0.8)


def test_sizes_stay_where_java_alone_takes_too_much():
    size = EpochSize(BOUND)
    use(size, 2 * BOUND, 1.0, 50)
    assert size.log_bytes == 64 * MIB


def test_sizes_do_not_vanish():
    size = EpochSize(BOUND)
    for _ in range(50):
        size.measured(32 * MIB, 8 * BOUND)
    assert size.log_bytes == 4 * MIB


def test_what_cannot_be_measured_changes_nothing():
    size = EpochSize(BOUND)
    size.measured(64 * MIB, 0)
    assert size.log_bytes == 64 * MIB


def test_each_process_counts_once_at_its_largest():
    assert together([{10: 5, 1: 50}, {11: 6, 1: 60}, {10: 7, 1: 55}]) == 6 + 7 + 60
    assert together([]) == 0


def test_the_peak_is_this_process_at_its_largest():
    begin_peak()
    before = peak_bytes()
    held = bytearray(os.urandom(1)) * (64 * MIB)
    assert peak_bytes() >= before + 60 * MIB
    assert len(held) == 64 * MIB


def test_processes_above_are_found_where_the_system_tells():
    found = ancestors(1)
    assert set(found) <= {os.getppid()}
    assert all(size > 0 for size in found.values())


class Hungry(LocalExecutor):
    """An executor whose workers use what it is told, for each byte of the log."""

    factor = 0.0

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run the epoch."""
        result = super().run(plan)
        return EpochResult(result.writes, result.executor, int(self.factor * plan.log_bytes))


def test_the_next_epoch_takes_as_much_of_the_log_as_fits(monkeypatch, tmp_path):
    import viewkeeper as vk

    # What this process really uses depends on the tests before: only what is injected shall count.
    monkeypatch.setattr("viewkeeper.coordinator.core.peak_bytes", lambda: 0)
    with vk.connect(tmp_path / "s.vk", executor="local", durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k))")
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT SUM(v) AS s FROM t")
        for start in range(0, 40_000, 50):
            db.put_batch("t", [{"k": k, "v": k} for k in range(start, start + 50)])
        engine = db._engine.coordinator
        executor = Hungry(engine.base, engine.views)
        settings = Settings(executor="local", durability="none", memory_bytes=2 * MIB)
        coordinator = Coordinator(engine.base, engine.views, {"local": lambda: executor}, settings)
        cadence = next(iter(coordinator.catalog().views.values())).cadence
        rows = []
        for factor in (4.0, 4.0, 12.0, 4.0):
            executor.factor = factor
            outcome = coordinator.epoch(cadence)
            assert outcome is not None
            rows.append(outcome.log_rows)
        assert rows[0] < rows[1] < rows[2], "there was room"
        assert rows[3] < rows[2], "there was none"
        coordinator.catch_up(cadence, coordinator.head())
        assert db.get("w", ()) == {"s": sum(range(40_000))}


def test_the_reset_of_the_peak_is_no_must(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(memory.Path, "write_text", refuse)
    begin_peak()
    assert peak_bytes() > 0


def test_pages_of_mapped_files_are_let_go_and_read_again(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * (64 * MIB // 256))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        content = mapped[::4096]
        before = psutil.Process().memory_info().shared
        released = memory.release_mapped()
        after = psutil.Process().memory_info().shared
        assert mapped[::4096] == content
    if Path("/proc/self/maps").exists():
        assert released >= 64 * MIB
        assert before - after > 60 * MIB
    else:
        assert released == 0
