"""Continuous maintenance: the loop that keeps every cadence at its pace, answers requests and purges the log."""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.coordinator import builds, requests, upkeep
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.errors import ConflictError, ViewkeeperError
from viewkeeper.views.definition import ACTIVE, BUILDING

Report = Callable[[Outcome], None]

_PURGE_SECONDS = 1.0


class Maintainer:
    """Runs due epochs, one round after the other; the caller holds the maintainer's lock.

    Args:
        coordinator: runs the epochs.
        report: called with each epoch.
        complain: called with each error that is not the maintainer's end.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        report: Report = lambda outcome: None,
        complain: Callable[[ViewkeeperError], None] = lambda error: None,
    ) -> None:
        self._coordinator = coordinator
        self._report = report
        self._complain = complain
        self._due: dict[str, float] = {}
        self._purge_at = 0.0

    def run(self, is_over: Callable[[], bool]) -> None:
        """Maintain until ``is_over`` says so; asked between rounds."""
        upkeep.begin(self._coordinator)
        while not is_over():
            if not self.round():
                self._coordinator.clock.sleep(self._coordinator.settings.poll_interval_seconds)

    def round(self) -> bool:
        """Do what is due now; return whether there was anything."""
        busy = self._answer_requests()
        busy |= self._finish_builds()
        now = self._coordinator.clock.monotonic_seconds()
        for cadence, pause in self._cadences().items():
            if pause and now < self._due.get(cadence, 0.0):
                continue
            self._due[cadence] = now + pause
            busy |= self._epoch(cadence)
        if now >= self._purge_at:
            self._purge_at = now + _PURGE_SECONDS
            upkeep.begin(self._coordinator)
            upkeep.purge(self._coordinator)
        return busy

    def _epoch(self, cadence: str) -> bool:
        try:
            outcome = self._coordinator.epoch(cadence)
        except ConflictError as error:
            self._complain(error)
            return False
        if outcome is None:
            return False
        self._report(outcome)
        return True

    def _cadences(self) -> dict[str, float]:
        """Return the cadences that run by themselves, and the pause between two of their epochs."""
        found: dict[str, float] = {}
        for view in self._coordinator.catalog().views.values():
            if view.state == ACTIVE and view.refresh.kind != "ON_DEMAND":
                found[view.cadence] = view.refresh.every_seconds or 0.0
        return found

    def _answer_requests(self) -> bool:
        with self._coordinator.base.read() as txn:
            waiting = list(requests.waiting(txn))
        for name, request in waiting:
            requests.reply(self._coordinator.base, name, request, lambda r=request: self._do(r))  # type: ignore[misc]
        return bool(waiting)

    def _do(self, request: requests.Request) -> list[Outcome]:
        if request.kind == "build":
            return builds.build(self._coordinator, request.view)
        outcomes: list[Outcome] = []
        for cadence in request.cadences:
            outcomes += self._coordinator.catch_up(cadence, request.position)
        return outcomes

    def _finish_builds(self) -> bool:
        """Go on with views whose creator died while they were filled."""
        catalog = self._coordinator.catalog()
        left = [v.id for v in catalog.views.values() if v.state == BUILDING]
        for view in left:
            try:
                outcomes = builds.build(self._coordinator, view)
            except ConflictError as error:
                self._complain(error)
                continue
            for outcome in outcomes:
                self._report(outcome)
        return bool(left)
