"""Scripts whose epochs run by Spark, on LMDB; `make sim` goes on with fresh seeds."""

from functools import cache

import pytest

from viewkeeper.executors.spark.session import spark_session
from viewkeeper.pipeline.records import read_view
from viewkeeper.testing.draws import OracleFailure
from viewkeeper.testing.oracle import Run, in_memory
from viewkeeper.testing.spark_epochs import SharedStore, drawn_scripts, fills, run_by_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEED, SCRIPTS, STORES = 1, 50, 5
A_STORE = SCRIPTS // STORES


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


@cache
def drawn():
    return drawn_scripts(SEED, SCRIPTS)


@pytest.mark.parametrize("store", range(STORES))
def test_epochs_by_spark(store, spark, tmp_path):
    # Each store has its share of scripts whose views Spark fills, whatever is drawn.
    scripts = sorted(drawn(), key=fills)[store::STORES]
    counts = run_by_spark(SEED, scripts, tmp_path, spark)
    assert counts["epochs by Spark"] > 3
    assert counts["views filled by Spark"] > A_STORE // 2
    assert counts["views after Spark's epochs"] > 3 * A_STORE
    assert counts["views asked of Spark"] > A_STORE
    # It evaluates some conditions on more rows than the query has: see test_thousand. A view drawn twice counts twice.
    assert counts["views that Spark fails on"] <= A_STORE // 5


def test_a_row_that_is_lost_is_seen_by_spark(spark, tmp_path):
    with SharedStore(SEED, [next(filter(shows_rows, drawn()))], tmp_path, spark) as store:
        store.run()
        store.judge()
        (pair,) = store.pairs
        assert store.counts["views asked of Spark"] == len(pair.run.good_views())
        lose_a_row(pair.run, next(view.name for view in pair.run.good_views() if pair.run.published(view.name)))
        with pytest.raises(OracleFailure, match=rf"seed {SEED}: .*script 0, s0_\w+: row .*; 1 rows differ"):
            store.judge()


def shows_rows(script):
    with in_memory(script.time_zone) as database:
        run = Run(script, database).all_steps()
        return any(run.published(view.name) for view in run.good_views())


def lose_a_row(run, view):
    engine = run.database._engine
    with engine.store.views.write() as txn:
        record = read_view(txn, engine.coordinator.catalog().view(view).id)
        key, _row = next(iter(txn.scan(record.state)))
        txn.delete(record.state, key)
