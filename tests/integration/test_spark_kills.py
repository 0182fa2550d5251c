"""The kills of ``test_kills`` with epochs by Spark: drivers, Python workers, and the executors of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.executors.spark.test_cluster import cluster  # noqa: F401 - a fixture
from tests.integration.nursery import Child, Nursery, nursery
from tests.integration.proof import Proof

pytestmark = pytest.mark.spark

HITS = int(os.environ.get("VIEWKEEPER_TEST_KILLS", "2"))
MODULE = "tests.integration.spark_roles"
KILLED = -9

Kills = Callable[[str, int], None]


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names the failpoint at which the next worker dies."""
    return tmp_path_factory.mktemp("token") / "failpoint"


@pytest.fixture(scope="module")
def children(token: Path) -> Iterator[Nursery]:
    with nursery(MODULE, VIEWKEEPER_FAILPOINT=f"@{token}") as made:
        yield made


@pytest.fixture
def kills(record_property: Callable[[str, object], None]) -> Kills:
    return lambda name, count: record_property("kills", (name, count))


def ended(child: Child) -> tuple[int, list[str]]:
    said, status = child.rest(), child.wait()
    child.close()
    return status, said


def assert_verified(children: Nursery, proof: Proof) -> None:
    """Every view equals its query over the base rows, by Spark SQL."""
    status, said = ended(children.start("verify", path=proof.path))
    assert status == 0
    assert len(said) == len(proof.db.views())
    assert all(" is right: " in line for line in said), said


@pytest.mark.parametrize("point", ["stage:before", "stage:after"])
def test_worker_killed_around_staging(children: Nursery, token: Path, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        for _ in range(HITS):
            proof.write(5)
            token.write_text(point, encoding="utf-8")
            status, said = ended(children.start("refresh", path=proof.path))
            assert (status, said) == (0, ["ready", "spark"])
            assert not token.exists(), "no worker came by"
            proof.restart()
            proof.check_fresh()
        assert not list(Path(proof.path, "staging").iterdir())
        assert_verified(children, proof)
    kills(f"Spark's Python worker at {point}", HITS)


@pytest.mark.parametrize(
    "point", ["publish:before", "publish:before-commit", "publish:after", "purge:before", "purge:after"]
)
def test_driver_killed_around_its_steps(children: Nursery, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        for hit in range(HITS):
            proof.write(5)
            arrival = hit % 3 + 1 if point.startswith("publish") else 1
            status, _ = ended(children.start("refresh", f"{point}#{arrival}", path=proof.path))
            assert status == KILLED
            proof.restart()
            proof.check()
            # Spark again goes on with what the killed driver has left.
            status, said = ended(children.start("refresh", path=proof.path))
            assert status == 0, said
            proof.check_fresh()
    kills(f"Spark's driver at {point}", HITS)


@pytest.mark.parametrize("point", ["build:before-swap", "build:after-swap"])
def test_driver_killed_while_a_view_is_filled(children: Nursery, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(10)
        for hit in range(HITS):
            text = (
                "CREATE OR REPLACE MATERIALIZED VIEW grouped AS SELECT customer, COUNT(*) AS n, MAX(amount) AS most"
                f" FROM orders WHERE x < {10 + hit} GROUP BY customer"
            )
            status, said = ended(children.start("sql", point, path=proof.path, text=text))
            assert (status, said) == (KILLED, ["ready"])
            proof.restart()
            proof.write(2)
            proof.check_fresh()
    kills(f"Spark's driver at {point}", HITS)


def test_driver_and_workers_killed_at_any_moment(children: Nursery, tmp_path: Path, kills: Kills) -> None:
    chance = Random(5)
    drivers = workers = 0
    with Proof(tmp_path / "store") as proof:
        while drivers < HITS or workers < HITS:
            assert drivers + workers < 20 * HITS, "nothing is hit"
            proof.write(20)
            child = children.start("refresh", path=proof.path)
            assert child.hear() == "ready"
            child.hear(chance.uniform(0, 0.8))
            if drivers <= workers:
                with suppress(ProcessLookupError):
                    child.kill()
                drivers += ended(child)[0] == KILLED
            else:
                workers += _kill_a_worker(children.process_id, chance)
                assert ended(child)[0] == 0
            proof.restart()
            proof.check_fresh()
        assert_verified(children, proof)
    kills("Spark's driver at any moment", drivers)
    kills("Spark's Python worker at any moment", workers)


def _kill_a_worker(nursery_id: int, chance: Random) -> bool:
    """Kill a Python worker below the nursery's JVM; return whether there was one."""
    below = psutil.Process(nursery_id).children(recursive=True)
    daemons = [p for p in below if "pyspark.daemon" in " ".join(_command(p)) and p.children()]
    workers = [worker for daemon in daemons for worker in daemon.children()]
    if not workers:
        return False
    try:
        chance.choice(workers).kill()
    except psutil.NoSuchProcess:
        return False
    return True


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_executor_of_a_cluster_killed(
    cluster: str,  # noqa: F811 - the fixture of that name
    tmp_path: Path,
    kills: Kills,
) -> None:
    """Two worker processes of a standalone cluster; the executor's JVM of one dies during epochs."""
    with Proof(tmp_path / "store") as proof, nursery(MODULE, VIEWKEEPER_TEST_MASTER=cluster) as children:
        proof.write(40)
        child = children.start("refresh", path=proof.path)
        assert child.hear() == "ready"
        # The first epochs start the Python workers; by then the executors are there.
        assert child.hear() == "spark"
        assert ended(child) == (0, [])
        proof.check()
        proof.write(40)
        child = children.start("refresh", path=proof.path)
        assert child.hear() == "ready"
        executors = [p for p in psutil.process_iter() if _is_executor(p, cluster)]
        assert executors
        executors[0].kill()
        assert ended(child) == (0, ["spark"])
        proof.restart()
        proof.check_fresh()
    kills("executor of a standalone cluster", 1)


def _is_executor(process: psutil.Process, master: str) -> bool:
    if not any("CoarseGrainedExecutorBackend" in word for word in _command(process)):
        return False
    # Only what our own cluster's workers have started.
    return any(master in _command(parent) for parent in process.parents())
