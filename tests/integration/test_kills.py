"""kill -9 of real processes, before and after each durable step, and at any moment; then everything must be right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.killing import KILLED, WRITER, Report, chance, ended, hits, killed_at, repeat, writer
from tests.integration.nursery import Child, Nursery, nursery
from tests.integration.proof import Proof
from viewkeeper.clock import SYSTEM_CLOCK

pytestmark = pytest.mark.slow

HITS = hits(20)


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.mark.parametrize("point", ["commit:before", "commit:after"])
def test_writer_killed_around_its_commit(children: Nursery, tmp_path: Path, kills: Report, point: str) -> None:
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            arrival, first = hit % 4 + 1, proof.numbers.get(WRITER, -1) + 1
            said = killed_at(
                children, f"{point}#{arrival}", "write", path=proof.path, seed=WRITER, first=first, last=first + 9
            )
            assert proof.heard(WRITER, said) == arrival - 1

        def left(hit: int) -> None:
            confirmed = proof.numbers.get(WRITER, -1)
            proof.find_unconfirmed(WRITER)
            assert proof.numbers.get(WRITER, -1) == confirmed + (point == "commit:after")

        repeat(kills, f"writer at {point}", proof, HITS, kill, left)


@pytest.mark.parametrize(
    "point",
    ["publish:before", "publish:before-commit", "publish:after", "purge:before", "purge:between", "purge:after"],
)
def test_refresh_killed_around_its_steps(children: Nursery, tmp_path: Path, kills: Report, point: str) -> None:
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            proof.write(5)
            # A refresh publishes three cadences here, and purges once, in four transactions.
            arrival = hit % 3 + 1 if point.startswith("publish") or point == "purge:between" else 1
            killed_at(children, f"{point}#{arrival}", "refresh", path=proof.path)

        repeat(kills, f"refresh at {point}", proof, HITS, kill)


REPLACEMENTS = (
    "SELECT customer, COUNT(*) AS n, MAX(amount) AS total FROM orders GROUP BY customer",
    "SELECT o.customer, COUNT(*) AS n, SUM(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY o.customer",
)


@pytest.mark.parametrize("point", ["build:before-swap", "build:after-swap", "publish:after"])
def test_creator_killed_while_a_view_is_filled(children: Nursery, tmp_path: Path, kills: Report, point: str) -> None:
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            proof.write(3)
            text = f"CREATE OR REPLACE MATERIALIZED VIEW grouped AS {REPLACEMENTS[hit % 2]}"
            assert killed_at(children, point, "sql", path=proof.path, text=text) == ["ready"]

        def left(hit: int) -> None:
            proof.write(2)
            # The old version serves, right as of its position, until whoever comes next finishes the new one.
            proof.check_fresh()
            shown = str(proof.db.sql("SHOW CREATE MATERIALIZED VIEW grouped").rows())
            assert ("MAX" in shown) == (hit % 2 == 0)

        repeat(kills, f"creator at {point}", proof, HITS, kill, left)


BORROWING = {
    "joined": "SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS s FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY c.region",
    "grouped": "SELECT n, COUNT(*) AS groups, MAX(total) AS most FROM grouped GROUP BY n",
}


@pytest.mark.parametrize("lender", BORROWING)
def test_creator_killed_while_a_view_borrows(children: Nursery, tmp_path: Path, kills: Report, lender: str) -> None:
    """The view that goes on lends what it keeps; whoever comes next fills the other one to its end."""
    points = ("publish:after#3", "publish:before-commit#3", "build:before-swap", "publish:after#2", "build:after-swap")
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            proof.db.sql("DROP MATERIALIZED VIEW IF EXISTS borrows")
            proof.write(3)
            text = f"CREATE MATERIALIZED VIEW borrows AS {BORROWING[lender]}"
            assert killed_at(children, points[hit % len(points)], "sql", path=proof.path, text=text) == ["ready"]

        def left(hit: int) -> None:
            proof.write(2)

        repeat(kills, f"creator of a view that borrows from {lender}", proof, hits(5), kill, left)


@pytest.mark.parametrize("durability", ["commit", "interval", "none"])
def test_killed_at_any_moment_nothing_confirmed_is_lost(
    children: Nursery, tmp_path: Path, kills: Report, durability: str
) -> None:
    moments = chance(f"writer, {durability}")
    with Proof(tmp_path / "store", durability=durability) as proof:

        def kill(hit: int) -> None:
            child = writer(children, proof, 10**6, durability=durability)
            heard = _hear_for(child, moments.uniform(0, 0.06))
            child.kill()
            proof.heard(WRITER, [*heard, *_killed(child)])

        name = f"writer at any moment, durability {durability}"
        repeat(kills, name, proof, HITS, kill, lambda hit: proof.find_unconfirmed(WRITER))
        assert proof.numbers[WRITER] > HITS


def test_maintainer_and_writer_killed_at_any_moment_during_load(
    children: Nursery, tmp_path: Path, kills: Report
) -> None:
    moments = chance("maintainer and writer")
    with Proof(tmp_path / "store") as proof:

        def kill(hit: int) -> None:
            maintainer = children.start("maintain", path=proof.path)
            assert maintainer.hear() == "ready"
            child = writer(children, proof, 400)
            heard = _hear_for(child, moments.uniform(0, 0.1))
            victims = [maintainer, child]
            moments.shuffle(victims)
            victims[0].kill()
            heard += _hear_for(child, moments.uniform(0, 0.02))
            victims[1].kill()
            proof.heard(WRITER, [*heard, *ended(child)[1]])
            _killed(maintainer)

        name = "writer at any moment, beside a maintainer"
        repeat(kills, name, proof, HITS, kill, lambda hit: proof.find_unconfirmed(WRITER))
    kills("maintainer at any moment", HITS)


def test_maintainer_of_the_api_killed(tmp_path: Path, kills: Report) -> None:
    with Proof(tmp_path / "store") as proof:
        for _ in range(2):
            maintainer = proof.db.maintain()
            assert maintainer.process_id is not None
            proof.write(50)
            os.kill(maintainer.process_id, 9)
            maintainer.stop()
            proof.check_fresh()
    kills("db.maintain() during load", 2)


def _killed(child: Child) -> list[str]:
    """Return what a killed child said at last."""
    status, said = ended(child)
    assert status == KILLED
    return said


def _hear_for(child: Child, seconds: float) -> list[str]:
    """Listen to a child for some time."""
    end = SYSTEM_CLOCK.monotonic_seconds() + seconds
    lines = []
    while (left := end - SYSTEM_CLOCK.monotonic_seconds()) > 0:
        line = child.hear(left)
        if line is None:
            break
        lines.append(line)
    return lines
