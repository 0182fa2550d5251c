"""Continuous maintenance: the loop that keeps every cadence at its pace, answers requests and purges the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from viewkeeper.coordinator import requests, upkeep, work
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.coordinator.retries import Retries, Trouble
from viewkeeper.errors import ViewFailed, ViewkeeperError
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE

Report = Callable[[Outcome], None]

_PURGE_SECONDS = 1.0
_CATALOG, _REQUESTS, _UPKEEP = "reading the catalog", requests.ANSWERING, "purging the log"
_SCRUB = "checking views"


class Scrubbing(Protocol):
    """Checks views while there is nothing else to do (evaluation/scrub.py)."""

    def step(self, is_idle: bool) -> bool:
        """Do a little of what is due; return whether there was anything; ViewFailed: a view was found wrong."""

    def close(self) -> None:
        """Give up what is running."""


class Maintainer:
    """Runs due epochs, one round after the other; the caller holds the maintainer's lock.

    Work that fails, as on a full disk, is tried again later, and the other work goes on (see ``retries``).

    Args:
        coordinator: runs the epochs.
        report: called with each epoch.
        complain: called with each error that is not the maintainer's end, when it is news.
        note: called with all work that has failed and waits, whenever that changes.
        scrub: checks views in quiet moments.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        report: Report = lambda outcome: None,
        complain: Callable[[ViewkeeperError], None] = lambda error: None,
        note: Callable[[Sequence[Trouble]], None] = lambda troubles: None,
        scrub: Scrubbing | None = None,
    ) -> None:
        self._scrub = scrub
        self._coordinator = coordinator
        self._report = report
        self._complain = complain
        self._retries = Retries(coordinator.clock, complain, note)
        self._due: dict[str, float] = {}
        self._purge_at = 0.0
        self._is_swept = False

    def run(self, is_over: Callable[[], bool]) -> None:
        """Maintain until ``is_over`` says so; asked between rounds.

        Raises:
            ViewkeeperError: what cannot end by itself: the store is closed or damaged.
        """
        try:
            while not is_over():
                if not self.round():
                    self._coordinator.clock.sleep(self._coordinator.settings.poll_interval_seconds)
        finally:
            if self._scrub is not None:
                # What it still holds of the log goes with this process at the latest.
                with suppress(ViewkeeperError):
                    self._scrub.close()

    def round(self) -> bool:
        """Do what is due now; return whether there was anything."""
        attempt = self._retries.attempt
        now = self._coordinator.clock.monotonic_seconds()
        if not self._is_swept:
            # Before any epoch is run: what a predecessor has left.
            if attempt(_UPKEEP, self._begin) is None:
                return False
            self._is_swept = True
        busy = bool(attempt(_REQUESTS, self._answer_requests))
        catalog = attempt(_CATALOG, self._coordinator.catalog)
        if catalog is None:
            return busy
        tasks = [_CATALOG, _REQUESTS, _UPKEEP]
        for request in work.unfinished(catalog):
            task = f"filling view {catalog.views[request.view].name}"
            tasks.append(task)
            busy |= bool(attempt(task, partial(self._fill, request)))
        for cadence, pause in self._cadences(catalog).items():
            task = f"refreshing {cadence}"
            tasks.append(task)
            if pause and now < self._due.get(cadence, 0.0):
                continue
            done = attempt(task, partial(self._epoch, cadence))
            if done is not None:
                self._due[cadence] = now + pause
            busy |= bool(done)
        if now >= self._purge_at:
            self._purge_at = now + _PURGE_SECONDS
            attempt(_UPKEEP, self._purge)
        if self._scrub is not None:
            tasks.append(_SCRUB)
            busy |= bool(attempt(_SCRUB, partial(self._check, self._scrub, not busy)))
        self._retries.keep(tasks)
        return busy

    def _check(self, scrub: Scrubbing, is_idle: bool) -> bool:
        try:
            return scrub.step(is_idle)
        except ViewFailed as finding:
            # Kept beside what is published, where status finds it: nothing that could be tried again.
            self._complain(finding)
            return True

    def _begin(self) -> bool:
        self._put_in_order()
        return True

    def _purge(self) -> int:
        self._put_in_order()
        return upkeep.purge(self._coordinator)

    def _put_in_order(self) -> None:
        for view in upkeep.begin(self._coordinator):
            self._complain(upkeep.must_be_filled_anew(view))

    def _epoch(self, cadence: str) -> bool:
        outcome = self._coordinator.epoch(cadence)
        if outcome is None:
            return False
        self._report(outcome)
        return True

    def _cadences(self, catalog: Catalog) -> dict[str, float]:
        """Return the cadences that run by themselves, and the pause between two of their epochs."""
        found: dict[str, float] = {}
        for view in catalog.views.values():
            if view.state == ACTIVE and view.refresh.kind != "ON_DEMAND":
                found[view.cadence] = view.refresh.every_seconds or 0.0
        return found

    def _answer_requests(self) -> bool:
        base = self._coordinator.base
        with base.read() as txn:
            waiting = list(requests.waiting(txn))
        for name, request in waiting:
            requests.reply(base, name, request, partial(work.perform, self._coordinator, request))
        return bool(waiting)

    def _fill(self, request: requests.Request) -> bool:
        """Go on with a view whose creator died while it was filled."""
        try:
            outcomes = work.perform(self._coordinator, request)
        except ViewkeeperError as error:
            if not work.is_moot(error):
                raise
            return True
        for outcome in outcomes:
            self._report(outcome)
        return True
