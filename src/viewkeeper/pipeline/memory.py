"""Memory: what an epoch has used, measured, and how large the next one may so be.

    epoch of B bytes of the log --measured peak P--> the next may have B × (wanted ÷ P), never more than twice B

Nothing is estimated: what a byte of the log becomes depends on the views and on the values, and what Java keeps depends
on what went before. Sizes so start small, grow while there is room, and shrink faster than they grow.
"""

from __future__ import annotations

import contextlib
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
_RESET_PEAK = "5"


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
        >>> size.measured(116 << 20, 2000 << 20)
        >>> size.log_bytes >> 20
        77
    """

    def __init__(self, bound_bytes: int) -> None:
        self._wanted_bytes = _WANTED_PART * bound_bytes
        self._least_bytes = max(int(_LEAST_PART * bound_bytes), 1)
        self.log_bytes = max(int(_FIRST_PART * bound_bytes), self._least_bytes)

    def measured(self, log_bytes: int, peak_bytes: int) -> None:
        """Learn from an epoch.

        Args:
            log_bytes: how many bytes of the log it read.
            peak_bytes: the most that driver and workers used meanwhile; 0 where that cannot be measured.
        """
        if not peak_bytes:
            return
        room = self._wanted_bytes / peak_bytes
        if room < 1:
            # One transaction may be larger than what was allowed: judge by what was there.
            size = min(log_bytes, self.log_bytes) * room * room
            self.log_bytes = max(int(size), self._least_bytes)
        elif log_bytes >= _TELLING_PART * self.log_bytes:
            self.log_bytes = max(self.log_bytes, int(log_bytes * min(room, _GROWTH_MAX)))


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
