"""Scripts whose epochs run by Spark, on LMDB; `make sim` goes on with fresh seeds."""

from functools import cache

import pytest

from viewkeeper.executors.spark.session import spark_session
from viewkeeper.testing.spark_epochs import drawn_scripts, run_by_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEED, SCRIPTS, A_STORE = 0, 50, 10


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
    assert counts["views after Spark's epochs"] > 3 * A_STORE
