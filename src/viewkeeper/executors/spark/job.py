"""The Spark executor: an epoch of all due views as one fused job, one stage a level of their circuit.

    range(P) -> level 0 -> repartition by owner -> level 1 -> repartition by owner -> ... -> reports to the driver

The driver plans who reads what and collects reports: paths of staged files and counts, never rows. The number of stages
is that of the circuit's levels and the number of tasks P a stage, whatever the number of views. Where some view is
recomputed, one more stage compares what was made with what is stored.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.errors import StoreError, ViewkeeperError
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.executors.spark import cargo
from viewkeeper.executors.spark.catalyst import computed, with_catalyst
from viewkeeper.executors.spark.packing import SCHEMA, TaskReport, unpack_report
from viewkeeper.executors.spark.session import job_session
from viewkeeper.executors.spark.shares import comparisons_of, shares_of
from viewkeeper.executors.spark.task import level_function
from viewkeeper.executors.spark.types import translated
from viewkeeper.operators.circuit import Node
from viewkeeper.pipeline.costs import Measured
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, fence
from viewkeeper.pipeline.memory import together
from viewkeeper.pipeline.stage import clear_run, clear_stage, read_stage

_POOL = "spark.scheduler.pool"
# Errors of staged files that may have been removed meanwhile.
_STAGED = frozenset({"STAGED_FILE_LOST", "STAGING_FAILED"})


class SparkExecutor:
    """Runs epochs on Spark.

    Args:
        session_factory: gives the session when it is first needed; a user's keeps its settings.
        open_spaces: opens the store: (base, views). Picklable; best a frozen dataclass, by which workers tell that they
            have the store open already.
        staging_path: the folder of staged files, the same for driver and workers.
        partitions: tasks a stage; by default Spark's default parallelism, which is the number of its cores.
    """

    name = "spark"

    def __init__(
        self,
        session_factory: Callable[[], SparkSession],
        open_spaces: cargo.OpenSpaces,
        staging_path: str,
        partitions: int | None = None,
    ) -> None:
        self._session_factory = session_factory
        self._open_spaces = open_spaces
        self._staging_path = staging_path
        self._partitions = partitions
        self._session: SparkSession | None = None
        self.reports: tuple[TaskReport, ...] = ()

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run ``plan`` and return its write sets.

        Args:
            plan: the epoch.

        Raises:
            ViewkeeperError: what a task has raised, for example ConflictError ``EPOCH_SUPERSEDED``; StoreError
                ``SPARK_JOB_FAILED`` where Spark has given up on a task.
        """
        try:
            return self._run(plan)
        except StoreError as error:
            if error.code in _STAGED:
                # What is staged for an epoch that somebody else has published is swept: then that is the reason.
                with cargo.borrowed(self._open_spaces) as (_, views), views.read() as txn:
                    fence(plan)(txn)
            raise

    def _run(self, plan: EpochPlan) -> EpochResult:
        session = self._ready_session()
        compute = partial(computed, session)
        if plan.is_first_piece:
            # It reads nothing. Tasks pass over operators without rows, and so would make none of global aggregates.
            with cargo.borrowed(self._open_spaces) as (base, views):
                return LocalExecutor(base, views, compute=compute).run(plan)
        if plan.members.mixed is not None:
            mixed = plan.members.mixed.with_of_nothing(compute)
            plan = replace(plan, members=replace(plan.members, mixed=mixed))
        partitions = self._partitions or session.sparkContext.defaultParallelism
        # The start of Spark is no cost of this epoch's way.
        started = SYSTEM_CLOCK.monotonic_seconds()
        with cargo.borrowed(self._open_spaces) as (base, views), base.read() as base_txn, views.read() as views_txn:
            fence(plan)(views_txn)
            shares = shares_of(base_txn, views_txn, plan, partitions)
            comparisons = comparisons_of(views_txn, plan, partitions)
        load = cargo.load(plan, shares, comparisons, self._open_spaces, self._staging_path)
        try:
            with _pool(session, plan.members.cadence):
                reports = _collect(session, load, plan.members.circuit.nodes)
        except ViewkeeperError:
            # An epoch that fails again and again must not fill the disk. Another process may be running the same one.
            clear_run(self._staging_path, plan.members.cadence, load.run)
            raise
        self.reports = reports
        used = together(report.memory for report in reports)
        writes = [read_stage(path) for path in _winning_paths(reports)]
        seconds = SYSTEM_CLOCK.monotonic_seconds() - started
        return EpochResult(writes, self.name, used, _measured(reports, seconds, load.levels))

    def clear(self, plan: EpochPlan) -> None:
        """Remove the staged files of ``plan`` and of earlier epochs of its cadence, lost attempts included."""
        clear_stage(self._staging_path, plan.members.cadence, plan.number)

    def _ready_session(self) -> SparkSession:
        # A session may be stopped and another one made between two epochs.
        if self._session is None or self._session.sparkContext._jsc is None:
            self._session = job_session(self._session_factory())
        return self._session


@contextmanager
def _pool(session: SparkSession, cadence: str) -> Iterator[None]:
    """Let this thread's jobs share the cores with those of other cadences, where Spark shares them fairly."""
    context = session.sparkContext
    before = context.getLocalProperty(_POOL)
    context.setLocalProperty(_POOL, f"viewkeeper {cadence}")
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, before)  # type: ignore[arg-type] # None takes it away


def _collect(session: SparkSession, load: cargo.Cargo, nodes: tuple[Node, ...]) -> tuple[TaskReport, ...]:
    partitions = load.partitions
    # As a type, not as text: Spark's parser takes longer than all our planning.
    schema = from_arrow_schema(SCHEMA)
    frame = session.range(0, partitions, 1, partitions).mapInArrow(level_function(load, 0), schema)
    for level in range(1, load.stages):
        frame = with_catalyst(session, frame, nodes, level)
        frame = frame.repartitionById(partitions, "owner").mapInArrow(level_function(load, level), schema)
    try:
        rows = frame.collect()
    except (PySparkException, Py4JError) as error:
        raise _job_failed(error) from error
    reports = sorted((unpack_report(bytes(row.payload)) for row in rows), key=lambda r: (r.level, r.partition))
    _raise_first_error(reports)
    return tuple(reports)


def _raise_first_error(reports: Iterable[TaskReport]) -> None:
    for report in reports:
        if report.error is not None:
            error: ViewkeeperError = pickle.loads(report.error)
            raise error


def _winning_paths(reports: Sequence[TaskReport]) -> list[str]:
    """Return the staged files; attempts that lost have theirs elsewhere, and nobody reads them."""
    paths = {(r.level, r.partition): r.path for r in reports if r.path is not None}
    if len(paths) != sum(r.path is not None for r in reports):
        raise AssertionError("two attempts of one task have come back")
    return list(paths.values())


def _measured(reports: Sequence[TaskReport], whole_seconds: float, levels: int) -> Measured:
    seconds: dict[int, float] = {}
    rows: Counter[int] = Counter()
    for report in reports:
        rows.update(report.node_rows)
        for node, taken in report.node_seconds.items():
            seconds[node] = seconds.get(node, 0.0) + taken
    # The tasks that compare run side by side.
    comparing = max((report.seconds for report in reports if report.level == levels), default=0.0)
    return Measured(seconds, rows, max(whole_seconds - comparing, 0.0), comparing)


def _job_failed(error: Exception) -> ViewkeeperError:
    ours = translated(error)
    if ours.code == "PYTHON_VERSION_MISMATCH":
        return ours
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("at ", "File ", "Driver stacktrace", "..."))]
    cause = causes[-1] if causes else type(error).__name__
    message = f"Spark gave up on an epoch: {cause} Nothing was changed; refresh again, or look at Spark's log."
    return StoreError("SPARK_JOB_FAILED", message, {"cause": cause})
