"""One task of an epoch, as it runs in a Spark worker: one partition of one level.

    level 0: its shares of the log --+                   +--> stage what it writes --> report to the driver
                                     +--> step the level +
    level n: rows that arrive      --+                   +--> pack what leaves for later levels

What was recomputed is staged by itself, and a last stage compares it with what is stored, key range by key range: what
differs is staged as all other changes are.

A task only reads published state and its fixed input, and what it writes is staged under a name of its own: it may run
twice or die at any moment. An error of ours is no reason to try again: it travels to the driver as a report, and tasks
of later levels that hear of it do nothing, since they have not got all their rows.
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.errors import ConflictError, StoreError, ViewkeeperError
from viewkeeper.executors.spark.cargo import Cargo, opened, ring_of
from viewkeeper.executors.spark.packing import (
    PATH,
    Arrivals,
    Parcel,
    TaskReport,
    by_file,
    pack,
    pack_report,
    to_batches,
)
from viewkeeper.executors.spark.payload_files import PAYLOAD_SUFFIX
from viewkeeper.log import reader
from viewkeeper.operators.probe import Probe
from viewkeeper.operators.state import Lookups, StepContext, WriteSet
from viewkeeper.pipeline import memory
from viewkeeper.pipeline.differences import Made, MadeHere, difference
from viewkeeper.pipeline.epoch import EpochPlan, fence
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.intake import Share, deltas_of
from viewkeeper.pipeline.loans import published_state, written_by
from viewkeeper.pipeline.memory import MemoryUse
from viewkeeper.pipeline.recompute import apart, lookups_for
from viewkeeper.pipeline.stage import SUFFIX, StagedParts, stage_path, write_stage
from viewkeeper.store.key_value import Space
from viewkeeper.zset.delta import Delta

Batches = Iterator[pa.RecordBatch]
T = TypeVar("T")

# Spark's daemon, and the Java process that runs the tasks.
_PROCESSES_ABOVE = 2


def level_function(cargo: Cargo, level: int) -> Callable[[Batches], Batches]:
    """Return the function of one stage, for ``mapInArrow``.

    Args:
        cargo: the epoch.
        level: the level of the circuit that the stage runs.
    """

    def run(batches: Batches) -> Batches:
        return run_level(cargo, level, batches)

    return run


def run_level(cargo: Cargo, level: int, batches: Batches) -> Batches:
    """Run one task.

    Args:
        cargo: the epoch.
        level: the level of the circuit.
        batches: what arrives; at level 0 nothing of it is looked at.

    Yields:
        Rows for later stages, and the task's report.
    """
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    if level == 0:
        # Memory is kept within an epoch; what a larger one has left is none that this one uses.
        pa.default_memory_pool().release_unused()
    before_bytes = memory.resident_bytes()
    memory.begin_peak()
    arrivals = Arrivals(level)
    for batch in batches:
        if level:
            yield from arrivals.take(batch)
    if arrivals.failed or not (arrivals.payloads or _has_its_own_work(cargo, level, partition)):
        return
    task = _Task(cargo, cargo.epoch_plan(), level, partition, before_bytes)
    try:
        parcels = task.run(arrivals)
    except ViewkeeperError as error:
        report = TaskReport(level, partition, None, 0, 0.0, pickle.dumps(error))
        is_last = level == cargo.stages - 1
        parcels = [pack_report(report, owner) for owner in ([partition] if is_last else range(cargo.partitions))]
    yield from to_batches(parcels)
    if context is not None:
        _settle(os.getpid())


def _has_its_own_work(cargo: Cargo, level: int, partition: int) -> bool:
    """Whether a task works though nothing arrives: it reads the log, or compares what is stored."""
    return bool(cargo.shares[partition] if level == 0 else level == cargo.levels and cargo.comparisons[partition])


@lru_cache(maxsize=1)
def _settle(process: int) -> None:
    """Keep Java from waiting for garbage collection: once a worker, after its first task has imported everything.

    Spark's daemon collects all garbage after each task before it looks for the next one, and walks each time through
    all that pyspark, pyarrow and pandas have made: 40 ms that the next stage waits for.

    Args:
        process: the worker, as a process that is forked from it must do the same.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class _Task:
    cargo: Cargo
    plan: EpochPlan
    level: int
    partition: int
    before_bytes: int

    def run(self, arrivals: Arrivals) -> list[Parcel]:
        """Return all that leaves: nothing leaves where the task fails."""
        started = SYSTEM_CLOCK.monotonic_seconds()
        probe = Probe(SYSTEM_CLOCK.monotonic_seconds)
        if self.level == self.cargo.levels:
            rows, writes, parcels = 0, self._compared(arrivals.paths()), list[Parcel]()
        else:
            rows, writes, parcels = self._stepped(arrivals, probe)
        path = self._stage(writes)
        peak = memory.peak_bytes()
        # Nobody here reads on, while the driver needs memory to publish.
        for space in opened(self.cargo.open_spaces):
            space.release_memory()
        own = MemoryUse(self.before_bytes, peak, memory.resident_bytes())
        seconds = SYSTEM_CLOCK.monotonic_seconds() - started
        report = TaskReport(
            self.level,
            self.partition,
            path,
            rows,
            seconds,
            memory={os.getpid(): own, **memory.ancestors(_PROCESSES_ABOVE)},
            node_seconds=probe.seconds,
            node_rows=probe.rows,
        )
        return [*parcels, pack_report(report, self.partition)]

    def _stepped(self, arrivals: Arrivals, probe: Probe) -> tuple[int, WriteSet, list[Parcel]]:
        """Step the level; return how many rows came in, what is to be written, and what leaves for later stages."""
        members = self.plan.members
        circuit, mixed, borrowed = members.circuit, members.mixed, members.borrowed
        base, views = opened(self.cargo.open_spaces)
        probe.begin()
        writes = written_by(borrowed)
        with published_state(views, borrowed, self.plan.after, fence(self.plan)) as lookups:
            deltas: dict[int, Delta] = {}
            arrived: dict[int, Delta] = {}
            if self.level == 0:
                self._check_fence(views)
                shares = self.cargo.shares[self.partition]
                deltas = self._of_this_epoch(lambda: level_zero_deltas(base, lookups, self.plan, shares, probe))
            else:
                arrived = self._of_this_epoch(lambda: arrivals.deltas({node.id: node for node in circuit.crossings}))
            rows = sum(delta.num_rows for delta in (deltas or arrived).values())
            context = StepContext(lookups_for(mixed, lookups), writes)
            probe.begin()
            sent = circuit.step_level(self.level, arrived, deltas, context, probe)
        ring = ring_of(self.cargo.partitions)
        parcels = [parcel for exchange, delta in sent.items() for parcel in pack(circuit.nodes[exchange], delta, ring)]
        parcels = by_file(parcels, circuit.nodes, self._new_path(PAYLOAD_SUFFIX))
        if mixed is None:
            return rows, writes, parcels
        stepped, recomputed = apart(writes)
        path = self._stage(recomputed)
        if path is not None:
            owners = range(self.cargo.partitions)
            parcels += [Parcel(owner, self.cargo.levels, PATH, path.encode()) for owner in owners]
        return rows, stepped, parcels

    def _compared(self, paths: list[str]) -> WriteSet:
        """Return what differs between what was recomputed and the stored parts that are this task's."""
        mixed = self.plan.members.mixed
        assert mixed is not None
        _, views = opened(self.cargo.open_spaces)
        failpoint("stage:compare")
        made: list[Made] = [MadeHere(mixed.of_nothing), *self._of_this_epoch(lambda: [*map(StagedParts, paths)])]
        return difference(views, fence(self.plan), self.cargo.comparisons[self.partition], made)

    def _of_this_epoch(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns; where it fails and others have published the epoch, that is the reason.

        Then the log may be purged and the files that tasks leave for one another may be removed.
        """
        try:
            return read()
        except (ConflictError, StoreError):
            self._check_fence(opened(self.cargo.open_spaces)[1])
            raise

    def _check_fence(self, views: Space) -> None:
        with views.read() as txn:
            fence(self.plan)(txn)

    def _stage(self, writes: WriteSet) -> str | None:
        if not (writes.tables or writes.merges or writes.rows):
            return None
        path = self._new_path(SUFFIX)
        failpoint("stage:before")
        write_stage(path, writes)
        failpoint("stage:after")
        return path

    def _new_path(self, suffix: str) -> str:
        cadence, epoch = self.plan.members.cadence, self.plan.number
        cargo = self.cargo
        return stage_path(cargo.staging_path, cadence, epoch, self.level, self.partition, suffix, cargo.run)


def level_zero_deltas(
    base: Space, published: Lookups, plan: EpochPlan, shares: tuple[Share, ...], probe: Probe
) -> dict[int, Delta]:
    """Return what one task reads, by entry.

    Args:
        base: the base space.
        published: the state before the epoch.
        plan: the epoch.
        shares: the task's parts of it, each read in transactions of its own.
        probe: measures the reading.

    Raises:
        ConflictError: ``LOG_PURGED`` where a part of the log was removed before it was read.
    """
    deltas = deltas_of(base, published, plan, shares, probe)
    if plan.scan is None:
        # Asked afterwards: the log is purged from its beginning, so what is there now was there all the time.
        with base.read() as txn:
            reader.check_not_purged(txn, plan.after)
    return deltas
