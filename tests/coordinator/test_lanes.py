"""Lanes and turns: what goes on side by side, and what waits."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest

import viewkeeper as vk
from viewkeeper.coordinator import requests
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.coordinator.lanes import LIMITED_MAX, InTurn, IsLeft, SideBySide, Work
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.coordinator.requests import Request
from viewkeeper.coordinator.turns import LEAST_PART, Turns
from viewkeeper.database.connection import Database
from viewkeeper.errors import StoreError
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult
from viewkeeper.pipeline.failpoints import hooked
from viewkeeper.pipeline.records import read_cadences
from viewkeeper.runtime import make_coordinator, memory_store
from viewkeeper.settings import Settings

SECONDS = 60.0


@pytest.fixture
def coordinator() -> Coordinator:
    return make_coordinator(memory_store(), Settings(executor="local"))


@pytest.fixture
def lanes(coordinator: Coordinator) -> Iterator[SideBySide]:
    made = SideBySide(coordinator)
    yield made
    made.end()


def wait(event: threading.Event) -> None:
    assert event.wait(SECONDS)


class _Held:
    """Work that waits until it is let go."""

    def __init__(self, task: str, is_once: bool = True, is_limited: bool = False) -> None:
        self.is_under_way, self.let_go = threading.Event(), threading.Event()
        self.coordinators: list[Coordinator] = []
        self.work = Work(task, self._step, is_once, is_limited=is_limited)

    def _step(self, coordinator: Coordinator, is_left: IsLeft) -> bool:
        self.coordinators.append(coordinator)
        self.is_under_way.set()
        wait(self.let_go)
        return True


def test_work_goes_on_beside_work_that_is_held_up(lanes: SideBySide, coordinator: Coordinator) -> None:
    held, other = _Held("held"), _Held("other")
    lanes.go_on([held.work])
    wait(held.is_under_way)
    other.let_go.set()
    lanes.go_on([held.work, other.work])
    wait(other.is_under_way)
    # It is under way already: not once more.
    lanes.go_on([held.work])
    held.let_go.set()
    lanes.end()
    assert len(held.coordinators) == 1
    assert len({id(c) for c in (coordinator, *held.coordinators, *other.coordinators)}) == 3
    assert held.coordinators[0].turns is other.coordinators[0].turns is coordinator.turns


def test_work_that_is_no_longer_wanted_ends_after_its_step(lanes: SideBySide) -> None:
    steps = [threading.Event() for _ in range(3)]
    ended = threading.Event()

    def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
        if all(done.is_set() for done in steps):
            while not is_left():
                coordinator.clock.sleep(0.001)
            ended.set()
        next((done for done in steps if not done.is_set()), ended).set()
        return True

    lanes.go_on([Work("refreshing", step, is_once=False)])
    wait(steps[-1])
    lanes.go_on([])
    wait(ended)


def test_only_so_much_is_done_at_once_of_what_others_ask_for(lanes: SideBySide) -> None:
    asked = [_Held(f"request {number}", is_limited=True) for number in range(LIMITED_MAX + 1)]
    cadence, purging = _Held("cadence", is_once=False), _Held("purging")
    lanes.go_on([*(each.work for each in asked), cadence.work, purging.work])
    for each in (*asked[:-1], cadence, purging):
        wait(each.is_under_way)
    assert not asked[-1].is_under_way.is_set()
    # What comes later waits behind it, whatever their order is.
    later = [_Held(f"later {number}", is_limited=True) for number in range(LIMITED_MAX)]
    lanes.go_on([*(each.work for each in (*later, *asked)), cadence.work])
    for each in (*asked, cadence, purging):
        each.let_go.set()
    while not asked[-1].is_under_way.is_set():
        assert not later[-1].is_under_way.is_set()
        lanes.go_on([each.work for each in (*later, asked[-1])])
    for each in later:
        each.let_go.set()


def test_what_ends_a_lane_ends_the_maintainer(lanes: SideBySide) -> None:
    def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
        raise StoreError("STORE_CLOSED", "It is closed.")

    def go_on_for_ever() -> None:
        while True:
            lanes.go_on([Work("refreshing", step, is_once=False)])

    with pytest.raises(StoreError, match="STORE_CLOSED"):
        go_on_for_ever()


def test_a_coordinator_is_kept_for_work_that_returns(lanes: SideBySide) -> None:
    used: list[Coordinator] = []

    def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
        used.append(coordinator)
        return True

    while len(used) < 5:
        lanes.go_on([Work("refreshing every-5", step, returns=True)])
    assert len({id(coordinator) for coordinator in used}) == 1


def test_what_is_known_of_cadences_and_views_goes_with_them(lanes: SideBySide, coordinator: Coordinator) -> None:
    used: list[Coordinator] = []

    def step(own: Coordinator, is_left: IsLeft) -> bool:
        used.append(own)
        return True

    while not used:
        lanes.go_on([Work("refreshing every-5", step, returns=True)])
    lanes.end()
    lanes.keep(["refreshing every-6"])
    lanes.go_on([Work("refreshing every-5", step, returns=True)])
    lanes.end()
    assert used[0] is not used[1]


def test_a_coordinator_forgets_views_that_were_dropped() -> None:
    db = Database(memory_store(), Settings(executor="local"))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    own = db._engine.coordinator
    for number in range(3):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} REFRESH EVERY {number + 1} SECONDS AS SELECT k FROM t")
        if number < 2:
            db.sql(f"DROP MATERIALIZED VIEW v{number}")
    db.put("t", {"k": 1})
    db.refresh()
    (view,) = own.catalog().views
    assert (set(own._members), set(own.planner._plans)) == ({"every-3"}, {view})
    assert (set(own.ways._casts), set(own.ways._figures)) == ({"every-3"}, {view})


@pytest.mark.slow
def test_views_that_come_and_go_leave_nothing_in_memory() -> None:
    db = Database(memory_store(), Settings(executor="local"))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE TABLE u (k BIGINT PRIMARY KEY, v INT)")
    held: list[dict[str, int]] = []
    for key in range(6):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT v, COUNT(*) AS n FROM t JOIN u USING (k) GROUP BY v")
        db.put("t", {"k": key})
        db.sql(f"INSERT INTO u VALUES ({key}, 1)")
        db.refresh()
        assert db.sql("SELECT n FROM v").rows() == [{"n": key + 1}]
        db.sql("DROP MATERIALIZED VIEW v")
        gc.collect()
        kinds = Counter(type(one).__name__ for one in gc.get_objects())
        held.append({kind: kinds[kind] for kind in ("Table", "TableFormat", "ViewDefinition", "Circuit", "Figures")})
    # The first ones fill what is kept of queries.
    assert held[2:] == [held[2]] * 4


def test_in_turn_each_piece_has_its_step_also_behind_a_busy_one(coordinator: Coordinator) -> None:
    did: list[str] = []

    def piece(task: str, is_busy: bool) -> Work:
        def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
            did.append(task)
            return is_busy

        return Work(task, step)

    in_turn = InTurn(coordinator)
    assert in_turn.go_on([piece("a", True), piece("b", False)])
    assert not in_turn.go_on([piece("c", False)])
    assert did == ["a", "b", "c"]


def test_a_turn_is_of_one_thread_and_of_one_cadence() -> None:
    turns, entered, others = Turns(), threading.Event(), threading.Event()
    order: list[str] = []

    def second() -> None:
        with turns.of("hourly"):
            others.set()
        entered.set()
        with turns.of("continuous"):
            order.append("second")

    with turns.of("continuous"), turns.of("continuous"):
        thread = threading.Thread(target=second)
        thread.start()
        wait(others)
        wait(entered)
        order.append("first")
    thread.join(SECONDS)
    assert order == ["first", "second"]


def test_swaps_wait_for_each_other_and_for_all_their_cadences() -> None:
    turns, entered = Turns(), threading.Event()
    order: list[str] = []

    def second() -> None:
        entered.set()
        with turns.of_all(["build-2"], ["b", "a"]):
            order.append("second")

    with turns.of_all(["build-1"], ["a", "b"]):
        thread = threading.Thread(target=second)
        thread.start()
        wait(entered)
        order.append("first")
    thread.join(SECONDS)
    assert order == ["first", "second"]


@pytest.mark.parametrize("published", [3, 24])
def test_a_fill_is_left_between_two_epochs_and_goes_on_later(tmp_path: Path, published: int) -> None:
    """Between two pieces, of which there are 21 with the first one, and two epochs by which it follows the log."""
    settings = {"executor": "local", "build_rows": 10, "local_rows_max": 10, "epoch_rows_max": 10}
    with vk.connect(str(tmp_path / "store"), **settings) as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)")
        db.put_batch("t", [{"k": k, "v": k % 3} for k in range(200)])
        db.sql("CREATE MATERIALIZED VIEW v WITH NO DATA AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
        coordinator = db._engine.coordinator
        stopping = threading.Event()

        def at(name: str, left: list[int] = [published]) -> None:  # noqa: B006
            if name == "build:begun":
                for first in range(0, 60, 10):
                    db.put_batch("t", [{"k": k, "v": (k + 1) % 3} for k in range(first, first + 10)])
            left[0] -= name == "publish:after"
            if not left[0]:
                stopping.set()
                while not all(lane.is_left.is_set() for lane in lanes._lanes.values()):
                    coordinator.clock.sleep(0.001)

        lanes = SideBySide(coordinator)
        with hooked(at):
            Maintainer(coordinator, lanes=lanes).run(stopping.is_set)
        with db._engine.store.views.read() as txn:
            (record,) = read_cadences(txn)
        assert record.epoch == published
        assert (record.build is None) == (published > 21)
        assert db.status()["views"][0]["filled"] == (0.1 if record.build else 1.0)
        outcomes: list[Outcome] = []
        other = Maintainer(coordinator, outcomes.append, lanes=SideBySide(coordinator))
        other.run(lambda: db.status()["views"][0]["state"] == "ACTIVE")
        # The cadence that it joins may have run an epoch of its own before the last look at the state.
        filling = [outcome.epoch for outcome in outcomes if outcome.cadence.startswith("build-")]
        assert filling == list(range(published + 1, 28))
        assert db.status()["views"][0]["filled"] is None
        assert sorted(db.scan("v"), key=lambda row: row["v"]) == [
            {"v": 0, "n": 67},
            {"v": 1, "n": 67},
            {"v": 2, "n": 66},
        ]


class _Meeting(LocalExecutor):
    """Epochs that run until as many others do."""

    met = threading.Barrier(3, timeout=SECONDS)
    log_bytes: ClassVar[list[int]] = []

    def run(self, plan: EpochPlan) -> EpochResult:
        self.log_bytes.append(plan.log_bytes)
        self.met.wait()
        return super().run(plan)


def test_large_epochs_side_by_side_have_the_memory_of_one() -> None:
    store, settings = memory_store(), Settings(executor="local", memory_bytes=1 << 20)
    db = Database(store, settings)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
    for hours in range(1, 4):
        db.sql(f"CREATE MATERIALIZED VIEW v{hours} REFRESH EVERY {hours} HOURS AS SELECT SUM(v) AS s FROM t")
    for start in range(0, 6_000, 50):
        db.put_batch("t", [{"k": k, "v": k} for k in range(start, start + 50)])
    pattern = Coordinator(store.base, store.views, {"local": lambda: _Meeting(store.base, store.views)}, settings)
    bound = pattern.epoch_size.log_bytes
    threads = [
        threading.Thread(target=pattern.beside().epoch, args=(f"every-{3600 * hours}",)) for hours in range(1, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(_Meeting.log_bytes) == 3
    # A transaction is never split, here one of 50 rows.
    assert sum(_Meeting.log_bytes) < (1 + 2 * LEAST_PART) * bound + 3 * bound / 16
    assert max(_Meeting.log_bytes) > 0.8 * bound
    db.refresh()
    assert [next(iter(db.scan(f"v{hours}")))["s"] for hours in range(1, 4)] == [sum(range(6_000))] * 3


def test_an_epoch_whose_memory_another_has_taken_meanwhile_is_planned_anew() -> None:
    db = Database(memory_store(), Settings(executor="local", memory_bytes=1 << 20))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    for start in range(0, 6_000, 50):
        db.put_batch("t", [{"k": k} for k in range(start, start + 50)])
    own = db._engine.coordinator
    planned, sizes = own.planned, list[int]()
    with ExitStack() as others:

        def and_taken(*what: Any, **how: Any) -> EpochPlan | None:
            plan = planned(*what, **how)
            assert plan is not None
            if not sizes:
                assert others.enter_context(own.turns.part(1.0))
            sizes.append(plan.log_bytes)
            return plan

        own.planned = and_taken  # type: ignore[method-assign]
        assert own.epoch("continuous") is not None
    before, after = sizes
    assert after < before / 4


def test_a_piece_that_is_read_beside_large_epochs_is_small() -> None:
    store, settings = memory_store(), Settings(executor="local", build_rows=80)
    db = Database(store, settings)
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    db.put_batch("t", [{"k": k} for k in range(400)])
    rows: list[int] = []

    def progress(done: int, total: int, outcome: Outcome) -> None:
        rows.append(outcome.log_rows)

    with ExitStack() as others:
        others.enter_context(db._engine.coordinator.turns.part(0.875))
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM t", progress=progress)
    assert rows == [0, *[40] * 10]


def test_a_request_is_answered_once(coordinator: Coordinator) -> None:
    """A round may see it as waiting still when its lane has just ended; the asker reads what the epochs were."""
    name = requests.ask(coordinator.base, Request("refresh"))
    with coordinator.base.read() as txn:
        ((_, request),) = requests.waiting(txn)
    outcome = Outcome("continuous", 1, 1, 1, 1, 0.0, "local")
    requests.reply(coordinator.base, name, request, lambda: [outcome])
    requests.reply(coordinator.base, name, request, lambda: pytest.fail("it is done twice"))
    with coordinator.base.read() as txn:
        ((_, answered),) = requests.all_of(txn)
    assert answered.outcomes == (outcome,)
