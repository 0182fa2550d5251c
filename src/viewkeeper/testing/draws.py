"""Many scripts drawn by hypothesis from one seed: the same ones each time, and the failing one shrunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity

from viewkeeper.testing.final_states import FinalState, judged_by_spark
from viewkeeper.testing.generators import REFRESHES, scripts
from viewkeeper.testing.grammar.families import GRAMMAR
from viewkeeper.testing.grammar.family import Family
from viewkeeper.testing.oracle import DuckDb, Run, in_memory
from viewkeeper.testing.scripts import Script

# In a longer run hypothesis begins with small examples and then mostly varies what it has drawn: views would repeat.
_RANDOM_CASES = 8

Check = Callable[[Script], object]


class OracleFailure(AssertionError):
    """A script whose views are not what they should be; the message has it ready to be committed.

    Args:
        seed: what it was drawn from.
        script: the script, as small as hypothesis could make it.
        cause: what went wrong.
    """

    def __init__(self, seed: int, script: Script, cause: BaseException) -> None:
        super().__init__(seed, script, cause)
        self.seed = seed
        self.script = script
        self.cause = cause

    def __str__(self) -> str:
        problem = f"seed {self.seed}: {type(self.cause).__name__}: {self.cause}"
        return f"{problem}\nThe smallest script found, for tests/oracle/regressions:\n{self.script.to_json()}"


def for_scripts(
    seed: int, cases: int, check: Check, refreshes: Sequence[str] = REFRESHES, grammar: Family = GRAMMAR
) -> None:
    """Give ``check`` one drawn script after the other.

    Args:
        seed: of the draws.
        cases: how many scripts.
        check: runs a script; raises where it fails. Called many more times to make a failing script smaller.
        refreshes: REFRESH clauses to choose from.
        grammar: the productions of its queries.

    Raises:
        OracleFailure: the smallest script found for which ``check`` raises the same kind of error at the same place.
    """
    for part, first in enumerate(range(0, cases, _RANDOM_CASES)):
        _some(seed, part, min(_RANDOM_CASES, cases - first), check, refreshes, grammar)


def _some(seed: int, part: int, cases: int, check: Check, refreshes: Sequence[str], grammar: Family) -> None:
    is_first = True

    @hypothesis.seed(f"{seed}/{part}")
    @hypothesis.settings(
        max_examples=1 + cases,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=tuple(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(scripts(refreshes, grammar))
    def each(script: Script) -> None:
        nonlocal is_first
        if is_first:
            # The simplest script there is, drawn first whatever the seed.
            is_first = False
            return
        try:
            check(script)
        except Exception as error:
            raise OracleFailure(seed, script, error) from error

    each()


def run_oracle(
    seed: int, cases: int, duckdb: DuckDb | None = None, spark: Any = None, grammar: Family = GRAMMAR
) -> Counter[str]:
    """Run drawn scripts in process on the memory store.

    Args:
        seed: of the draws.
        cases: how many scripts.
        duckdb: asks DuckDB too, see ``testing.duck``.
        spark: a SparkSession that computes what the views show at the end of each script; None to leave it out.
        grammar: the productions of the queries.

    Returns:
        How many scripts ran, and how many views were compared, after epochs and by Spark.

    Raises:
        OracleFailure: of the first script that fails.
    """
    states: list[FinalState] = []
    compared = 0

    def check(script: Script) -> FinalState:
        nonlocal compared
        with in_memory(script.time_zone) as database:
            run = Run(script, database, duckdb).all_steps()
            compared += run.compared
            return FinalState.of(f"seed {seed}", run)

    def check_by_spark(script: Script) -> None:
        problems = judged_by_spark(spark, [check(script)]).problems
        assert not problems, "\n".join(problems)

    for_scripts(seed, cases, lambda script: states.append(check(script)), grammar=grammar)
    counts = Counter({"oracle scripts": len(states), "oracle views after epochs": compared})
    if spark is not None:
        judgement = judged_by_spark(spark, states)
        counts["oracle views by Spark"] = judgement.compared
        counts["oracle views that Spark fails on"] = len(judgement.failing)
        if judgement.problems:
            # Each by itself, to find the script and to make it smaller.
            for_scripts(seed, cases, check_by_spark, grammar=grammar)
            raise AssertionError("\n".join(judgement.problems))
    return counts
