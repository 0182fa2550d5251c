"""Memory: what epochs have used, measured, and how large the next one may so be.

Nothing is estimated beforehand: what a byte of the log becomes depends on the views and on the values, and what Java
keeps depends on what went before. Two epochs of different sizes give a line, use = fixed + slope × bytes of the log;
the next epoch may be as large as stays on it a fifth below the bound, at most twice the last one.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

# A fifth of the bound stays free: the next epoch's rows may be wider, and peaks fall between two looks.
_WANTED_PART = 0.8
_FIRST_PART = 1 / 32
_LEAST_PART = 1 / 512
_GROWTH_MAX = 2.0
# An epoch that was less than half as large as it might have been says little of a larger one.
_TELLING_PART = 0.5
# Epochs of nearly one size differ in what they use by chance.
_TOLD_APART = 0.1
_RESET_PEAK = "5"
_DONT_NEED = 4


class EpochSize:
    """How many bytes of the log the next epoch may take, by what those before it have used.

    Args:
        bound_bytes: what driver and workers together may use.

    Example:
        >>> size = EpochSize(2 << 30)
        >>> size.log_bytes >> 20
        64
        >>> size.measured(64 << 20, 900 << 20)
        >>> size.log_bytes >> 20
        116
        >>> size.measured(116 << 20, 1900 << 20)
        >>> size.log_bytes >> 20
        102
    """

    def __init__(self, bound_bytes: int) -> None:
        self._wanted_bytes = _WANTED_PART * bound_bytes
        self._least_bytes = max(int(_LEAST_PART * bound_bytes), 1)
        self._first_bytes = max(int(_FIRST_PART * bound_bytes), self._least_bytes)
        self._last: tuple[int, int] | None = None
        self.log_bytes = self._first_bytes

    def measured(self, log_bytes: int, peak_bytes: int) -> None:
        """Learn from an epoch.

        Args:
            log_bytes: how many bytes of the log it read.
            peak_bytes: the most that driver and workers used meanwhile; 0 where that cannot be measured.
        """
        if not peak_bytes:
            return
        room = self._wanted_bytes - peak_bytes
        if room >= 0 and log_bytes < _TELLING_PART * self.log_bytes:
            return
        # One transaction may be larger than what was allowed: judge by what was there.
        size = min(log_bytes, self.log_bytes) if room < 0 else log_bytes
        slope = self._slope(log_bytes, peak_bytes)
        if slope is None:
            part = self._wanted_bytes / peak_bytes
            wanted = size * (part * part if room < 0 else part)
        elif peak_bytes - slope * log_bytes > self._wanted_bytes:
            # What is used whatever an epoch holds is too much already: small epochs would only be slow.
            wanted = float(self._first_bytes)
        else:
            wanted = size + room / slope if slope else _GROWTH_MAX * size
        self._last = (log_bytes, peak_bytes)
        grown = max(self.log_bytes, int(min(wanted, _GROWTH_MAX * size)))
        self.log_bytes = max(grown if room >= 0 else int(wanted), self._least_bytes)

    def _slope(self, log_bytes: int, peak_bytes: int) -> float | None:
        """Return how much a byte of the log uses; None while all epochs had about one size."""
        if self._last is None or abs(log_bytes - self._last[0]) < _TOLD_APART * log_bytes:
            return None
        return max((peak_bytes - self._last[1]) / (log_bytes - self._last[0]), 0.0)


def release_mapped() -> int:
    """Let go of pages that only show files; what is in the files stays, and is mapped again where it is read.

    A process that reads one part of a store after the other would seem to use all of them. Only for a process in which
    nobody unmaps anything meanwhile, as a worker between two tasks.

    Returns:
        How many bytes of this process may show files that others share; 0 where the system does not tell.
    """
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    released = 0
    for line in lines:
        place, kind, *_ = line.split()
        if kind.endswith("s"):
            start, stop = (int(end, 16) for end in place.split("-"))
            advise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), _DONT_NEED)
            released += stop - start
    return released


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


def ancestors(count: int, process: str = "self") -> dict[int, int]:
    """Return the resident bytes of the ``count`` processes above ``process``, by process id; none without /proc."""
    found: dict[int, int] = {}
    for _ in range(count):
        parent = _status(process).get("PPid", 0)
        resident = _status(str(parent)).get("VmRSS")
        if resident is None:
            break
        found[parent] = resident
        process = str(parent)
    return found


def together(processes: Iterable[Mapping[int, int]]) -> int:
    """Return the sum over all processes of the largest figure that was reported of each.

    Args:
        processes: reports, each bytes by process id.

    Example:
        >>> together([{7: 100, 1: 50}, {8: 100, 1: 60}])
        260
    """
    largest: dict[int, int] = {}
    for report in processes:
        for process, size in report.items():
            largest[process] = max(largest.get(process, 0), size)
    return sum(largest.values())


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
