"""Several processes on one store: writers, readers, a maintainer, and whoever wants something of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.integration.nursery import Child, Nursery, nursery
from tests.integration.proof import Proof, settle
from tests.integration.roles import LOCAL, MODULUS
from viewkeeper.errors import ConflictError
from viewkeeper.log import retention
from viewkeeper.runtime import open_store
from viewkeeper.settings import Settings

pytestmark = pytest.mark.slow

SUMS = """
CREATE TABLE lefts (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id));
CREATE TABLE rights (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW total AS SELECT SUM(l.v + r.v) AS v, COUNT(*) AS n FROM lefts l JOIN rights r ON l.id = r.id;
CREATE MATERIALIZED VIEW by_group AS SELECT l.g, SUM(l.v + r.v) AS v, COUNT(*) AS n
  FROM lefts l JOIN rights r ON l.id = r.id GROUP BY l.g
"""


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


def finish(child: Child) -> list[str]:
    """Return what a child said up to its good end."""
    said = child.rest()
    status = child.wait()
    child.close()
    assert status == 0, said
    return said


def end(child: Child) -> None:
    child.kill()
    child.wait()
    child.close()


def test_every_state_that_is_read_is_divisible(children: Nursery, tmp_path: Path) -> None:
    """D's verifier: generators × (n − m) × v, all divisible by N; a part of an epoch or a lost update would show."""
    path = str(tmp_path / "store")
    with vk.connect(path, **LOCAL) as database:
        database.sql(SUMS)
        maintainer = children.start("maintain", path=path, seconds=600)
        assert maintainer.hear() == "ready"
        generators = [children.start("generate", path=path, seed=seed) for seed in (1, 2, 3)]
        readers = [children.start("read_sums", path=path, states=20) for _ in range(2)]
        for reader in readers:
            assert finish(reader) == ["ready", "20"]
        for child in [*generators, maintainer]:
            end(child)
        with closing(_Store(path)) as store:
            settle(store.base)
        database.refresh()
        (total,) = database.scan("total")
        query = "SELECT SUM(l.v + r.v) AS v, COUNT(*) AS n FROM lefts l JOIN rights r ON l.id = r.id"
        rows = database.sql(query).rows()
        assert rows == [total]
        assert total["v"] % MODULUS == 0
        assert total["n"] > 0


@pytest.mark.parametrize("text", ["", ", s STRING DEFAULT 's'"])
def test_values_stay_in_their_columns_while_others_alter_the_table(
    children: Nursery, tmp_path: Path, text: str
) -> None:
    path = str(tmp_path / "store")
    with vk.connect(path, **LOCAL) as database:
        database.sql(f"CREATE TABLE t (k BIGINT, c0 INT{text}, PRIMARY KEY (k))")
        database.sql("INSERT INTO t (k, c0) VALUES (1, 1), (4, 4)")
        database.sql("CREATE TABLE over (k BIGINT, PRIMARY KEY (k))")
        database.sql("CREATE MATERIALIZED VIEW mirrored AS SELECT k, c0 FROM t")
        database.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(c0) AS s, COUNT(*) AS n FROM t")
        maintainer = children.start("maintain", path=path, seconds=600)
        assert maintainer.hear() == "ready"
        readers = [children.start("read_altered", path=path) for _ in range(2)]
        assert [reader.hear() for reader in readers] == ["ready"] * 2
        assert finish(children.start("alter", path=path, seed=7, changes=60)) == ["ready", "done"]
        for reader in readers:
            (layouts,) = finish(reader)
            assert int(layouts) > 1
        database.refresh()
        end(maintainer)
        rows = database.sql("SELECT k, c0 FROM mirrored ORDER BY k").rows()
        assert [row["k"] for row in rows] == [row["k"] for row in database.scan("t")]
        assert all(row["c0"] == row["k"] for row in rows)
        assert list(database.scan("total")) == [{"s": sum(row["c0"] for row in rows), "n": len(rows)}]


def test_read_your_writes_in_several_processes(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        maintainer = children.start("maintain", path=proof.path)
        assert maintainer.hear() == "ready"
        writers = [children.start("wait_for", path=proof.path, seed=seed, rounds=10) for seed in (1, 2, 3)]
        assert [finish(child)[-1] for child in writers] == ["done"] * 3
        end(maintainer)
        assert proof.db.table("mirrored").to_arrow().num_rows == 30


def test_read_your_writes_without_a_maintainer(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        writers = [children.start("wait_for", path=proof.path, seed=seed, rounds=6) for seed in (1, 2)]
        assert [finish(child)[-1] for child in writers] == ["done"] * 2
        assert proof.db.table("mirrored").to_arrow().num_rows == 12


def test_a_second_maintainer_is_refused_with_pid_and_host(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store", views=()) as proof:
        first = children.start("maintain", path=proof.path)
        assert first.hear() == "ready"
        (said,) = finish(children.start("refused", path=proof.path))
        assert said.startswith("[MAINTAINER_RUNNING]")
        assert str(first.process_id) in said
        assert socket.gethostname() in said
        assert proof.db.status()["maintainer"] == {"process_id": first.process_id, "host": socket.gethostname()}
        with pytest.raises(ConflictError, match=str(first.process_id)):
            proof.db.maintain()
        end(first)
        assert proof.db.status()["maintainer"] is None


def test_refresh_hands_the_work_to_the_maintainer(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        maintainer = children.start("maintain", path=proof.path)
        assert maintainer.hear() == "ready"
        proof.write(5)
        # ON DEMAND: nobody but the asker wants it, and the one who holds the lock does it.
        proof.db.refresh("regions")
        proof.check()
        views = {view["name"]: view for view in proof.db.status()["views"]}
        assert views["regions"]["behind"] == 0
        query = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"
        proof.db.sql(f"CREATE MATERIALIZED VIEW made_elsewhere AS {query}")
        assert finish_state(proof, "made_elsewhere") == "ACTIVE"
        end(maintainer)
        proof.check_fresh()
        assert _requests(proof.path) == 0


def finish_state(proof: Proof, name: str) -> str:
    return next(str(view["state"]) for view in proof.db.status()["views"] if view["name"] == name)


@pytest.mark.parametrize("role", ["refresh", "sql"])
def test_the_asker_does_it_when_the_maintainer_dies_during_the_hand_over(
    children: Nursery, tmp_path: Path, role: str
) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(5)
        maintainer = children.start("hold", path=proof.path)
        assert maintainer.hear() == "ready"
        text = "CREATE MATERIALIZED VIEW late AS SELECT id, x FROM orders"
        asker = children.start(role, path=proof.path, **({"text": text} if role == "sql" else {}))
        assert asker.hear() == "ready"
        while not _requests(proof.path):
            assert asker.hear(0.01) is None
        end(maintainer)
        assert finish(asker) == ["done" if role == "sql" else "local"]
        assert _requests(proof.path) == 0
        proof.check()
        proof.check_fresh()


def _requests(path: str) -> int:
    with closing(_Store(path)) as store, store.base.read() as txn:
        return txn.count("requests")


class _Store:
    def __init__(self, path: str) -> None:
        self._opened = open_store(path, Settings.of(LOCAL), create=False)
        self.base, self.views = self._opened.base, self._opened.views

    def close(self) -> None:
        self._opened.close()


def test_create_while_writers_go_on(children: Nursery, tmp_path: Path) -> None:
    with Proof(tmp_path / "store") as proof:
        proof.write(20)
        writer = children.start("write", path=proof.path, seed=1, first=0, last=150)
        assert writer.hear() == "ready"
        for number in range(4):
            proof.db.sql(
                f"CREATE MATERIALIZED VIEW during_{number} AS SELECT o.id, c.region, o.amount FROM orders o"
                f" JOIN customers c ON o.customer = c.id WHERE o.x > {number % 2}"
            )
        assert proof.heard(1, finish(writer)) == 150
        proof.check_fresh()


def test_writers_of_the_same_rows(children: Nursery, tmp_path: Path) -> None:
    """O7: both inputs of a join, one hot group, and the same rows are changed by several at once."""
    with Proof(tmp_path / "store") as proof:
        maintainer = children.start("maintain", path=proof.path)
        assert maintainer.hear() == "ready"
        writers = {seed: children.start("write", path=proof.path, seed=seed, first=0, last=60) for seed in (1, 2, 3)}
        assert [proof.heard(seed, finish(child)) for seed, child in writers.items()] == [60] * 3
        end(maintainer)
        proof.check_fresh()


def test_the_old_version_serves_until_the_swap(children: Nursery, tmp_path: Path) -> None:
    """A reader in this process looks on while another replaces the view again and again, and writers go on."""
    with Proof(tmp_path / "store") as proof:
        proof.write(30)
        proof.db.refresh()
        writer = children.start("write", path=proof.path, seed=1, first=0, last=60)
        texts = [
            "CREATE OR REPLACE MATERIALIZED VIEW grouped AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total"
            f" FROM orders WHERE x < {100 + number} GROUP BY customer"
            for number in range(6)
        ]
        replacer = children.start("sql", path=proof.path, text=";".join(texts))
        assert replacer.hear() == "ready"
        widths = set()
        while (line := replacer.hear(0.001)) is None:
            with proof.db.snapshot() as snapshot:
                rows = list(snapshot.scan("grouped"))
            assert rows, "a version without rows was shown"
            assert sum(row["n"] for row in rows) <= 40
            assert len({row["customer"] for row in rows}) == len(rows)
            widths |= {len(row) for row in rows}
        assert line == "done"
        assert widths <= {3, 5}
        finish(replacer)
        assert proof.heard(1, finish(writer)) == 60
        proof.check_fresh()


def test_a_scan_as_of_holds_the_log_against_a_purge(tmp_path: Path) -> None:
    """And what a dead process held is let go."""
    with Proof(tmp_path / "store") as proof, closing(_Store(proof.path)) as store:
        proof.write(3)
        with store.base.read() as txn:
            since = retention.floor(txn)
        with retention.holding(store.base, "scan") as position:
            proof.write(5)
            proof.db.refresh()
            with store.base.read() as txn:
                assert retention.floor(txn) == position
                assert since < position
        if not os.fork():
            with _Store(proof.path).base.write() as txn:
                retention.hold(txn, "scan-dead", "scan", of_this_process=True)
            os._exit(0)
        os.wait()
        proof.write(2)
        proof.db.refresh()
        with store.base.read() as txn:
            assert retention.find(txn, "scan-dead") is None
            assert retention.floor(txn) > position
        proof.check()
