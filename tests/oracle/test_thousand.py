"""1,000 scripts: after each refresh each view is what its query gives, and at the end what Spark gives for it.

Tiny jobs leave a core free, so these tests have a session of their own, beside the worker of the other Spark tests.
"""

from collections import Counter
from dataclasses import replace

import pytest

from viewkeeper.executors.spark.session import spark_session
from viewkeeper.testing.draws import for_scripts, run_oracle
from viewkeeper.testing.duck import DuckDb
from viewkeeper.testing.final_states import FinalState, judged_by_spark
from viewkeeper.testing.grammar.families import FAMILIES
from viewkeeper.testing.grammar.family import merged
from viewkeeper.testing.oracle import Run, in_memory
from viewkeeper.zset.schema import DOUBLE, STRING, Schema

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("own-spark")]

CASES, PART = 1000, 100
# Spark plans most of what later families add slowly: a part of the cases is drawn from all.
ALL, ALL_PART = 2, 40
CORE = merged(
    FAMILIES[name]
    for name in ("conditions", "derived_tables", "groups", "inner_joins", "scalars", "selections", "unions")
)


@pytest.fixture(scope="module")
def spark():
    session = spark_session("local[1]")
    yield session
    session.stop()


@pytest.mark.parametrize("seed", range(CASES // PART))
def test_thousand(spark, seed):
    counts = run_oracle(seed, PART, DuckDb(), spark, CORE)
    assert counts["oracle scripts"] == PART
    assert counts["oracle views after epochs"] > 2 * PART
    assert counts["oracle views by Spark"] > PART
    # It evaluates some conditions on more rows than the query has; these few have only our own word, and DuckDB's.
    assert counts["oracle views that Spark fails on"] <= PART // 20


@pytest.mark.parametrize("seed", range(ALL))
def test_whole_grammar(spark, seed):
    counts = run_oracle(seed, ALL_PART, DuckDb(), spark)
    assert counts["oracle scripts"] == ALL_PART
    assert counts["oracle views by Spark"] > ALL_PART
    assert counts["oracle views that Spark fails on"] <= ALL_PART // 10


def test_what_is_wrong_is_seen_by_spark(spark):
    damaged = []

    def run(script):
        with in_memory(script.time_zone) as database:
            state = FinalState.of("drawn", Run(script, database).all_steps())
        for final in state.good:
            damaged.extend(replace(state, label=name, good=(other,)) for name, other in damaged_views(final))

    for_scripts(0, 8, run, grammar=CORE)
    judgement = judged_by_spark(spark, damaged)
    assert judgement.compared == len(damaged) == len(judgement.problems)
    kinds = Counter((problem.split(",")[0], ": columns " in problem) for problem in judgement.problems)
    assert set(kinds) == {("row lost", False), ("row twice", False), ("type", True), ("nullability", True)}


def damaged_views(final):
    if final.rows:
        yield "row lost", replace(final, rows=final.rows[1:])
        yield "row twice", replace(final, rows=(*final.rows, final.rows[0]))
    first, *others = final.schema.columns
    other = DOUBLE if first.type == STRING else STRING
    yield "type", replace(final, schema=Schema((replace(first, type=other), *others)))
    yield "nullability", replace(final, schema=Schema((replace(first, nullable=not first.nullable), *others)))
