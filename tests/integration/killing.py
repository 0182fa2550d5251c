"""Killing processes at a store again and again, and the proof after each time: the loop of all kill tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.integration.nursery import Child, Nursery
from tests.integration.proof import Proof

KILLED = -9
TRIES_A_HIT = 20

Report = Callable[[str, int], None]


def hits(default: int) -> int:
    """Return how often each place is hit: `make sim` has its own number."""
    return int(os.environ.get("VIEWKEEPER_TEST_KILLS", default))


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
