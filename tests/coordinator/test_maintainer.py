"""When the maintainer runs which cadence."""

from __future__ import annotations

from collections import defaultdict

from viewkeeper.clock import SimulatedClock
from viewkeeper.coordinator.core import Outcome
from viewkeeper.coordinator.maintainer import Maintainer
from viewkeeper.database.connection import Database
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

SETUP = """
CREATE TABLE t (k BIGINT PRIMARY KEY);
CREATE MATERIALIZED VIEW always AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW often REFRESH EVERY 20 SECONDS AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW seldom REFRESH EVERY 1 MINUTE AS SELECT COUNT(*) AS n FROM t;
CREATE MATERIALIZED VIEW never REFRESH ON DEMAND AS SELECT COUNT(*) AS n FROM t
"""


class _Watch:
    """A maintained store under a clock that only the test moves."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(1000.0)
        self.db = Database(memory_store(), Settings(executor="local"), clock=self.clock)
        self.db.sql(SETUP)
        self.views = {view["cadence"]: view["name"] for view in self.db.status()["views"]}
        self.ran: list[str] = []
        self.maintainer = Maintainer(self.db._engine.coordinator, report=self._note)
        self._key = 0

    def _note(self, outcome: Outcome) -> None:
        self.ran.append(self.views[outcome.cadence])

    def put(self) -> None:
        self._key += 1
        self.db.put("t", {"k": self._key})

    def round(self) -> list[str]:
        """Return the views that a round of the maintainer has refreshed."""
        self.ran.clear()
        self.maintainer.round()
        return sorted(self.ran)

    def shown(self, view: str) -> int:
        (row,) = self.db.scan(view)
        return int(row["n"])


def test_views_with_an_interval_run_when_it_has_passed_and_not_before() -> None:
    watch, ran_at = _Watch(), defaultdict[str, list[int]](list)
    for second in range(121):
        watch.put()
        for name in watch.round():
            ran_at[name].append(second)
        # What waits is left alone until it is due, also where the maintainer looks again at once.
        assert watch.round() == []
        assert watch.shown("often") == 1 + second // 20 * 20
        assert watch.shown("seldom") == 1 + second // 60 * 60
        watch.clock.sleep(1)
    assert ran_at == {
        "always": list(range(121)),
        "often": [0, 20, 40, 60, 80, 100, 120],
        "seldom": [0, 60, 120],
    }
    assert watch.shown("never") == 0


def test_a_write_just_after_an_idle_turn_waits_for_the_next_one() -> None:
    watch = _Watch()
    assert watch.round() == ["always", "often", "seldom"], "at its start it brings up all that has an interval"
    watch.clock.sleep(20)
    assert watch.round() == []
    watch.clock.sleep(0.5)
    watch.put()
    assert watch.round() == ["always"]
    watch.clock.sleep(19)
    assert watch.round() == []
    watch.clock.sleep(0.5)
    assert watch.round() == ["often"]
    watch.clock.sleep(20)
    assert watch.round() == ["seldom"]
