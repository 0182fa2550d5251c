"""The kills of ``test_kills`` with epochs by Spark: drivers, Python workers, and the executors of a cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.cli.command import WAIT_SECONDS, start, wait_for_line
from tests.executors.spark.test_cluster import cluster  # noqa: F401 - a fixture
from tests.integration.killing import KILLED, WRITER, Report, beside_a_writer, chance, ended, hits, killed_at, repeat
from tests.integration.nursery import Nursery, nursery
from tests.integration.proof import QUICK, VIEWS, Proof

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("own-spark")]

HITS = hits(2)
MODULE = "tests.integration.spark_roles"


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names the failpoint at which the next worker dies."""
    return tmp_path_factory.mktemp("token") / "failpoint"


@pytest.fixture(scope="module")
def children(token: Path) -> Iterator[Nursery]:
    with nursery(MODULE, VIEWKEEPER_FAILPOINT=f"@{token}") as made:
        yield made


def assert_verified(children: Nursery, proof: Proof) -> None:
    """Every view equals its query over the base rows, by Spark SQL."""
    status, said = ended(children.start("verify", path=proof.path))
    assert status == 0
    assert len(said) == len(proof.db.views())
    assert all(" is right: " in line for line in said), said


@pytest.mark.parametrize("point", ["stage:before", "stage:after", "stage:compare"])
def test_worker_killed_around_staging(
    children: Nursery, token: Path, tmp_path: Path, kills: Report, point: str
) -> None:
    recomputed = VIEWS[0].replace(" grouped AS ", " recomputed REFRESH POLICY FULL AS ")
    with Proof(tmp_path / "store", (*VIEWS, recomputed)) as proof:

        def kill(hit: int) -> None:
            proof.write(5)
            token.write_text(point, encoding="utf-8")
            assert ended(children.start("refresh", path=proof.path)) == (0, ["ready", "spark"])
            assert not token.exists(), "no worker came by"

        repeat(kills, f"Spark's Python worker at {point}", proof, HITS, kill)
        assert not list(Path(proof.path, "staging").iterdir())
        assert_verified(children, proof)


@pytest.mark.parametrize(
    "point",
    ["publish:before", "publish:before-commit", "publish:after", "purge:before", "purge:between", "purge:after"],
)
def test_driver_killed_around_its_steps(children: Nursery, tmp_path: Path, kills: Report, point: str) -> None:
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            proof.write(5)
            arrival = hit % 3 + 1 if point.startswith("publish") or point == "purge:between" else 1
            killed_at(children, f"{point}#{arrival}", "refresh", path=proof.path)

        def left(hit: int) -> None:
            proof.check()
            # Spark again goes on with what the killed driver has left.
            status, said = ended(children.start("refresh", path=proof.path))
            assert status == 0, said

        repeat(kills, f"Spark's driver at {point}", proof, HITS, kill, left)


# All that a fill by Spark and its swap pass on the way; the second piece is the first that reads rows. "remove:between"
# is no part of it: there a cadence ends with its last view, without an epoch, so that no executor takes part.
FILL = (
    *("catalog:before-commit", "catalog:after", "build:held", "build:begun"),
    *("publish:before#2", "publish:before-commit#2", "publish:after#2"),
    *("build:before-swap", "build:after-swap", "remove:before", "remove:after"),
)


@pytest.mark.parametrize("point", FILL)
def test_driver_killed_while_a_view_is_filled(children: Nursery, tmp_path: Path, kills: Report, point: str) -> None:
    """Of two fills that are cut off, Spark finishes one and the local executor the other."""
    with Proof(tmp_path / "store", VIEWS[:2], **QUICK) as proof:
        proof.write(10)

        def text(hit: int) -> str:
            return (
                "CREATE OR REPLACE MATERIALIZED VIEW grouped AS SELECT customer, COUNT(*) AS n, MAX(amount) AS most"
                f" FROM orders WHERE x < {10 + hit} GROUP BY customer"
            )

        def kill(hit: int) -> None:
            assert killed_at(children, point, "sql", path=proof.path, text=text(hit)) == ["ready"]

        def left(hit: int) -> None:
            proof.check()
            proof.write(2)
            if hit % 2 == 0:
                status, said = ended(children.start("refresh", path=proof.path))
                # The first piece, which reads no rows, is never Spark's.
                assert (status, said[-1].removeprefix("local and ")) == (0, "spark"), said
            proof.check_fresh()
            shown = str(proof.db.sql("SHOW CREATE MATERIALIZED VIEW grouped").rows())
            assert (f"< {10 + hit} " in shown) == (point != "catalog:before-commit")

        repeat(kills, f"Spark's driver at {point}", proof, HITS, kill, left)


def test_driver_killed_at_any_moment(children: Nursery, tmp_path: Path, kills: Report) -> None:
    moments = chance("driver")
    with Proof(tmp_path / "store", **QUICK) as proof:

        def kill(hit: int) -> bool:
            proof.write(20)
            with beside_a_writer(children, proof, 300):
                child = children.start("refresh", path=proof.path)
                assert child.hear() == "ready"
                child.hear(moments.uniform(0, 0.8))
                with suppress(ProcessLookupError):
                    child.kill()
                return ended(child)[0] == KILLED

        name = "Spark's driver at any moment, beside a writer"
        repeat(kills, name, proof, HITS, kill, lambda hit: proof.find_unconfirmed(WRITER))
        assert_verified(children, proof)


def test_worker_killed_at_any_moment(children: Nursery, tmp_path: Path, kills: Report) -> None:
    moments = chance("worker")
    with Proof(tmp_path / "store", **QUICK) as proof:

        def kill(hit: int) -> bool:
            proof.write(20)
            with beside_a_writer(children, proof, 300):
                child = children.start("refresh", path=proof.path)
                assert child.hear() == "ready"
                child.hear(moments.uniform(0, 0.8))
                is_hit = _kill_a_worker(children.process_id, moments)
                assert ended(child)[0] == 0
                return is_hit

        name = "Spark's Python worker at any moment, beside a writer"
        repeat(kills, name, proof, HITS, kill, lambda hit: proof.find_unconfirmed(WRITER))
        assert_verified(children, proof)


def _kill_a_worker(nursery_id: int, moments: Random) -> bool:
    """Kill a Python worker below the nursery's JVM; return whether there was one."""
    below = psutil.Process(nursery_id).children(recursive=True)
    daemons = [p for p in below if "pyspark.daemon" in " ".join(_command(p)) and p.children()]
    workers = [worker for daemon in daemons for worker in daemon.children()]
    if not workers:
        return False
    try:
        moments.choice(workers).kill()
    except psutil.NoSuchProcess:
        return False
    return True


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_the_command_killed_while_it_maintains_by_spark(children: Nursery, tmp_path: Path, kills: Report) -> None:
    """The whole of it dies by itself, its JVM too, and what it has staged goes with the next refresh, without Spark.

    Its two cadences run side by side.
    """
    moments = chance("command")
    with Proof(tmp_path / "store", VIEWS[:3], **QUICK) as proof:

        def kill(hit: int) -> None:
            proof.write(5)
            process = start("maintain", proof.path, "--json", "--set", "executor=spark", stderr=subprocess.DEVNULL)
            assert json.loads(wait_for_line(process, "continuous", "stdout"))["executor"] == "spark"
            with beside_a_writer(children, proof, 300):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moments.uniform(0, 0.8))
                below = psutil.Process(process.pid).children(recursive=True)
                assert any("java" in process.name() for process in below)
                process.kill()
                assert process.wait() == KILLED
            process.communicate()
            _, alive = psutil.wait_procs(below, timeout=WAIT_SECONDS)
            assert not alive

        def left(hit: int) -> None:
            proof.find_unconfirmed(WRITER)
            proof.check_fresh()
            assert not list(Path(proof.path, "staging").iterdir())

        repeat(kills, "the command that maintains by Spark at any moment, beside a writer", proof, hits(1), kill, left)


def test_executor_of_a_cluster_killed(
    cluster: str,  # noqa: F811 - the fixture of that name
    tmp_path: Path,
    kills: Report,
) -> None:
    """Two worker processes of a standalone cluster; the executor's JVM of one dies at any moment of an epoch."""
    moments = chance("executor")
    with Proof(tmp_path / "store") as proof, nursery(MODULE, VIEWKEEPER_TEST_MASTER=cluster) as children:
        proof.write(40)
        # The first epochs start the Python workers; by then the executors are there.
        assert ended(children.start("refresh", path=proof.path)) == (0, ["ready", "spark"])
        proof.check()

        def kill(hit: int) -> bool:
            proof.write(40)
            with beside_a_writer(children, proof, 300):
                child = children.start("refresh", path=proof.path)
                assert child.hear() == "ready"
                early = child.hear(moments.uniform(0, 1.0))
                executors = [p for p in psutil.process_iter() if _is_executor(p, cluster)]
                assert executors
                moments.choice(executors).kill()
                status, said = ended(child)
                assert (status, early or said) == (0, "spark" if early else ["spark"])
                return early is None

        name = "executor of a standalone cluster at any moment, beside a writer"
        repeat(kills, name, proof, HITS, kill, lambda hit: proof.find_unconfirmed(WRITER))


def _is_executor(process: psutil.Process, master: str) -> bool:
    if not any("CoarseGrainedExecutorBackend" in word for word in _command(process)):
        return False
    # Only what our own cluster's workers have started.
    return any(master in _command(parent) for parent in process.parents())
