"""Nexmark as a suite."""

from __future__ import annotations

from pathlib import Path

from bench.harness import Scale
from bench.nexmark.changes import Happenings
from bench.nexmark.queries import NUMBERS, query
from bench.nexmark.tables import NAMES, create_table
from bench.suites.suite import Suite

_SEED = 17
_ABOUT = """\
Half of a round's changes are new persons, auctions and bids as they come next, a quarter are bids with another price,
a quarter bids that are taken back.
"""


def events(scale: Scale) -> int:
    """Return how many events have happened before the first round."""
    return max(3 * scale.changes // 10, 50)


def _happenings(folder: Path, scale: Scale) -> Happenings:
    return Happenings(events(scale), _SEED)


NEXMARK = Suite(
    name="nexmark",
    title="Nexmark",
    about=_ABOUT,
    counted="events",
    parts=(0.001, 0.01),
    repeated_max=0.01,
    judged=None,
    create_tables={name: create_table(name) for name in NAMES},
    numbers=NUMBERS,
    query=lambda number, scale: query(number),
    folder=lambda scale: f"nexmark-{events(scale)}",
    stream=_happenings,
)
