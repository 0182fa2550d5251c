"""Work of the maintainer that fails waits and is tried again, bounded and by the clock, and the other work goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper.clock import SimulatedClock
from viewkeeper.coordinator import requests
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.coordinator.retries import PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN, Retries, Trouble
from viewkeeper.database.connection import Database
from viewkeeper.errors import StoreError, ViewkeeperError
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings


def full() -> None:
    raise StoreError("DISK_FULL", "Make room.")


def test_pauses_double_up_to_a_bound_and_end_with_success() -> None:
    clock = SimulatedClock(5.0)
    said: list[ViewkeeperError] = []
    noted: list[tuple[Trouble, ...]] = []
    retries = Retries(clock, said.append, lambda troubles: noted.append(tuple(troubles)))
    pauses = []
    for _ in range(12):
        assert retries.attempt("work", full) is None
        (trouble,) = retries.troubles
        pauses.append(trouble.pause_seconds)
        # Not before its time.
        assert retries.attempt("work", lambda: 1) is None
        clock.sleep(trouble.pause_seconds)
    assert pauses[:3] == [PAUSE_SECONDS_MIN, 2 * PAUSE_SECONDS_MIN, 4 * PAUSE_SECONDS_MIN]
    assert pauses[-1] == max(pauses) == PAUSE_SECONDS_MAX
    assert (trouble.attempts, trouble.since_seconds, trouble.code) == (12, 5.0, "DISK_FULL")
    assert len(said) == 1
    assert retries.attempt("work", lambda: 1) == 1
    assert noted[-1] == retries.troubles == ()


def test_what_cannot_end_by_itself_ends_the_maintainer() -> None:
    def closed() -> None:
        raise StoreError("STORE_CLOSED", "It is closed.")

    with pytest.raises(StoreError, match="STORE_CLOSED"):
        Retries(SimulatedClock()).attempt("work", closed)


def test_work_that_is_gone_is_forgotten() -> None:
    retries = Retries(SimulatedClock())
    retries.attempt("filling view v", full)
    retries.attempt("purging", full)
    retries.keep(["purging"])
    assert [trouble.task for trouble in retries.troubles] == ["purging"]
    assert retries.attempt("filling view v", lambda: 1) == 1


class Sick(LocalExecutor):
    """An executor that has no room for the epochs of one cadence."""

    cadence = ""

    def run(self, plan: EpochPlan) -> EpochResult:
        if plan.members.cadence == self.cadence:
            full()
        return super().run(plan)


SETUP = """
CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k));
CREATE MATERIALIZED VIEW a AS SELECT k, v FROM t;
CREATE MATERIALIZED VIEW b REFRESH EVERY 20 SECONDS AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW c REFRESH EVERY 1 HOUR AS SELECT SUM(v) AS s FROM t
"""


@pytest.mark.parametrize("late", ["a", "c"])
def test_other_cadences_go_on_and_the_sick_one_recovers(late: str) -> None:
    store, clock = memory_store(), SimulatedClock(1000.0)
    executor = Sick(store.base, store.views)
    store.executors = {"local": lambda: executor}
    database = Database(store, Settings(executor="local"), clock=clock)
    database.sql(SETUP)
    cadences = {view["name"]: view["cadence"] for view in database.status()["views"]}
    executor.cadence = cadences[late]
    noted: list[tuple[Trouble, ...]] = []
    coordinator = database._engine.coordinator
    maintainer = Maintainer(coordinator, note=lambda troubles: noted.append(tuple(troubles)))
    database.put("t", {"k": 1, "v": 7})

    def behind() -> set[str]:
        return {view["name"] for view in database.status()["views"] if view["behind"]}

    run_for(maintainer, clock, 60)
    assert behind() == {late}
    (trouble,) = noted[-1]
    assert (trouble.task, trouble.code) == (f"refreshing {cadences[late]}", "DISK_FULL")
    assert trouble.pause_seconds == PAUSE_SECONDS_MAX
    executor.cadence = ""
    # As soon as there is room, also where its next epoch would be due in an hour.
    run_for(maintainer, clock, PAUSE_SECONDS_MAX)
    assert behind() == set()
    assert noted[-1] == ()


def run_for(maintainer: Maintainer, clock: SimulatedClock, seconds: float) -> None:
    end = clock.monotonic_seconds() + seconds
    maintainer.run(lambda: advanced(clock) > end)


def advanced(clock: SimulatedClock) -> float:
    clock.sleep(0.05)
    return clock.monotonic_seconds()


def test_the_maintainer_outlives_errors_of_the_log_and_says_them(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = memory_store(), SimulatedClock(1000.0)
    database = Database(store, Settings(executor="local"), clock=clock)
    database.sql(SETUP)
    broken: list[bool] = [True]
    write: Callable[[], Any] = store.base.write

    def write_or_fail() -> Any:
        if broken:
            full()
        return write()

    noted: list[tuple[Trouble, ...]] = []
    maintainer = Maintainer(database._engine.coordinator, note=lambda troubles: noted.append(tuple(troubles)))
    database.put("t", {"k": 1, "v": 7})
    monkeypatch.setattr(store.base, "write", write_or_fail)
    run_for(maintainer, clock, 30)
    assert [trouble.task for trouble in noted[-1]] == ["purging the log"]
    broken.clear()
    run_for(maintainer, clock, 12)
    assert noted[-1] == ()
    assert not any(view["behind"] for view in database.status()["views"] if view["name"] != "c")


def test_a_request_that_cannot_be_answered_is_no_trouble_once_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = memory_store(), SimulatedClock(1000.0)
    database = Database(store, Settings(executor="local"), clock=clock)
    database.sql(SETUP)
    noted: list[tuple[Trouble, ...]] = []
    maintainer = Maintainer(database._engine.coordinator, note=lambda troubles: noted.append(tuple(troubles)))
    run_for(maintainer, clock, 1)
    name = requests.ask(store.base, requests.Request("refresh", cadences=("continuous",)))
    with monkeypatch.context() as patched:
        patched.setattr(store.base, "write", full)
        run_for(maintainer, clock, 1)
        assert requests.ANSWERING in [trouble.task for trouble in noted[-1]]
    with store.base.write() as txn:
        txn.delete(requests.DATABASE, name)
    run_for(maintainer, clock, 12)
    assert noted[-1] == ()
