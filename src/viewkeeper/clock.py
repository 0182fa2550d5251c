"""The one door by which time and chance enter, so that a simulation can replay both from a seed."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

# A source of chance, as ``seeded`` gives it: the type for signatures.
Chance: TypeAlias = random.Random


class Clock(Protocol):
    """Where time comes from."""

    def now_seconds(self) -> float:
        """Return seconds since the Unix epoch."""

    def monotonic_seconds(self) -> float:
        """Return seconds of a clock that never goes back."""

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""


class SystemClock:
    """The machine's clock."""

    def now_seconds(self) -> float:
        """Return seconds since the Unix epoch."""
        return time.time()

    def monotonic_seconds(self) -> float:
        """Return seconds of a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        time.sleep(seconds)


class SimulatedClock:
    """A clock that moves only when told to, for simulation and tests.

    Args:
        start_seconds: the first reading.
    """

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._seconds = start_seconds

    def now_seconds(self) -> float:
        """Return the simulated time."""
        return self._seconds

    def monotonic_seconds(self) -> float:
        """Return the simulated time."""
        return self._seconds

    def sleep(self, seconds: float) -> None:
        """Move the clock by ``seconds`` at once."""
        self._seconds += seconds


SYSTEM_CLOCK = SystemClock()


def seeded(seed: int) -> Chance:
    """Return a random generator whose draws are fixed by ``seed``."""
    return random.Random(seed)


def new_identifier() -> str:
    """Return a fresh identifier of 32 hexadecimal digits, unique among processes."""
    return uuid.uuid4().hex


def utc_now() -> datetime:
    """Return the present as an aware UTC datetime."""
    return datetime.now(UTC)
