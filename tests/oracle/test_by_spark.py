"""Scripts whose epochs run by Spark, on LMDB; `make sim` goes on with fresh seeds."""

from functools import cache

import pytest

from viewkeeper.executors.spark.session import spark_session
from viewkeeper.pipeline.records import read_view
from viewkeeper.testing.draws import OracleFailure
from viewkeeper.testing.spark_epochs import SharedStore, drawn_scripts, run_by_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEED, SCRIPTS, A_STORE = 1, 50, 10


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


@cache
def drawn():
    return drawn_scripts(SEED, SCRIPTS)


@pytest.mark.parametrize("first", range(0, SCRIPTS, A_STORE))
def test_epochs_by_spark(first, spark, tmp_path):
    counts = run_by_spark(SEED, drawn()[first : first + A_STORE], tmp_path, spark)
    assert counts["epochs by Spark"] > 3
    assert counts["views filled by Spark"] > A_STORE // 2
    assert counts["views after Spark's epochs"] > 3 * A_STORE
    assert counts["views asked of Spark"] > A_STORE
    # It evaluates some conditions on more rows than the query has: see test_thousand. A view drawn twice counts twice.
    assert counts["views that Spark fails on"] <= A_STORE // 5


def test_a_row_that_is_lost_is_seen_by_spark(spark, tmp_path):
    with SharedStore(SEED, drawn()[3:4], tmp_path, spark) as store:
        store.run()
        store.judge()
        ((pair,), asked) = store.pairs, store.counts["views asked of Spark"]
        lose_a_row(pair.run, next(view for view in pair.run.created if pair.run.published(view)))
        with pytest.raises(OracleFailure, match=rf"seed {SEED}: .*script 0, s0_\w+: row .*; 1 rows differ"):
            store.judge()
    assert asked == 2


def lose_a_row(run, view):
    engine = run.database._engine
    with engine.store.views.write() as txn:
        record = read_view(txn, engine.coordinator.catalog().view(view).id)
        key, _row = next(iter(txn.scan(record.state)))
        txn.delete(record.state, key)
