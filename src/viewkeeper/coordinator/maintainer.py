"""Continuous maintenance: what keeps every cadence at its pace, answers requests and purges the log.

Each round looks what there is to do: a cadence that is due, a view whose creator died, a request of another process,
the log to be purged, views to be checked. Lanes (``lanes.py``) do it, each piece beside the others, so that no long
epoch, fill or request delays another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Protocol

from viewkeeper.coordinator import requests, upkeep, work
from viewkeeper.coordinator.core import Coordinator, Outcome
from viewkeeper.coordinator.lanes import InTurn, IsLeft, Lanes, Work
from viewkeeper.coordinator.retries import Retries, Trouble
from viewkeeper.errors import ViewFailed, ViewkeeperError
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE

Report = Callable[[Outcome], None]

_PURGE_SECONDS = 1.0
_SCRUB_SECONDS = 0.05
_CATALOG, _REQUESTS, _UPKEEP = "reading the catalog", requests.ANSWERING, "purging the log"
_SCRUB = "checking views"


class Scrubbing(Protocol):
    """Checks views while there is nothing else to do (evaluation/scrub.py)."""

    def step(self, is_idle: bool) -> bool:
        """Do a little of what is due; return whether there was anything; ViewFailed: a view was found wrong."""

    def close(self) -> None:
        """Give up what is running."""


class _LeftError(Exception):
    """Work is left between two epochs; whoever comes next goes on with it."""


class Maintainer:
    """Runs what is due; the caller holds the maintainer's lock.

    Work that fails, as on a full disk, is tried again later, and the other work goes on (see ``retries``).

    Args:
        coordinator: runs the epochs.
        report: called with each epoch, of one at a time.
        complain: called with each error that is not the maintainer's end, when it is news.
        note: called with all work that has failed and waits, whenever that changes.
        scrub: checks views in quiet moments.
        lanes: where the work goes on; by default one piece after the other.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        report: Report = lambda outcome: None,
        complain: Callable[[ViewkeeperError], None] = lambda error: None,
        note: Callable[[Sequence[Trouble]], None] = lambda troubles: None,
        scrub: Scrubbing | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self._scrub = scrub
        # Whether nothing was to be done in this round that takes time, and the epochs there were at the last check.
        self._is_quiet = True
        self._epochs_seen = self._epochs_run = 0
        self._coordinator = coordinator
        self._report_outcome = report
        self._reporting = Lock()
        self._complain = complain
        self._lanes = lanes or InTurn(coordinator)
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
                    self._coordinator.clock.sleep(self._lanes.pause_seconds)
        finally:
            self._lanes.end()
            if self._scrub is not None:
                # What it still holds of the log goes with this process at the latest.
                with suppress(ViewkeeperError):
                    self._scrub.close()

    def round(self) -> bool:
        """Go on with what is due now; return whether anything was done."""
        attempt = self._retries.attempt
        if not self._is_swept:
            # Before any epoch is run: what a predecessor has left.
            if attempt(_UPKEEP, self._begin) is None:
                return False
            self._is_swept = True
        seen = attempt(_CATALOG, self._look)
        return False if seen is None else self._lanes.go_on(self._wanted(*seen))

    def _look(self) -> tuple[Catalog, list[tuple[bytes, requests.Request]]]:
        with self._coordinator.base.read() as txn:
            asked = list(requests.waiting(txn))
        return self._coordinator.catalog(), asked

    def _wanted(self, catalog: Catalog, asked: Sequence[tuple[bytes, requests.Request]]) -> list[Work]:
        """Return what is to be done now."""
        now = self._coordinator.clock.monotonic_seconds()
        cadences = self._cadences(catalog)
        # What its creator waits for is no crash's remainder.
        asked_for = {request.view for _, request in asked if request.kind == "build"}
        fills = [self._filling(catalog, r) for r in work.unfinished(catalog) if r.view not in asked_for]
        refreshes = [self._refreshing(*each) for each in cadences.items()]
        # Nobody may wait any more for the answer that could not be written.
        self._keep(cadences, [*(w.task for w in (*fills, *refreshes)), *([_REQUESTS] if asked else [])])
        due = [w for w, cadence in zip(refreshes, cadences, strict=True) if now >= self._due.get(cadence, 0.0)]
        wanted = [w for w in (*fills, *due) if not self._retries.is_waiting(w.task)]
        if not self._retries.is_waiting(_REQUESTS):
            wanted = [self._answering(*each) for each in asked] + wanted
        if now >= self._purge_at and not self._retries.is_waiting(_UPKEEP):
            wanted.append(Work(_UPKEEP, self._purging))
        if self._scrub is not None:
            self._is_quiet = not asked and all(work.task == _UPKEEP or not work.is_once for work in wanted)
            wanted.append(
                Work(_SCRUB, partial(self._scrubbing, self._scrub), is_once=False, pause_seconds=_SCRUB_SECONDS)
            )
        return wanted

    def _keep(self, cadences: Collection[str], tasks: Sequence[str]) -> None:
        """Forget cadences and work that are no more."""
        self._retries.keep([_CATALOG, _UPKEEP, _SCRUB, *tasks])
        self._lanes.keep(tasks)
        for cadence in self._due.keys() - set(cadences):
            self._due.pop(cadence, None)

    def _cadences(self, catalog: Catalog) -> dict[str, float]:
        """Return the cadences that run by themselves, and the pause between two of their epochs."""
        found: dict[str, float] = {}
        for view in catalog.views.values():
            if view.state == ACTIVE and view.refresh.kind != "ON_DEMAND":
                found[view.cadence] = view.refresh.every_seconds or 0.0
        return found

    # ---- the log and what a crash has left ----

    def _begin(self) -> bool:
        self._put_in_order()
        return True

    def _put_in_order(self) -> None:
        for view in upkeep.begin(self._coordinator):
            self._complain(upkeep.must_be_filled_anew(view))

    def _purging(self, coordinator: Coordinator, is_left: IsLeft) -> bool:
        """Keep store and log in order, by the coordinator that has looked at all views already."""
        self._purge_at = self._coordinator.clock.monotonic_seconds() + _PURGE_SECONDS
        self._retries.attempt(_UPKEEP, self._purge)
        return False

    def _purge(self) -> int:
        self._put_in_order()
        return upkeep.purge(self._coordinator)

    def _scrubbing(self, scrub: Scrubbing, coordinator: Coordinator, is_left: IsLeft) -> bool:
        """Check a little of a view where nothing else has been done since the last time, and nothing is waiting."""
        is_idle = self._is_quiet and self._epochs_seen == self._epochs_run
        self._epochs_seen = self._epochs_run
        return bool(self._retries.attempt(_SCRUB, partial(self._check, scrub, is_idle)))

    def _check(self, scrub: Scrubbing, is_idle: bool) -> bool:
        try:
            return scrub.step(is_idle)
        except ViewFailed as finding:
            # Kept beside what is published, where status finds it: nothing that could be tried again.
            self._complain(finding)
            return True

    # ---- epochs ----

    def _refreshing(self, cadence: str, pause_seconds: float) -> Work:
        task = f"refreshing {cadence}"

        def once(coordinator: Coordinator, is_left: IsLeft) -> bool:
            return bool(self._retries.attempt(task, partial(self._epoch, coordinator, cadence)))

        def up_to_date(coordinator: Coordinator, is_left: IsLeft) -> bool:
            began = coordinator.clock.monotonic_seconds()
            done = self._retries.attempt(task, partial(self._epochs, coordinator, cadence, is_left))
            if done is not None:
                self._due[cadence] = began + pause_seconds
            return bool(done)

        return Work(task, up_to_date if pause_seconds else once, is_once=pause_seconds > 0, returns=True)

    def _epoch(self, coordinator: Coordinator, cadence: str, limit: int | None = None) -> bool:
        outcome = coordinator.epoch(cadence, limit)
        if outcome is None:
            return False
        self._report(outcome)
        return True

    def _epochs(self, coordinator: Coordinator, cadence: str, is_left: IsLeft) -> bool:
        """Bring a cadence to where the log ends now, in as many epochs as its size takes."""
        head, is_busy = coordinator.head(), False
        while not is_left() and self._epoch(coordinator, cadence, head):
            is_busy = True
        return is_busy

    def _report(self, outcome: Outcome) -> None:
        with self._reporting:
            self._epochs_run += 1
            self._report_outcome(outcome)

    # ---- fills and requests ----

    def _filling(self, catalog: Catalog, request: requests.Request) -> Work:
        """Go on with a view whose creator died while it was filled."""
        view = catalog.views[request.view]
        # The cadence tells it from a version of before, which ends beside it.
        task = f"filling view {view.name} in {view.cadence}"

        def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
            return bool(self._retries.attempt(task, partial(self._fill, coordinator, request, is_left)))

        return Work(task, step, is_limited=True)

    def _fill(self, coordinator: Coordinator, request: requests.Request, is_left: IsLeft) -> bool:
        try:
            outcomes = self._perform(coordinator, request, is_left)
        except _LeftError:
            return False
        except ViewkeeperError as error:
            if not work.is_moot(error):
                raise
            return True
        return bool(outcomes)

    def _answering(self, name: bytes, request: requests.Request) -> Work:
        def step(coordinator: Coordinator, is_left: IsLeft) -> bool:
            perform = partial(self._perform, coordinator, request, is_left)
            reply = partial(requests.reply, coordinator.base, name, request, perform)
            with suppress(_LeftError):  # whoever comes next answers
                self._retries.attempt(_REQUESTS, reply)
            return True

        return Work(f"{_REQUESTS}: {name.decode()}", step, is_limited=True)

    def _perform(self, coordinator: Coordinator, request: requests.Request, is_left: IsLeft) -> list[Outcome]:
        """Do what is asked for, and report each epoch at once; leave it behind one where that is wanted."""

        def published(outcome: Outcome) -> None:
            self._report(outcome)
            if is_left():
                raise _LeftError

        def filled(done: int, total: int, outcome: Outcome) -> None:
            published(outcome)

        return work.perform(coordinator, request, filled, published)
