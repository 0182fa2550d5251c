"""Memory: what epochs have used, measured, and how large the next one may so be.

Nothing is estimated beforehand: what a byte of the log becomes depends on the views and on the values, and what Java
keeps depends on what went before. What an epoch used beyond what was in use before it, divided by its bytes of the log,
says what the next one will use for each; it may be as large as leaves a tenth of the bound free, and at most twice the
last one.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from viewkeeper.store.key_value import Space

# A tenth of the bound stays free: the next epoch's rows may be wider, and state grows.
_WANTED_PART = 0.9
_FIRST_PART = 1 / 32
_LEAST_PART = 1 / 512
# Where too much is in use already, small epochs would only be slow, and large ones make it worse.
_CROWDED_PART = 1 / 128
_GROWTH_MAX = 2.0
# An epoch that was less than half as large as it might have been says little of a larger one.
_TELLING_PART = 0.5
# Whoever looks at memory takes a tenth of a millisecond: too much for an epoch of a few rows.
_LOOKED_AT_PART = 1 / 64
# To map the store's pages again is a fifth of an epoch that changes rows here and there: a small one lets go of them
# only where they are about to fill the bound.
_SMALL_PART = 1 / 8
_PAGES_KEPT_PART = 1 / 2
_RESET_PEAK = "5"


class MemoryUse(NamedTuple):
    """Resident memory around an epoch, in bytes.

    Args:
        before_bytes: before it ran.
        peak_bytes: the most meanwhile.
        kept_bytes: of a task's process, when it was over: what it uses while the epoch is published.
    """

    before_bytes: int = 0
    peak_bytes: int = 0
    kept_bytes: int = 0


# Of whoever cannot or need not be looked at.
NO_USE = MemoryUse()


class EpochSize:
    """How many bytes of the log the next epoch may take, by what those before it have used and how they published.

    Args:
        bound_bytes: what driver and workers together may use.
        publish_seconds_max: how long publishing may keep others from theirs.

    Example:
        >>> size = EpochSize(2 << 30)
        >>> size.log_bytes >> 20
        64
        >>> size.measured(64 << 20, MemoryUse(500 << 20, 1100 << 20))
        >>> size.log_bytes >> 20
        128
        >>> size.measured(128 << 20, MemoryUse(700 << 20, 1950 << 20))
        >>> size.log_bytes >> 20
        117
        >>> size.published(100 << 20, 1.0)
        >>> size.log_bytes >> 20
        50
    """

    def __init__(self, bound_bytes: int, publish_seconds_max: float = 0.5) -> None:
        self._bound_bytes = bound_bytes
        self._publish_seconds_max = publish_seconds_max
        self._fits_bytes = self._part(_FIRST_PART)
        self._publishes_bytes: int | None = None

    @property
    def log_bytes(self) -> int:
        """How many bytes of the log the next epoch may take, where none runs beside it."""
        return self.within(1.0)

    def within(self, part: float) -> int:
        """Return how many bytes of the log the next epoch may take in a part of the memory."""
        fits = max(int(self._fits_bytes * part), 1)
        return min(fits, self._publishes_bytes or fits)

    def part_of(self, log_bytes: int) -> float:
        """Return which part of the memory an epoch needs that reads ``log_bytes``."""
        return log_bytes / self._fits_bytes

    def is_looked_at(self, log_bytes: int) -> bool:
        """Return whether an epoch that reads ``log_bytes`` is large enough to say anything."""
        return log_bytes >= _LOOKED_AT_PART * self.log_bytes

    def pages_kept_bytes(self, log_bytes: int) -> int:
        """Return up to how much resident memory an epoch that reads ``log_bytes`` keeps the store's pages mapped."""
        is_small = self.part_of(log_bytes) < _SMALL_PART
        return int(_PAGES_KEPT_PART * self._bound_bytes) if is_small else 0

    def measured(self, log_bytes: int, use: MemoryUse) -> None:
        """Learn from an epoch.

        Args:
            log_bytes: how many bytes of the log it read.
            use: what driver and workers used; zeros where that cannot be measured.
        """
        wanted = _WANTED_PART * self._bound_bytes
        fits = use.peak_bytes <= wanted
        if not use.peak_bytes or (fits and log_bytes < _TELLING_PART * self._fits_bytes):
            return
        # The next epoch begins with less than this one has kept: workers then let go of what they do not use.
        if use.before_bytes >= wanted:
            self._fits_bytes = self._part(_CROWDED_PART)
            return
        used = use.peak_bytes - use.before_bytes
        room = log_bytes * (wanted - use.before_bytes) / used if used > 0 else float("inf")
        size = int(min(room, _GROWTH_MAX * log_bytes))
        self._fits_bytes = max(size, self._fits_bytes if fits else self._part(_LEAST_PART))

    def published(self, log_bytes: int, seconds: float) -> None:
        """Learn from how long an epoch kept others from publishing.

        Args:
            log_bytes: how many bytes of the log it read.
            seconds: from its taking the views' write lock to its letting go of it.
        """
        if not self.is_looked_at(log_bytes) or seconds <= 0:
            return
        size = max(int(log_bytes * self._publish_seconds_max / seconds), self._part(_LEAST_PART))
        before = self._publishes_bytes
        if before is not None:
            # A disk that stalled once says nothing of the next time, so it is tried again, step by step.
            self._publishes_bytes = min(size, int(_GROWTH_MAX * before))
        elif size < self._fits_bytes:
            self._publishes_bytes = size

    def _part(self, part: float) -> int:
        return max(int(part * self._bound_bytes), 1)


class _Peaks:
    """The peaks of whoever looks at this process's memory at once: the system counts one, from one moment on."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: WeakKeyDictionary[object, int] = WeakKeyDictionary()

    def begin(self, watcher: object) -> None:
        """Count for ``watcher`` from now on."""
        with self._lock:
            peak = peak_bytes()
            for other, seen in list(self._seen.items()):
                self._seen[other] = max(seen, peak)
            begin_peak()
            self._seen[watcher] = 0

    def so_far(self, watcher: object) -> int:
        """Return the most since ``begin``, in bytes."""
        with self._lock:
            return max(self._seen[watcher], peak_bytes())


_PEAKS = _Peaks()


class EpochMemory:
    """What one epoch uses, from before it runs until it is published; meanwhile lets go of what the store shows.

    Args:
        spaces: the store's spaces.
        is_looked_at: whether the epoch is large enough for that; else its figures are zeros.
        pages_kept_bytes: up to how much resident memory the pages stay that were read.
    """

    def __init__(self, spaces: Iterable[Space], is_looked_at: bool, pages_kept_bytes: int = 0) -> None:
        self._spaces = tuple(spaces)
        self._is_looked_at = is_looked_at
        self._pages_kept_bytes = pages_kept_bytes
        self._before = self._running = 0
        if is_looked_at:
            self._release()
            self._before = resident_bytes()
            _PEAKS.begin(self)

    def has_run(self) -> None:
        """Take notice that the tasks are over."""
        if self._is_looked_at:
            self._running = _PEAKS.so_far(self)
            _PEAKS.begin(self)

    def is_over(self, others: MemoryUse) -> MemoryUse:
        """Take notice that the epoch is published, and return what all processes have used.

        Tasks and publishing never use most at once.

        Args:
            others: what processes other than this one have used.
        """
        if not self._is_looked_at:
            return NO_USE
        peak = max(self._running + others.peak_bytes, _PEAKS.so_far(self) + others.kept_bytes)
        self._release()
        return MemoryUse(self._before + others.before_bytes, peak)

    def _release(self) -> None:
        if self._pages_kept_bytes and resident_bytes() <= self._pages_kept_bytes:
            return
        for space in self._spaces:
            space.release_memory()


def begin_peak() -> None:
    """Let ``peak_bytes`` of this process count from now on, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)


def peak_bytes() -> int:
    """Return the most resident memory of this process since ``begin_peak``, or since its start."""
    found = _status("self").get("VmHWM")
    if found is not None:
        return found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not tell."""
    return _status("self").get("VmRSS", 0)


def ancestors(count: int, process: str = "self") -> dict[int, MemoryUse]:
    """Return what the ``count`` processes above ``process`` use now, by process id; none without /proc."""
    found: dict[int, MemoryUse] = {}
    for _ in range(count):
        parent = _status(process).get("PPid", 0)
        resident = _status(str(parent)).get("VmRSS")
        if resident is None:
            break
        found[parent] = MemoryUse(resident, resident, resident)
        process = str(parent)
    return found


def together(reports: Iterable[Mapping[int, MemoryUse]]) -> MemoryUse:
    """Return the sum over all processes of what was reported of each.

    Args:
        reports: of tasks in the order in which their levels run, each by process id.

    Example:
        >>> together([{7: MemoryUse(80, 100, 90), 1: MemoryUse(50, 50, 50)}, {7: MemoryUse(90, 95, 85)}])
        MemoryUse(before_bytes=130, peak_bytes=150, kept_bytes=135)
    """
    sums: dict[int, MemoryUse] = {}
    for report in reports:
        for process, use in report.items():
            first = sums.get(process, use)
            peak = max(first.peak_bytes, use.peak_bytes)
            sums[process] = MemoryUse(first.before_bytes, peak, use.kept_bytes)
    uses = sums.values()
    return MemoryUse(
        sum(use.before_bytes for use in uses), sum(use.peak_bytes for use in uses), sum(use.kept_bytes for use in uses)
    )


def _status(process: str) -> dict[str, int]:
    """Return the figures of a process: memory in bytes; nothing where the system does not tell."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return {}
    figures: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmHWM", "VmRSS", "PPid"):
            value, *unit = rest.split()
            figures[name] = int(value) << (10 if unit else 0)
    return figures
