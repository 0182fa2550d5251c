"""Lanes: how the maintainer's pieces of work go on, one after the other or side by side.

    InTurn        each piece a step, in the caller's thread: a simulation replays that from its seed
    SideBySide    each piece in a thread with a coordinator of its own, so a long one delays no other

Threads share the store, whose fences keep two processes apart as well, and the turns (``turns.py``); nothing else, so
nothing else needs a lock. What they publish they publish in one short transaction each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from viewkeeper.coordinator.core import Coordinator

# Work that is asked for by others may be any amount; so many of it run at once, the rest waits.
LIMITED_MAX = 8
_SPARE_MAX = 2
# How often new work is looked for beside what goes on: as often as who asks for some looks for the answer.
_LOOK_SECONDS = 0.005


# Asked between epochs: whether to leave the work where it is.
IsLeft = Callable[[], bool]


@dataclass(frozen=True)
class Work:
    """A piece of work.

    Args:
        task: what it is, for people; also its name.
        step: does some of it, and returns whether there was anything; it ends early where its second argument says so.
        is_once: whether it is over when a step is, and not when it is no longer wanted.
        returns: whether it is wanted again and again: what a coordinator knows of its views is kept for it.
        is_limited: whether others ask for it, so that there may be any amount.
        pause_seconds: how long it rests when there was nothing; None: as the settings say.
    """

    task: str
    step: Callable[[Coordinator, IsLeft], bool]
    is_once: bool = True
    returns: bool = False
    is_limited: bool = False
    pause_seconds: float | None = None


class Lanes(Protocol):
    """Where pieces of work go on."""

    @property
    def pause_seconds(self) -> float:
        """How long the caller rests when there was nothing to do for it."""

    def go_on(self, wanted: Sequence[Work]) -> bool:
        """Go on with what is wanted, and leave all other work; return whether the caller did anything."""

    def keep(self, tasks: Collection[str]) -> None:
        """Forget what is known of work that returns but for ``tasks``, wanted now or later."""

    def end(self) -> None:
        """Leave all work, each piece where it can be left."""


class InTurn:
    """Pieces of work one after the other.

    Args:
        coordinator: runs their epochs.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.pause_seconds = coordinator.settings.poll_interval_seconds

    def go_on(self, wanted: Sequence[Work]) -> bool:
        """Do a step of each."""
        # All of them, also behind one that was busy.
        busy = [work.step(self._coordinator, lambda: False) for work in wanted]
        return any(busy)

    def keep(self, tasks: Collection[str]) -> None:
        """Do nothing: its one coordinator knows all."""

    def end(self) -> None:
        """Do nothing: a step is over when it returns."""


@dataclass
class _Lane:
    """A thread and the work that it does."""

    work: Work
    is_left: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class SideBySide:
    """Pieces of work side by side, each in a thread of its own.

    Args:
        coordinator: the pattern of theirs.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._pattern = coordinator
        self.pause_seconds = max(coordinator.settings.poll_interval_seconds, _LOOK_SECONDS)
        self._lanes: dict[str, _Lane] = {}
        # What is wanted by its task, what has been wanted longest first.
        self._wanted: dict[str, Work] = {}
        self._coordinators: dict[str, Coordinator] = {}
        self._spare: list[Coordinator] = []
        self._error: BaseException | None = None

    def go_on(self, wanted: Sequence[Work]) -> bool:
        """Start what is wanted and not under way, and let go of what is no longer wanted.

        Raises:
            BaseException: what has ended a piece of work.
        """
        if self._error is not None:
            raise self._error
        tasks = {work.task: work for work in wanted}
        self._wanted = {task: tasks[task] for task in (*self._wanted, *tasks) if task in tasks}
        for task, lane in list(self._lanes.items()):
            if task not in tasks:
                lane.is_left.set()
            if lane.thread is None or not lane.thread.is_alive():
                self._over(task)
        limited = sum(lane.work.is_limited for lane in self._lanes.values())
        for task, work in self._wanted.items():
            if task in self._lanes or (work.is_limited and limited >= LIMITED_MAX):
                continue
            limited += work.is_limited
            self._start(work)
        return False

    def keep(self, tasks: Collection[str]) -> None:
        """Forget the coordinators of work that is no more."""
        for task in self._coordinators.keys() - self._lanes.keys() - set(tasks):
            del self._coordinators[task]

    def end(self) -> None:
        """Let each piece end where it can be left, and wait for that."""
        for lane in self._lanes.values():
            lane.is_left.set()
        for lane in self._lanes.values():
            if lane.thread is not None:
                lane.thread.join()
        self._lanes.clear()

    def _start(self, work: Work) -> None:
        lane = self._lanes[work.task] = _Lane(work)
        # One that has served this task knows its views.
        known = self._coordinators.pop(work.task, None) or (self._spare.pop() if self._spare else None)
        coordinator = self._coordinators[work.task] = known or self._pattern.beside()
        lane.thread = threading.Thread(
            target=self._run, args=(lane, coordinator), name=f"viewkeeper {work.task}", daemon=True
        )
        lane.thread.start()

    def _over(self, task: str) -> None:
        lane = self._lanes.pop(task)
        if lane.work.returns:
            return
        coordinator = self._coordinators.pop(task)
        if len(self._spare) < _SPARE_MAX:
            self._spare.append(coordinator)

    def _run(self, lane: _Lane, coordinator: Coordinator) -> None:
        clock, pause = coordinator.clock, lane.work.pause_seconds or coordinator.settings.poll_interval_seconds
        try:
            while not lane.is_left.is_set():
                is_busy = lane.work.step(coordinator, lane.is_left.is_set)
                if lane.work.is_once:
                    return
                if not is_busy:
                    clock.sleep(pause)
        except BaseException as error:
            self._error = error
