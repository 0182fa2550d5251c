"""Scripts whose epochs run by Spark, on LMDB."""

from dataclasses import replace
from functools import cache

import pytest

from viewkeeper.database.connection import connect
from viewkeeper.errors import ViewFailed
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.testing.draws import for_scripts
from viewkeeper.testing.oracle import Run
from viewkeeper.testing.scripts import Create, Refresh

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPTS, A_STORE = 50, 10
TIMINGS = (*["REFRESH CONTINUOUS"] * 6, "REFRESH EVERY 1 SECONDS")


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


@cache
def drawn():
    scripts = []
    for_scripts(0, SCRIPTS, scripts.append, TIMINGS)
    return scripts


def created_first(script):
    creates = tuple(step for step in script.steps if isinstance(step, Create))
    return replace(script, steps=creates + tuple(step for step in script.steps if step not in creates))


@pytest.mark.parametrize("first", range(0, SCRIPTS, A_STORE))
def test_epochs_by_spark(first, spark, tmp_path):
    """Ten scripts share a store and its epochs, so one job serves them all; the last one's views come on the way."""
    scripts = [script.prefixed(f"s{number}_") for number, script in enumerate(drawn()[first : first + A_STORE])]
    scripts = [created_first(script) for script in scripts[:-1]] + scripts[-1:]
    store = tmp_path / "oracle.vk"
    with (
        connect(store, executor="local", durability="none") as here,
        connect(store, executor="spark", durability="none", spark=spark) as there,
    ):
        runs = [Run(script, here) for script in scripts]
        epochs = 0
        for number in range(max(len(script.steps) for script in scripts)):
            refreshes = False
            for run in runs:
                steps = run.script.steps
                if number < len(steps) and isinstance(steps[number], Refresh):
                    refreshes = True
                elif number < len(steps):
                    run.database = there if run is runs[-1] else here
                    run.step(number)
            if refreshes or number == max(len(script.steps) for script in scripts) - 1:
                epochs += by_spark(there)
                for run in runs:
                    run.compare()
        for run in runs:
            run.compare_tables()
        assert epochs > 3


def by_spark(database):
    try:
        done = database.refresh()
    except ViewFailed:
        return 1
    assert set(done.executors) <= {"spark"}
    return done.epochs
