"""What measures: `viewkeeper bench` and the repository's benchmarks take times by the same instruments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.database import Database
from viewkeeper.errors import WaitTimeout

# A look every so often: a tight loop would take one of two cores from the maintainer.
_LOOK_SECONDS = 0.0002
_TIMEOUT_SECONDS = 120.0


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which ``part`` of ``values`` lie.

    Example:
        >>> percentile([3.0, 1.0, 2.0], 0.5), percentile([3.0, 1.0, 2.0], 0.99)
        (2.0, 3.0)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def seconds_until(db: Database, view: str, key: object, expected: Mapping[str, object]) -> float:
    """Return after how long ``get`` shows a row as it must become.

    Args:
        db: the store, which somebody maintains.
        view: the view that is looked at.
        key: the row's key.
        expected: what some of its columns must show.

    Raises:
        WaitTimeout: ``WAIT_TIMEOUT`` where that takes minutes.
    """
    clock = SYSTEM_CLOCK.monotonic_seconds
    started = clock()
    while True:
        row = db.get(view, key)
        taken = clock() - started
        if row is not None and all(row[name] == value for name, value in expected.items()):
            return taken
        if taken > _TIMEOUT_SECONDS:
            raise WaitTimeout(
                "WAIT_TIMEOUT",
                f"View {view!r} shows {row} at {key!r} after {_TIMEOUT_SECONDS:.0f} s, not the last write: see by "
                "status what keeps it.",
            )
        SYSTEM_CLOCK.sleep(_LOOK_SECONDS)


def get_seconds(db: Database, view: str, keys: Iterable[object]) -> list[float]:
    """Return how long each ``get`` of rows that are there takes."""
    clock, get = SYSTEM_CLOCK.monotonic_seconds, db.get
    taken = []
    for key in keys:
        started = clock()
        row = get(view, key)
        taken.append(clock() - started)
        assert row is not None, f"{view} has no row at {key}"
    return taken
