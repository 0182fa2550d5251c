"""Drawn scripts whose epochs run by Spark; beside each, the same script's epochs run in process.

Scripts share a store and its epochs, so one job serves them all. After each epoch every view is compared with its
query, as in the oracle, and its rows, hidden columns included, with those that the local executor has published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from viewkeeper.closing import Closing
from viewkeeper.database.connection import Database, connect
from viewkeeper.errors import ViewFailed
from viewkeeper.testing.draws import OracleFailure, for_scripts
from viewkeeper.testing.oracle import Run, in_memory, same_bag
from viewkeeper.testing.scripts import Commit, Create, Refresh, Script

# A view ON DEMAND would stay behind: here all refresh together.
TIMINGS = (*["REFRESH CONTINUOUS"] * 6, "REFRESH EVERY 1 SECONDS")


def drawn_scripts(seed: int, cases: int) -> list[Script]:
    """Return drawn scripts for ``run_by_spark``.

    Args:
        seed: of the draws.
        cases: how many.
    """
    found: list[Script] = []
    for_scripts(seed, cases, found.append, TIMINGS)
    return found


def run_by_spark(seed: int, scripts: Sequence[Script], folder: Path, spark: Any) -> Counter[str]:
    """Run scripts in one store whose epochs are Spark's; only the last one's views are created on the way.

    Args:
        seed: what they were drawn from.
        scripts: what to do.
        folder: where the store is made.
        spark: a SparkSession.

    Returns:
        How many scripts ran, how many epochs Spark ran, and how many views were compared after them.

    Raises:
        OracleFailure: a view is not what it should be; the script is as it was drawn.
    """
    named = [script.prefixed(f"s{number}_") for number, script in enumerate(scripts)]
    named = [_created_first(script) for script in named[:-1]] + named[-1:]
    store, epochs = folder / "oracle.vk", 0
    with (
        connect(store, executor="local", durability="none") as here,
        connect(store, executor="spark", durability="none", spark=spark) as there,
    ):
        pairs = [_Pair(seed, script, here) for script in named]
        pairs[-1].run.database = there
        last = max(len(script.steps) for script in named) - 1
        for number in range(last + 1):
            due = [pair.step(number) for pair in pairs]
            if any(due) or number == last:
                epochs += _refreshed(there)
                for pair in pairs:
                    pair.follow()
        for pair in pairs:
            pair.run.compare_tables()
            pair.close()
    compared = sum(pair.run.compared for pair in pairs)
    return Counter(
        {"scripts by Spark's epochs": len(named), "epochs by Spark": epochs, "views after Spark's epochs": compared}
    )


class _Pair(Closing):
    """A script in the shared store, and the same one in a store in memory."""

    def __init__(self, seed: int, script: Script, database: Database) -> None:
        self.seed = seed
        self.run = Run(script, database)
        self._beside = Run(script, in_memory())

    def close(self) -> None:
        """Forget the store in memory."""
        self._beside.database.close()

    def step(self, number: int) -> bool:
        """Do one step; return whether it is a refresh, which the scripts do together."""
        steps = self.run.script.steps
        if number >= len(steps):
            return False
        step = steps[number]
        if isinstance(step, Refresh):
            return True
        for run in (self.run, self._beside):
            run.step(number)
        return False

    def follow(self) -> None:
        """Let the local executor follow an epoch of Spark's, and compare."""
        _refreshed(self._beside.database)
        try:
            self.run.compare()
            for name in self.run.created:
                same_bag(f"{name} by the local executor", self.run.published(name), self._beside.published(name))
        except AssertionError as wrong:
            raise OracleFailure(self.seed, self.run.script, wrong) from wrong


def _created_first(script: Script) -> Script:
    creates = tuple(step for step in script.steps if isinstance(step, Create))
    return replace(script, steps=creates + tuple(step for step in script.steps if isinstance(step, Commit | Refresh)))


def _refreshed(database: Database) -> int:
    """Refresh all views; return how many epochs that took, one where some of them fail."""
    try:
        return database.refresh().epochs
    except ViewFailed:
        return 1
