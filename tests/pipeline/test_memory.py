"""The size of an epoch follows what the epochs before it have been measured to use."""

from __future__ import annotations

import os

from viewkeeper.coordinator.core import Coordinator
from viewkeeper.database.connection import Database
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.pipeline import memory
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
from viewkeeper.pipeline.memory import EpochSize, MemoryUse, ancestors, begin_peak, peak_bytes, together
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

MIB = 1 << 20
BOUND = 2048 * MIB


def use(size: EpochSize, fixed: int, factor: float, epochs: int) -> list[int]:
    """Run full epochs where ``fixed`` bytes are in use and each byte of the log uses ``factor``; return the peaks."""
    peaks = []
    for _ in range(epochs):
        peaks.append(fixed + int(factor * size.log_bytes))
        size.measured(size.log_bytes, MemoryUse(fixed, peaks[-1], fixed))
    return peaks


def test_the_first_epoch_is_small():
    assert EpochSize(BOUND).log_bytes == 64 * MIB


def test_sizes_grow_while_there_is_room_and_leave_a_tenth():
    size = EpochSize(BOUND)
    peaks = use(size, 300 * MIB, 5.0, 10)
    assert peaks[1] > peaks[0]
    assert peaks[2:] == sorted(peaks[2:])
    assert 0.9 * BOUND - MIB < peaks[-1] <= 0.9 * BOUND


def test_one_epoch_that_was_too_large_is_enough():
    size = EpochSize(BOUND)
    peaks = use(size, 700 * MIB, 25.0, 5)
    assert peaks[0] > BOUND
    assert all(0.9 * BOUND - MIB < peak <= 0.9 * BOUND for peak in peaks[1:])


def test_a_small_epoch_does_not_let_the_next_grow():
    size = EpochSize(BOUND)
    size.measured(1 * MIB, MemoryUse(100 * MIB, 200 * MIB, 200 * MIB))
    assert size.log_bytes == 64 * MIB


def test_a_small_epoch_that_used_too_much_counts():
    size = EpochSize(BOUND)
    size.measured(8 * MIB, MemoryUse(BOUND // 2, BOUND, BOUND))
    assert size.log_bytes == int(8 * MIB * 0.8)


def test_an_epoch_of_a_few_rows_is_not_looked_at():
    size = EpochSize(BOUND)
    assert [size.is_looked_at(MIB), size.is_looked_at(MIB - 1)] == [True, False]


def test_sizes_do_not_vanish_where_little_is_left():
    size = EpochSize(BOUND)
    use(size, int(0.899 * BOUND), 100.0, 3)
    assert size.log_bytes == 4 * MIB


def test_sizes_are_moderate_where_too_much_is_in_use_already():
    size = EpochSize(BOUND)
    use(size, 2 * BOUND, 1.0, 5)
    assert size.log_bytes == 16 * MIB


def test_what_cannot_be_measured_changes_nothing():
    size = EpochSize(BOUND)
    size.measured(64 * MIB, MemoryUse())
    assert size.log_bytes == 64 * MIB


def test_sizes_follow_how_long_publishing_takes():
    size = EpochSize(BOUND, publish_seconds_max=0.5)
    size.published(64 * MIB, 0.4)
    assert size.log_bytes == 64 * MIB, "it fits"
    size.published(64 * MIB, 2.0)
    assert size.log_bytes == 16 * MIB
    size.published(16 * MIB, 0.5)
    assert size.log_bytes == 16 * MIB
    # A stall is no rule: it is tried again, twice as large each time, up to what memory allows.
    size.published(16 * MIB, 1000.0)
    assert size.log_bytes == 4 * MIB
    sizes = []
    for _ in range(6):
        size.published(size.log_bytes, 0.01)
        sizes.append(size.log_bytes // MIB)
    assert sizes == [8, 16, 32, 64, 64, 64]


def test_epochs_are_cut_where_publishing_would_take_too_long() -> None:
    epochs = {}
    for seconds in (1e-6, 60.0):
        settings = Settings(executor="local", publish_seconds_max=seconds)
        with Database(memory_store(), settings) as db:
            db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, s STRING); CREATE MATERIALIZED VIEW v AS SELECT k, s FROM t")
            for batch in range(2):
                for part in range(10):
                    rows = [{"k": 1000 * part + k, "s": f"{batch}" * 1000} for k in range(1000)]
                    db.put_batch("t", rows)
                epochs[seconds, batch] = db.refresh().epochs
            assert db.get("v", 9999) == {"k": 9999, "s": "1" * 1000}
    # 20 MB of the log wait the second time, rows before and after; an epoch takes no less than 4 MiB.
    assert epochs == {(1e-6, 0): 1, (1e-6, 1): 5, (60.0, 0): 1, (60.0, 1): 1}


def test_each_process_counts_once_at_its_largest():
    levels = [
        {10: MemoryUse(3, 5, 4), 1: MemoryUse(50, 50, 50)},
        {11: MemoryUse(2, 6, 6), 1: MemoryUse(60, 60, 60)},
        {10: MemoryUse(4, 7, 3), 1: MemoryUse(55, 55, 55)},
    ]
    assert together(levels) == MemoryUse(3 + 2 + 50, 7 + 6 + 60, 3 + 6 + 55)
    assert together([]) == MemoryUse()


def test_the_peak_is_this_process_at_its_largest():
    begin_peak()
    before = peak_bytes()
    held = bytearray(os.urandom(1)) * (64 * MIB)
    assert peak_bytes() >= before + 60 * MIB
    assert len(held) == 64 * MIB


def test_processes_above_are_found_where_the_system_tells():
    found = ancestors(1)
    assert set(found) <= {os.getppid()}
    assert all(use.before_bytes == use.peak_bytes == use.kept_bytes > 0 for use in found.values())


class Hungry(LocalExecutor):
    """An executor whose workers use what it is told, for each byte of the log."""

    factor = 0.0

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run the epoch."""
        result = super().run(plan)
        return EpochResult(result.writes, result.executor, MemoryUse(0, int(self.factor * plan.log_bytes)))


def test_the_next_epoch_takes_as_much_of_the_log_as_fits(monkeypatch, tmp_path):
    import viewkeeper as vk

    # What this process really uses depends on the tests before: only what is injected shall count.
    monkeypatch.setattr(memory, "peak_bytes", lambda: 0)
    monkeypatch.setattr(memory, "resident_bytes", lambda: 0)
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
