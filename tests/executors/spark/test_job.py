"""Epochs as fused jobs: the same state as the circuit stepped in one process, and the shape that was promised."""

from __future__ import annotations

import os
import signal
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.executors.spark.cadence import CUSTOMERS, ORDERS, VIEWS, Cadence, Opener
from tests.executors.spark.jobs import job_group, shape
from viewkeeper.clock import new_identifier
from viewkeeper.errors import ConflictError, StoreError, ViewkeeperError
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.executors.spark import job
from viewkeeper.executors.spark.job import SparkExecutor
from viewkeeper.executors.spark.payload_files import PAYLOAD_SUFFIX
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.stage import clear_stage, read_stage, stage_path, sweep_stage
from viewkeeper.store.transactions import DeleteRow, Operation, PutRow

pytestmark = pytest.mark.spark

SUMS = "SELECT status, COUNT(*) AS n, SUM(amount + {0}) AS total FROM orders GROUP BY status"
JOINED_BY_TWO_KEYS = (
    "SELECT o.id, c.name, d.region FROM orders o JOIN customers c ON o.customer = c.id AND o.amount > {0}"
    " JOIN customers d ON c.name = d.name"
)
ON_VIEWS = ("joined", "by_region", "largest")
# Stages counted by hand, not the compiler's levels: one reads the log, then there is one for each time that rows must
# go to the owners of other keys.
SHAPES: dict[str, tuple[int, dict[str, str]]] = {
    # Log; to the owner of the key.
    "rows": (2, {"v": "SELECT id, amount * 2 AS twice FROM orders WHERE status = 'new'"}),
    # Log; to the owner of the group.
    "groups": (2, {"v": SUMS.format(0)}),
    # Log; both sides to the owner of the key that they share, which the view's own key begins with.
    "a join": (2, {"v": VIEWS["joined"]}),
    # The same for three sides.
    "joins that share their key": (
        2,
        {
            "v": "SELECT o.id, c.name, d.region FROM orders o"
            " JOIN customers c ON o.id = c.id JOIN customers d ON o.id = d.id"
        },
    ),
    # Log; owner of the customer; owner of the name; owner of the view's key. Still one job.
    "joins that do not share their key": (4, {"v": JOINED_BY_TWO_KEYS.format(0)}),
    # One more for each view on a view: owner of the region, owner of the only row.
    "a view on a view": (3, {name: VIEWS[name] for name in ON_VIEWS[:2]}),
    "a view on a view on a view": (4, {name: VIEWS[name] for name in ON_VIEWS}),
    # As many as the view needs that needs most.
    "ten views": (4, VIEWS),
}


def changes(random: Random, count: int) -> list[Operation]:
    """Return random writes of both tables, among them rows whose division fails."""
    found: list[Operation] = []
    for _ in range(count):
        order, customer = random.randrange(60), random.choice([None, *range(12)])
        pick = random.random()
        if pick < 0.55:
            amount = None if random.random() < 0.1 else Decimal(random.randrange(-99999, 99999)) / 100
            found.append(
                PutRow(ORDERS, (order, customer, amount, random.choice(["new", "paid", "sent", None, "Köln"])))
            )
        elif pick < 0.75:
            found.append(DeleteRow(ORDERS, (order,)))
        elif pick < 0.9:
            found.append(PutRow(CUSTOMERS, (order % 12, random.choice(["Ann", "Bo"]), random.choice(["N", "S", None]))))
        else:
            found.append(DeleteRow(CUSTOMERS, (order % 12,)))
    return found


def executor(spark: SparkSession, cadence: Cadence, partitions: int | None = None) -> SparkExecutor:
    return SparkExecutor(lambda: spark, Opener(cadence.folder.path), cadence.folder.staging_path, partitions)


@pytest.mark.parametrize("partitions", [None, 1, 3])
def test_publishes_what_one_process_would(tmp_path: Path, spark: SparkSession, partitions: int | None) -> None:
    random = Random(partitions or 0)
    with Cadence(tmp_path / "here", VIEWS) as here, Cadence(tmp_path / "there", VIEWS) as there:
        local = LocalExecutor(here.folder.base, here.folder.views)
        remote = executor(spark, there, partitions)
        for epoch in range(5):
            for _ in range(random.randrange(1, 6)):
                operations = changes(random, random.randrange(1, 60))
                here.commit(*operations)
                there.commit(*operations)
            plan = here.plan()
            rows = here.publish(plan, local.run(plan))
            # The first epoch makes the rows of global aggregates, in one process.
            first = LocalExecutor(there.folder.base, there.folder.views)
            plan = there.plan()
            result = (remote if epoch else first).run(plan)
            assert there.publish(plan, result) == rows
            assert there.state() == here.state()
        assert result.executor == "spark"
        assert here.levels >= 4


@pytest.mark.parametrize("name", SHAPES)
def test_runs_one_job_of_so_many_stages_with_the_tasks_of_one(tmp_path: Path, spark: SparkSession, name: str) -> None:
    stages, views = SHAPES[name]
    with Cadence(tmp_path / "s", views) as cadence:
        cadence.commit(*changes(Random(1), 200))
        with job_group(spark, f"shape of {name}"):
            executor(spark, cadence, 3).run(cadence.plan())
        assert shape(spark, f"shape of {name}") == [[3] * stages]


@pytest.mark.parametrize(("sql", "stages"), [(SUMS, 2), (JOINED_BY_TWO_KEYS, 4)], ids=["groups", "joins"])
def test_twenty_views_take_the_stages_and_tasks_of_one(
    tmp_path: Path, spark: SparkSession, sql: str, stages: int
) -> None:
    shapes = []
    for count in (1, 20):
        with Cadence(tmp_path / str(count), {f"v{i}": sql.format(i) for i in range(count)}) as cadence:
            cadence.commit(*changes(Random(2), 100))
            with job_group(spark, f"{count} views of {stages} stages"):
                executor(spark, cadence).run(cadence.plan())
            shapes.append(shape(spark, f"{count} views of {stages} stages"))
    assert shapes == [[[2] * stages]] * 2


def test_the_driver_collects_paths_and_counts_only(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    frames = type(spark.range(1))
    plain = frames.collect

    def counted(frame):
        rows = plain(frame)
        collected.extend(len(row.payload) for row in rows)
        return rows

    monkeypatch.setattr(frames, "collect", counted)
    with Cadence(tmp_path / "s", VIEWS) as cadence:
        cadence.commit(*(PutRow(ORDERS, (i, i % 50, Decimal(i), f"status {i}")) for i in range(20_000)))
        remote = executor(spark, cadence)
        result = remote.run(cadence.plan())
    assert sum(len(w.keys) for writes in result.writes for all_ in writes.tables.values() for w in all_) > 40_000
    # At most one from each task: VIEWS take four stages of two.
    assert len(collected) == len(remote.reports) <= 8
    assert max(collected) < 1024


def test_reads_a_large_transaction_with_all_tasks(tmp_path: Path, spark: SparkSession) -> None:
    with Cadence(tmp_path / "s", {"v": SUMS.format(0)}) as cadence:
        cadence.commit(*(PutRow(ORDERS, (i, None, Decimal(i), "new")) for i in range(30_000)))
        remote = executor(spark, cadence, 3)
        remote.run(cadence.plan())
        taken = [report.rows for report in remote.reports if report.level == 0]
    assert sum(taken) == 30_000
    assert len(taken) == 3
    assert min(taken) > 5_000


class KillOnce:
    """Kills the worker that first calls it, as ``kill -9`` does."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __call__(self) -> None:
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_changes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    with Cadence(tmp_path / "here", VIEWS) as here, Cadence(tmp_path / "there", VIEWS) as there:
        mark = tmp_path / "killed"
        # The driver opens the store too: it must not be the one that dies.
        opener = Opener(there.folder.path, unless_driver(KillOnce(mark)))
        remote = SparkExecutor(lambda: spark, opener, there.folder.staging_path)
        for epoch in range(2):
            operations = changes(Random(epoch), 200)
            here.commit(*operations)
            there.commit(*operations)
            plan = here.plan()
            here.publish(plan, LocalExecutor(here.folder.base, here.folder.views).run(plan))
            plan = there.plan()
            first = LocalExecutor(there.folder.base, there.folder.views)
            there.publish(plan, (remote if epoch else first).run(plan))
        assert mark.exists()
        assert there.state() == here.state()


def unless_driver(kill: KillOnce):
    driver = os.getpid()

    def call() -> None:
        if os.getpid() != driver:
            kill()

    return call


def test_a_task_that_always_dies_ends_in_one_sentence(tmp_path: Path, spark: SparkSession) -> None:
    driver = os.getpid()

    def die() -> None:
        if os.getpid() != driver:
            raise RuntimeError("the disk has melted")

    with Cadence(tmp_path / "s", VIEWS) as cadence:
        cadence.commit(*changes(Random(4), 50))
        broken = SparkExecutor(lambda: spark, Opener(cadence.folder.path, die), cadence.folder.staging_path)
        with pytest.raises(StoreError) as caught:
            broken.run(cadence.plan())
        assert caught.value.code == "SPARK_JOB_FAILED"
        assert "the disk has melted" in caught.value.message
        assert "\n" not in caught.value.message
        assert executor(spark, cadence).run(cadence.plan()).writes


def test_an_error_of_ours_comes_back_as_it_is_and_leaves_no_files_but_those_of_a_rival(
    tmp_path: Path, spark: SparkSession
) -> None:
    driver, staged = os.getpid(), tmp_path / "s" / "staging"

    def refuse() -> None:
        if os.getpid() != driver and len(os.listdir(staged)) > 1:
            raise StoreError("DISK_FULL", "There is no room.", {"path": "/x"})

    with Cadence(tmp_path / "s", VIEWS) as cadence:
        cadence.commit(*changes(Random(5), 50))
        plan = cadence.plan()
        rival = stage_path(str(staged), plan.members.cadence, plan.number, 0, 0, run=new_identifier())
        Path(rival).touch()
        with pytest.raises(ViewkeeperError) as caught:
            SparkExecutor(lambda: spark, Opener(cadence.folder.path, refuse), cadence.folder.staging_path).run(plan)
        assert list(staged.iterdir()) == [Path(rival)]
    assert (type(caught.value), caught.value.code, caught.value.details) == (StoreError, "DISK_FULL", {"path": "/x"})


def test_an_epoch_that_somebody_else_has_published_is_fenced_off(tmp_path: Path, spark: SparkSession) -> None:
    with Cadence(tmp_path / "s", VIEWS) as cadence:
        cadence.commit(*changes(Random(6), 50))
        plan = cadence.plan()
        remote = executor(spark, cadence)
        cadence.publish(plan, remote.run(plan))
        with pytest.raises(ConflictError) as caught:
            remote.run(plan)
        assert caught.value.code == "EPOCH_SUPERSEDED"
        assert clear_stage(cadence.folder.staging_path, plan.members.cadence, plan.number) > 0
        assert os.listdir(cadence.folder.staging_path) == []


def test_files_that_went_since_somebody_else_has_published_are_no_loss(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cadence(tmp_path / "s", VIEWS) as cadence:
        cadence.commit(*changes(Random(8), 50))
        plan, folder = cadence.plan(), cadence.folder

        def read_late(path: str) -> WriteSet:
            cadence.publish(plan, LocalExecutor(folder.base, folder.views).run(plan))
            assert sweep_stage(folder.staging_path, lambda: {plan.members.cadence: plan.number}) > 0
            return read_stage(path)

        monkeypatch.setattr(job, "read_stage", read_late)
        with pytest.raises(ConflictError) as caught:
            executor(spark, cadence).run(plan)
        assert caught.value.code == "EPOCH_SUPERSEDED"


def test_many_rows_go_by_file_from_task_to_task(tmp_path: Path, spark: SparkSession) -> None:
    orders = [PutRow(ORDERS, (i, i * 7919 % 1000, Decimal(i), f"status {i % 5000}")) for i in range(20_000)]
    views = {"sums": SUMS.format(0), "joined": VIEWS["joined"]}
    with Cadence(tmp_path / "here", views) as here, Cadence(tmp_path / "there", views) as there:
        for cadence in (here, there):
            cadence.commit(*(PutRow(CUSTOMERS, (i, f"name {i}", None)) for i in range(1000)), *orders)
        here.publish(here.plan(), LocalExecutor(here.folder.base, here.folder.views).run(here.plan()))
        plan, remote = there.plan(), executor(spark, there)
        result = remote.run(plan)
        folder = Path(there.folder.staging_path)
        sent = {path.name.split(".")[2] for path in folder.glob(f"*{PAYLOAD_SUFFIX}")}
        there.publish(plan, result)
        assert there.state() == here.state()
        assert sent == {"0"}
        remote.clear(plan)
        assert list(folder.iterdir()) == []


def test_what_travels_stays_small(tmp_path: Path, spark: SparkSession) -> None:
    from viewkeeper.executors.spark.cargo import pack_members

    with Cadence(tmp_path / "s", {f"v{i}": SUMS.format(i) for i in range(20)}) as cadence:
        fresh = len(pack_members(cadence.members))
        cadence.commit(*changes(Random(7), 100))
        plan = cadence.plan()
        cadence.publish(plan, LocalExecutor(cadence.folder.base, cadence.folder.views).run(plan))
        assert len(pack_members(cadence.members)) == fresh < 40_000
