"""What a maintainer meets that is not its end: a full disk; and what others leave behind: requests of killed askers."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import viewkeeper as vk
from tests.cli.command import done, json_of
from tests.integration.nursery import Child, Nursery, nursery
from tests.integration.proof import Proof
from tests.integration.roles import LOCAL, rows_of
from viewkeeper.coordinator import requests
from viewkeeper.errors import StoreError, WaitTimeout
from viewkeeper.log.position import Position
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings
from viewkeeper.testing.auditor import apply

pytestmark = pytest.mark.slow

VIEWS = (
    "CREATE MATERIALIZED VIEW large AS SELECT id, amount, amount + x AS more FROM orders",
    "CREATE MATERIALIZED VIEW small REFRESH EVERY 0.01 SECONDS AS SELECT region, COUNT(*) AS n FROM customers"
    " GROUP BY region",
)
ROOM_BYTES = 200_000


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


def end(child: Child) -> None:
    child.kill()
    child.wait()
    child.close()


def limit_files(process_id: int, size_bytes: int) -> None:
    _, hard = resource.prlimit(process_id, resource.RLIMIT_FSIZE)
    resource.prlimit(process_id, resource.RLIMIT_FSIZE, (size_bytes, hard))


def wait_until(child: Child, condition: Callable[[], object]) -> None:
    """Wait for something that ``child`` brings about, as long as it lives."""
    while not condition():
        assert not child.is_over(0.01), "it has ended"


def fill(proof: Proof) -> None:
    """Write what the views have no room for, and more than the log's file may hold in the limited process."""
    rows = rows_of(20_000)
    position = proof.db.put_batch("orders", rows).sequence_number
    operations = [("put", "orders", row) for row in rows]
    proof.auditor.committed(position, lambda tables: apply(tables, operations))


def position_of(proof: Proof, name: str) -> int:
    return next(int(view["position"]) for view in proof.db.status()["views"] if view["name"] == name)


def troubles(proof: Proof) -> dict[str, Any]:
    return {trouble["task"]: trouble for trouble in proof.db.status()["troubles"]}


def put_region(proof: Proof, key: int) -> Position:
    row = {"id": key, "region": f"region {key}"}
    position = proof.db.put("customers", row)
    proof.auditor.committed(position.sequence_number, lambda tables: apply(tables, [("put", "customers", row)]))
    return position


def test_a_maintainer_on_a_full_disk_goes_on_with_the_rest_and_recovers_by_itself(
    children: Nursery, tmp_path: Path
) -> None:
    with Proof(tmp_path / "store", views=VIEWS) as proof:
        proof.write(3)
        maintainer = children.start("maintain", path=proof.path, seconds=600, epoch_rows_max=100_000)
        assert maintainer.hear() == "ready"
        proof.db.wait_for(put_region(proof, 100))
        before = position_of(proof, "large")
        limit_files(maintainer.process_id, Path(proof.path, "views", "data.mdb").stat().st_size + ROOM_BYTES)
        fill(proof)
        wait_until(maintainer, lambda: "refreshing continuous" in troubles(proof))
        # The others go on, writers and readers see nothing of it, and nothing is half done.
        for key in range(101, 106):
            proof.db.wait_for(put_region(proof, key), "small")
        assert position_of(proof, "large") == before
        proof.check()
        trouble = troubles(proof)["refreshing continuous"]
        assert trouble["code"] == "DISK_FULL"
        assert "Raise the limit" in trouble["message"]
        [shown] = [t for t in json_of("status", proof.path)["troubles"] if t["task"] == "refreshing continuous"]
        assert (shown["code"], shown["message"]) == ("DISK_FULL", trouble["message"])
        assert f"refreshing continuous: [DISK_FULL] {trouble['message']}" in " ".join(
            done("status", proof.path).split()
        )
        # Whoever asks it for more is told, and whoever waits.
        with pytest.raises(StoreError, match="DISK_FULL"):
            proof.db.refresh("large")
        with pytest.raises(WaitTimeout, match="DISK_FULL"):
            proof.db.wait_for(put_region(proof, 106), "large", timeout_seconds=0.01)
        # The log's file is over its limit, too: purging waits likewise.
        wait_until(maintainer, lambda: "purging the log" in troubles(proof))
        limit_files(maintainer.process_id, resource.RLIM_INFINITY)
        proof.db.wait_for(put_region(proof, 107), timeout_seconds=120)
        wait_until(maintainer, lambda: not troubles(proof))
        proof.check()
        end(maintainer)
        assert proof.db.status()["troubles"] == []
        proof.check_fresh()


def test_the_child_of_the_api_recovers_from_a_full_disk(tmp_path: Path) -> None:
    with Proof(tmp_path / "store", views=VIEWS, epoch_rows_max=100_000) as proof:
        with proof.db.maintain() as maintainer:
            assert maintainer.process_id is not None
            proof.db.wait_for(put_region(proof, 100))
            limit_files(maintainer.process_id, Path(proof.path, "views", "data.mdb").stat().st_size + ROOM_BYTES)
            fill(proof)
            while "refreshing continuous" not in troubles(proof):
                os.kill(maintainer.process_id, 0)
                os.sched_yield()
            limit_files(maintainer.process_id, resource.RLIM_INFINITY)
            proof.db.wait_for(put_region(proof, 101), timeout_seconds=120)
        proof.check_fresh()


# ---- requests of killed askers ----


def requests_of(path: str) -> dict[bytes, requests.Request]:
    with closing(Opened(path)) as store, store.base.read() as txn:
        return dict(requests.all_of(txn))


class Opened:
    def __init__(self, path: str) -> None:
        self._store = open_store(path, Settings.of(LOCAL), create=False)
        self.base = self._store.base

    def close(self) -> None:
        self._store.close()


def asked(children: Nursery, proof: Proof) -> Child:
    """Return a child that has asked the maintainer for a refresh and waits."""
    asker = children.start("refresh", path=proof.path)
    assert asker.hear() == "ready"
    wait_until(asker, lambda: requests_of(proof.path))
    return asker


def test_requests_of_killed_askers_go_when_a_maintainer_comes(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store", views=VIEWS) as proof:
        proof.write(3)
        hanging = children.start("hold", path=proof.path)
        assert hanging.hear() == "ready"
        end(asked(children, proof))
        assert len(requests_of(proof.path)) == 1
        # Nobody waits for it, so it is not worked for.
        with closing(Opened(proof.path)) as store, store.base.read() as txn:
            assert list(requests.waiting(txn)) == []
        end(hanging)
        maintainer = children.start("maintain", path=proof.path)
        wait_until(maintainer, lambda: not requests_of(proof.path))
        end(maintainer)
        proof.check_fresh()


def test_requests_of_killed_askers_go_with_a_refresh(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store", views=VIEWS) as proof:
        proof.write(3)
        hanging = children.start("hold", path=proof.path)
        assert hanging.hear() == "ready"
        killed, alive = asked(children, proof), children.start("refresh", path=proof.path)
        wait_until(alive, lambda: len(requests_of(proof.path)) == 2)
        end(killed)
        end(hanging)
        # The one that lives does its work itself, and clears away what the other has left.
        assert alive.rest() == ["ready", "local"]
        assert alive.wait() == 0
        alive.close()
        assert requests_of(proof.path) == {}
        proof.check_fresh()


def test_an_answer_that_nobody_collects_goes(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store", views=VIEWS) as proof:
        proof.write(3)
        hanging = children.start("hold", path=proof.path)
        assert hanging.hear() == "ready"
        asker = asked(children, proof)
        os.kill(asker.process_id, signal.SIGSTOP)
        end(hanging)
        maintainer = children.start("maintain", path=proof.path)
        wait_until(maintainer, lambda: all(r.outcomes is not None for r in requests_of(proof.path).values()))
        assert len(requests_of(proof.path)) == 1  # the asker lives, so its answer stays
        end(asker)
        wait_until(maintainer, lambda: not requests_of(proof.path))
        end(maintainer)
        proof.check_fresh()


def test_a_request_goes_with_its_process_and_not_with_another(tmp_path: Path) -> None:
    with vk.connect(tmp_path / "store") as database:
        space = database._engine.store.base
        name = requests.ask(space, requests.Request("refresh"))
        assert requests.clear(space) == 0
        with space.read() as txn:
            assert [waiting for waiting, _ in requests.waiting(txn)] == [name]
