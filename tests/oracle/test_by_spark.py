"""Scripts whose epochs run by Spark, on LMDB; `make sim` goes on with fresh seeds."""

from functools import cache

import pytest

from viewkeeper.executors.spark.session import spark_session
from viewkeeper.pipeline.records import read_view
from viewkeeper.testing.draws import OracleFailure
from viewkeeper.testing.spark_epochs import SharedStore, drawn_scripts, fills, run_by_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEED, SCRIPTS, STORES = 0, 50, 5
A_STORE = SCRIPTS // STORES


@pytest.fixture(scope="module")
def spark():
    session = spark_session()
    yield session
    session.stop()


@cache
def drawn():
    # So dealt out, each store has some whose views Spark fills, whatever is drawn.
    return sorted(drawn_scripts(SEED, SCRIPTS), key=fills)


@pytest.mark.parametrize("store", range(STORES))
def test_epochs_by_spark(store, spark, tmp_path):
    counts = run_by_spark(SEED, drawn()[store::STORES], tmp_path, spark)
    assert counts["epochs by Spark"] > 3
    assert counts["views filled by Spark"] > A_STORE // 2
    assert counts["views after Spark's epochs"] > 3 * A_STORE
    assert counts["views asked of Spark"] > A_STORE
    # It evaluates some conditions on more rows than the query has: see test_thousand.
    assert counts["views that Spark fails on"] <= A_STORE // 10


def test_a_row_that_is_lost_is_seen_by_spark(spark, tmp_path):
    with SharedStore(SEED, drawn()[:5], tmp_path, spark) as store:
        store.run()
        store.judge()
        shown = [(pair.run, view) for pair in store.pairs for view in pair.run.created if pair.run.published(view)]
        lose_a_row(*shown[0])
        with pytest.raises(OracleFailure, match=r"seed 0: .*script \d, s\d_\w+: row .*; 1 rows differ"):
            store.judge()


def lose_a_row(run, view):
    engine = run.database._engine
    with engine.store.views.write() as txn:
        record = read_view(txn, engine.coordinator.catalog().view(view).id)
        key, _row = next(iter(txn.scan(record.state)))
        txn.delete(record.state, key)
