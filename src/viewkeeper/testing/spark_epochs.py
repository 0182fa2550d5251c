"""Drawn scripts whose epochs run by Spark; beside each, the same script's epochs run in process.

Scripts share a store and its epochs, so one job serves them all. After each epoch every view is compared with its
query, as in the oracle, and the rows of good ones, hidden columns included, with those that the local executor has
published. After the last one Spark is asked the full query of every view: rows, types and nullability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from viewkeeper.closing import Closing
from viewkeeper.database.connection import Database, connect
from viewkeeper.errors import ViewFailed
from viewkeeper.testing.draws import OracleFailure, for_scripts
from viewkeeper.testing.final_states import FinalState, judged_by_spark
from viewkeeper.testing.oracle import Run, in_memory, same_bag
from viewkeeper.testing.scripts import Commit, Create, Refresh, Script

# A view ON DEMAND would stay behind: here all refresh together.
TIMINGS = (*["REFRESH CONTINUOUS"] * 6, "REFRESH EVERY 1 SECONDS")
# An epoch is a job for each cadence, half a second each.
_EPOCH_STEPS = 4


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
    """Run scripts in one store whose epochs are Spark's, and let Spark judge what their views show at the end.

    Args:
        seed: what they were drawn from.
        scripts: what to do.
        folder: where the store is made.
        spark: a SparkSession.

    Returns:
        How many scripts ran, how many epochs Spark ran, how many views it filled, how many were compared after epochs,
        and how many Spark was asked about.

    Raises:
        OracleFailure: a view is not what it should be; the script is as it was drawn.
    """
    with SharedStore(seed, scripts, folder, spark) as store:
        store.run()
        store.judge()
        return store.counts


class SharedStore(Closing):
    """Scripts in one store whose epochs are Spark's; use as a context manager.

    Those that create their first view after rows were written create all on the way, filled by Spark; the others create
    theirs first, on empty tables. Refreshes wait for each other: there is an epoch every few steps.

    Args:
        seed: what they were drawn from.
        scripts: what to do.
        folder: where the store is made.
        spark: a SparkSession.
    """

    def __init__(self, seed: int, scripts: Sequence[Script], folder: Path, spark: Any) -> None:
        self.counts: Counter[str] = Counter()
        self._spark = spark
        self._stack = ExitStack()
        self._folder = folder / "oracle.vk"
        self._connections: dict[tuple[str, str], Database] = {}
        self.pairs: list[_Pair] = []
        for number, script in enumerate(scripts):
            pair = _Pair(seed, number, script, self._connected("local", script.time_zone))
            self.pairs.append(self._stack.enter_context(pair))
            if fills(script):
                pair.run.database = self._connected("spark", script.time_zone)
                self.counts["views filled by Spark"] += len(script.views)

    def _connected(self, executor: str, time_zone: str) -> Database:
        """Return a connection for scripts of a time zone: their views keep it, whoever refreshes them."""
        found = self._connections.get((executor, time_zone))
        if found is None:
            spark = self._spark if executor == "spark" else None
            found = connect(self._folder, executor=executor, durability="none", time_zone=time_zone, spark=spark)
            self._connections[executor, time_zone] = self._stack.enter_context(found)
        return found

    def close(self) -> None:
        """Close the store, and those in memory beside it."""
        self._stack.close()

    def run(self) -> None:
        """Do all steps of all scripts.

        Raises:
            OracleFailure: a view differs from its query, or from what the local executor has published.
        """
        last = max(len(pair.run.script.steps) for pair in self.pairs) - 1
        is_due = False
        for number in range(last + 1):
            for pair in self.pairs:
                is_due |= pair.step(number)
            if number == last or (is_due and number % _EPOCH_STEPS == 0):
                is_due = False
                self.counts["epochs by Spark"] += _refreshed(self._connected("spark", "UTC"))
                for pair in self.pairs:
                    pair.follow()
        for pair in self.pairs:
            pair.run.compare_tables()
        self.counts["scripts by Spark's epochs"] = len(self.pairs)
        self.counts["views after Spark's epochs"] = sum(pair.run.compared for pair in self.pairs)

    def judge(self) -> None:
        """Compare what the views show now with the full queries in Spark.

        Raises:
            OracleFailure: one differs; the message has all that do.
        """
        judgement = judged_by_spark(self._spark, [FinalState.of(pair.label, pair.run) for pair in self.pairs])
        self.counts["views asked of Spark"] = judgement.compared
        self.counts["views that Spark fails on"] = len(judgement.failing)
        for pair in self.pairs:
            if any(problem.startswith(f"{pair.label},") for problem in judgement.problems):
                raise OracleFailure(pair.seed, pair.run.script, AssertionError("\n".join(judgement.problems)))


class _Pair(Closing):
    """A script in the shared store, and the same one in a store in memory."""

    def __init__(self, seed: int, number: int, script: Script, database: Database) -> None:
        self.seed = seed
        self.label = f"script {number}"
        self.run = Run(script.prefixed(f"s{number}_"), database)
        self._beside = Run(self.run.script, in_memory(script.time_zone))

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
            # A FAILED view shows its last good epoch, and fills of others' views are epochs that are only here.
            good, beside = ([view.name for view in run.good_views()] for run in (self.run, self._beside))
            assert good == beside, f"good are {good}, by the local executor {beside}"
            for name in good:
                same_bag(f"{name} by the local executor", self.run.published(name), self._beside.published(name))
        except AssertionError as wrong:
            raise OracleFailure(self.seed, self.run.script, wrong) from wrong


def fills(script: Script) -> bool:
    """Return whether a script writes rows before it creates its first view."""
    return isinstance(next(step for step in script.steps if isinstance(step, Commit | Create)), Commit)


def _refreshed(database: Database) -> int:
    """Refresh all views; return how many epochs that took, one where some of them fail."""
    try:
        return database.refresh().epochs
    except ViewFailed:
        return 1
