"""Ways drawn in place of weighed: whatever an epoch's views are decided to do, what they show must be the same."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.clock import Chance
from viewkeeper.coordinator.ways import Ways
from viewkeeper.pipeline.policy import FULL, INCREMENTAL, TRIED, Executors, Prospect, Way


def draw_ways(ways: Ways, chance: Chance) -> None:
    """Let ``chance`` decide for views of policy AUTO, in every epoch that changes anything.

    Args:
        ways: of the coordinator whose epochs they are.
        chance: draws; an epoch that is planned again is drawn for again.
    """

    def judge(group: Sequence[Prospect], executors: Executors, fits: bool) -> tuple[Way, str]:
        return (FULL if chance.random() < 0.5 else INCREMENTAL), TRIED

    ways.judge = judge
    ways.quick_seconds = 0.0
