"""Killing processes at a store again and again, and the proof after each time: the loop of all kill tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from tests.integration.nursery import Child, Nursery
from tests.integration.proof import Proof
from tests.integration.roles import SEED

KILLED = -9
TRIES_A_HIT = 20
WRITER = 1

Report = Callable[[str, int], None]


def hits(default: int) -> int:
    """Return how often each place is hit: `make sim` has its own number."""
    return int(os.environ.get("VIEWKEEPER_TEST_KILLS", default))


def chance(name: str) -> Random:
    """Return what a test draws its moments from: another one for each run's seed."""
    return Random(f"{SEED}/{name}")


def ended(child: Child) -> tuple[int, list[str]]:
    """Return how a child ended, and what it said."""
    said, status = child.rest(), child.wait()
    child.close()
    return status, said


def killed_at(children: Nursery, failpoint: str, role: str, **arguments: Any) -> list[str]:
    """Let a child play ``role`` until it dies at ``failpoint``; return what it said."""
    status, said = ended(children.start(role, failpoint, **arguments))
    assert status == KILLED, (failpoint, status, said)
    return said


def writer(children: Nursery, proof: Proof, count: int, **more: str) -> Child:
    """Start a writer that goes on where the last one was killed, with so many transactions at most."""
    first = proof.numbers.get(WRITER, -1) + 1
    child = children.start("write", path=proof.path, seed=WRITER, first=first, last=first + count, **more)
    assert child.hear() == "ready"
    return child


@contextmanager
def beside_a_writer(children: Nursery, proof: Proof, count: int = 1000) -> Iterator[None]:
    """Let a writer write while the block runs, then kill it; one transaction that it did not confirm may be there."""
    child = writer(children, proof, count)
    said = [child.hear()]
    try:
        yield
    finally:
        child.kill()
        proof.heard(WRITER, [line for line in said if line] + ended(child)[1])


def repeat(
    report: Report,
    name: str,
    proof: Proof,
    count: int,
    kill: Callable[[int], bool | None],
    left: Callable[[int], object] = lambda hit: None,
) -> None:
    """Kill so often; each time the store, opened anew, must be right as it was left, and after a refresh.

    Args:
        report: gets name and count in the end.
        name: of what is killed, and where.
        proof: of the store.
        count: how often.
        kill: lets processes work and kills one; False where the one to be killed was gone already.
        left: what more to do or to check at the store as it was left.
    """
    hit = tries = 0
    while hit < count:
        tries += 1
        assert tries <= count * TRIES_A_HIT, f"{name}: hit {hit} times in {tries} tries"
        has_hit = kill(hit) is not False
        proof.restart()
        left(hit)
        proof.check_fresh()
        hit += has_hit
    report(name, hit)
