"""kill -9 of real processes, before and after each durable step, and at any moment; then everything must be right."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.integration.nursery import Child, Nursery, nursery
from tests.integration.proof import Proof

HITS = int(os.environ.get("VIEWKEEPER_TEST_KILLS", "20"))
KILLED = -9
WRITER, OTHER = 1, 2

Kills = Callable[[str, int], None]


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture
def kills(record_property: Callable[[str, object], None]) -> Kills:
    """Report kills; the terminal summary adds them up."""
    return lambda name, count: record_property("kills", (name, count))


def ended(child: Child) -> tuple[int, list[str]]:
    """Return how a child ended, and what it said."""
    status, said = child.wait(), child.rest()
    child.close()
    return status, said


@pytest.mark.parametrize("point", ["commit:before", "commit:after"])
def test_writer_killed_around_its_commit(children: Nursery, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        for hit in range(HITS):
            first = proof.numbers.get(WRITER, -1) + 1
            arrival = hit % 4 + 1
            child = children.start(
                "write", f"{point}#{arrival}", path=proof.path, seed=WRITER, first=first, last=first + 9
            )
            status, said = ended(child)
            assert status == KILLED
            assert proof.heard(WRITER, said) == arrival - 1
            proof.restart()
            proof.find_unconfirmed(WRITER)
            assert proof.numbers.get(WRITER, -1) == first + arrival - (2 if point == "commit:before" else 1)
            proof.check_fresh()
    kills(f"writer at {point}", HITS)


@pytest.mark.parametrize(
    "point", ["publish:before", "publish:before-commit", "publish:after", "purge:before", "purge:after"]
)
def test_refresh_killed_around_its_steps(children: Nursery, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        for hit in range(HITS):
            proof.write(5)
            # A refresh publishes three cadences here, and purges once.
            arrival = hit % 3 + 1 if point.startswith("publish") else 1
            status, _ = ended(children.start("refresh", f"{point}#{arrival}", path=proof.path))
            assert status == KILLED
            proof.restart()
            proof.check_fresh()
    kills(f"refresh at {point}", HITS)


REPLACEMENTS = (
    "SELECT customer, COUNT(*) AS n, MAX(amount) AS total FROM orders GROUP BY customer",
    "SELECT o.customer, COUNT(*) AS n, SUM(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY o.customer",
)


@pytest.mark.parametrize("point", ["build:before-swap", "build:after-swap", "publish:after"])
def test_creator_killed_while_a_view_is_filled(children: Nursery, tmp_path: Path, kills: Kills, point: str) -> None:
    with Proof(tmp_path / "store") as proof:
        for hit in range(HITS):
            proof.write(3)
            text = f"CREATE OR REPLACE MATERIALIZED VIEW grouped AS {REPLACEMENTS[hit % 2]}"
            status, said = ended(children.start("sql", point, path=proof.path, text=text))
            assert (status, said) == (KILLED, ["ready"])
            proof.restart()
            proof.write(2)
            # The old version serves, right as of its position, until whoever comes next finishes the new one.
            proof.check()
            proof.check_fresh()
            shown = str(proof.db.sql("SHOW CREATE MATERIALIZED VIEW grouped").rows())
            assert ("MAX" in shown) == (hit % 2 == 0)
    kills(f"creator at {point}", HITS)


@pytest.mark.parametrize("durability", ["commit", "interval", "none"])
def test_killed_at_any_moment_nothing_confirmed_is_lost(
    children: Nursery, tmp_path: Path, kills: Kills, durability: str
) -> None:
    chance = Random(20_261_128)
    with Proof(tmp_path / "store", durability=durability) as proof:
        for _ in range(HITS):
            first = proof.numbers.get(WRITER, -1) + 1
            child = children.start(
                "write", path=proof.path, seed=WRITER, first=first, last=10**6, durability=durability
            )
            assert child.hear() == "ready"
            heard = _hear_for(child, chance.uniform(0, 0.06))
            child.kill()
            status, rest = ended(child)
            assert status == KILLED
            proof.heard(WRITER, [*heard, *rest])
            proof.restart()
            proof.find_unconfirmed(WRITER)
            proof.check_fresh()
        assert proof.numbers[WRITER] > HITS
    kills(f"writer at any moment, durability {durability}", HITS)


def test_maintainer_and_writer_killed_at_any_moment_during_load(
    children: Nursery, tmp_path: Path, kills: Kills
) -> None:
    chance = Random(19_691_024)
    with Proof(tmp_path / "store") as proof:
        for _ in range(HITS):
            first = proof.numbers.get(WRITER, -1) + 1
            maintainer = children.start("maintain", path=proof.path)
            assert maintainer.hear() == "ready"
            writer = children.start("write", path=proof.path, seed=WRITER, first=first, last=first + 400)
            assert writer.hear() == "ready"
            heard = _hear_for(writer, chance.uniform(0, 0.1))
            victims = [maintainer, writer]
            chance.shuffle(victims)
            victims[0].kill()
            heard += _hear_for(writer, chance.uniform(0, 0.02))
            victims[1].kill()
            proof.heard(WRITER, [*heard, *ended(writer)[1]])
            ended(maintainer)
            proof.restart()
            proof.find_unconfirmed(WRITER)
            proof.check_fresh()
    kills("maintainer at any moment", HITS)
    kills("writer at any moment, beside a maintainer", HITS)


def test_maintainer_of_the_api_killed(tmp_path: Path, kills: Kills) -> None:
    with Proof(tmp_path / "store") as proof:
        for _ in range(2):
            maintainer = proof.db.maintain()
            assert maintainer.process_id is not None
            proof.write(50)
            os.kill(maintainer.process_id, 9)
            maintainer.stop()
            proof.check_fresh()
    kills("db.maintain() during load", 2)


def _hear_for(child: Child, seconds: float) -> list[str]:
    """Listen to a child for some time."""
    from viewkeeper.clock import SYSTEM_CLOCK

    end = SYSTEM_CLOCK.monotonic_seconds() + seconds
    lines = []
    while (left := end - SYSTEM_CLOCK.monotonic_seconds()) > 0:
        line = child.hear(left)
        if line is None:
            break
        lines.append(line)
    return lines
