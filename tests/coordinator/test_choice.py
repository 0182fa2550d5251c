"""Which executor runs an epoch: few waiting rows in process, many by Spark, and a setting fixes either."""

from __future__ import annotations

import pytest

from viewkeeper.clock import SimulatedClock
from viewkeeper.coordinator.core import Outcome
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database.connection import Database
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.pipeline.choose import executor_for
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

LOCAL_ROWS_MAX = 10


class _Standing(LocalExecutor):
    """Stands for Spark: runs epochs in process under its name, and notes how much each has read."""

    name = "spark"
    rows: list[int]

    def run(self, plan: EpochPlan) -> EpochResult:
        self.rows.append(plan.work_rows)
        return super().run(plan)


class _Shop:
    """A store with a view of a table, whose Spark is made where it is first needed, as the real one is."""

    def __init__(self, executor: str) -> None:
        store = memory_store()
        self.started: list[_Standing] = []

        def start() -> _Standing:
            spark = _Standing(store.base, store.views)
            spark.rows = []
            self.started.append(spark)
            return spark

        store.executors = {"spark": start}
        settings = Settings(executor=executor, local_rows_max=LOCAL_ROWS_MAX)
        self.db = Database(store, settings, clock=SimulatedClock(1000.0))
        self.db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
        self._key = 0

    def put(self, rows: int) -> None:
        self.db.put_batch("t", [{"k": self._key + i} for i in range(rows)])
        self._key += rows

    def refreshed(self, rows: int) -> str:
        """Return what ran the epoch of so many waiting rows."""
        self.put(rows)
        done = self.db.refresh()
        (view,) = self.db.status()["views"]
        assert done.epochs == 1
        assert view["executor"] == done.executor
        assert list(self.db.scan("v")) == [{"n": self._key}]
        return done.executor

    def filled(self, rows: int) -> str:
        """Return what read so many rows of the table while a view was filled; the first step of it reads none."""
        self.db.sql("DROP MATERIALIZED VIEW v; TRUNCATE TABLE t")
        self.put(rows)
        self.db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
        (view,) = self.db.status()["views"]
        return str(view["executor"])


@pytest.mark.parametrize(
    ("executor", "few", "many"), [("auto", "local", "spark"), ("local", "local", "local"), ("spark", "spark", "spark")]
)
def test_the_waiting_rows_decide_unless_a_setting_does(executor: str, few: str, many: str) -> None:
    shop = _Shop(executor)
    assert [shop.refreshed(1), shop.refreshed(LOCAL_ROWS_MAX)] == [few, few]
    assert len(shop.started) == (few == "spark"), "a small store needs no Spark, so none is started"
    assert [shop.refreshed(LOCAL_ROWS_MAX + 1), shop.refreshed(5), shop.filled(5)] == [many, few, few]
    assert shop.filled(LOCAL_ROWS_MAX + 1) == many
    ran = {"auto": [11, 11], "local": [], "spark": [0, 1, 10, 11, 5, 5, 11]}[executor]
    assert [rows for spark in shop.started for rows in spark.rows] == ran


@pytest.mark.parametrize(
    ("executor", "few", "many"), [("auto", "local", "spark"), ("local", "local", "local"), ("spark", "spark", "spark")]
)
def test_the_maintainer_chooses_likewise(executor: str, few: str, many: str) -> None:
    shop = _Shop(executor)
    outcomes: list[Outcome] = []
    maintainer = Maintainer(shop.db._engine.coordinator, report=outcomes.append)
    maintainer.round()
    outcomes.clear()
    for rows in (LOCAL_ROWS_MAX, LOCAL_ROWS_MAX + 1, 1):
        shop.put(rows)
        assert maintainer.round()
    assert [(o.log_rows, o.executor) for o in outcomes] == [(10, few), (11, many), (1, few)]


@pytest.mark.parametrize("executor", ["auto", "local", "spark"])
def test_what_only_spark_evaluates_goes_to_spark_whatever_the_setting(executor: str) -> None:
    settings = Settings(executor=executor)
    assert executor_for(1, True, settings, ("local", "spark")) == "spark"
    assert executor_for(1, False, settings, ("local", "spark")) == ("spark" if executor == "spark" else "local")
