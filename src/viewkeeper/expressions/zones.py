"""Time zones as sorted transitions: UTC to local time and back for whole columns, as ``java.time`` does it.

A time zone is a function of the instant, read from the IANA database once per zone. Offsets repeat with the Gregorian
cycle of 400 years once a zone's last rule holds, so far instants are moved back by whole cycles.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from viewkeeper.expressions.vectors import Vector

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 1_000_000
_DAY = 86_400
_CYCLE = 146_097 * _DAY
_FIRST = int((datetime(1800, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_RULES_HOLD = int((datetime(2040, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST = _RULES_HOLD + _CYCLE
_FIXED = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})|(\d{1,2}):(\d{1,2})|(\d{2})(\d{2})"
    r"|(\d{1,2}):(\d{2}):(\d{2})|(\d{2})(\d{2})(\d{2}))\Z",
    re.ASCII,
)
_LARGEST_OFFSET = 18 * 3600


def fixed_offset_seconds(zone: str) -> int | None:
    """Return the offset of a zone that never changes (``Z``, ``UTC``, ``+02:00``, ``UTC-3``), None for others."""
    if zone in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return 0
    match = _FIXED.match(zone)
    if match is None:
        return None
    hours, minutes, seconds = ([int(part) for part in match.groups()[1:] if part is not None] + [0, 0])[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > _LARGEST_OFFSET:
        return None
    return -total if match[1] == "-" else total


def is_known(zone: str) -> bool:
    """Return whether ``zone`` is a fixed offset or a region (``America/New_York``) that all parts read alike."""
    if fixed_offset_seconds(zone) is not None:
        return True
    if "/" not in zone:
        return False
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


@lru_cache(maxsize=32)
def _transitions(zone: str) -> tuple[Vector, Vector]:
    """Return the seconds at which the offset changes, and the offset from each on (one more: before the first)."""
    info = ZoneInfo(zone)

    def offset(second: int) -> int:
        found = (_EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
        return int(found.total_seconds()) if found is not None else 0

    # Since 2040 only yearly rules are left; before, two changes may lie days apart.
    probes = [*range(_FIRST, _RULES_HOLD, 2 * _DAY), *range(_RULES_HOLD, _LAST, 20 * _DAY)]
    moments: list[int] = []
    offsets = [offset(_FIRST)]
    for low, high in pairwise(probes):
        after = offset(high)
        if after == offsets[-1]:
            continue
        before = offsets[-1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == before else (low, middle)
        moments.append(high)
        offsets.append(after)
    return np.array(moments, dtype=np.int64), np.array(offsets, dtype=np.int64)


def offset_microseconds(microseconds: Vector, zone: str) -> Vector:
    """Return the zone's offset at each instant."""
    fixed = fixed_offset_seconds(zone)
    if fixed is not None:
        return np.full(np.shape(microseconds), fixed * _MICROSECONDS, dtype=np.int64)
    moments, offsets = _transitions(zone)
    seconds = microseconds // _MICROSECONDS
    far = seconds >= _LAST
    seconds = np.where(far, _RULES_HOLD + (seconds - _RULES_HOLD) % _CYCLE, seconds)
    result: Vector = offsets[np.searchsorted(moments, seconds, side="right")] * _MICROSECONDS
    return result


def to_local(microseconds: Vector, zone: str) -> Vector:
    """Return the local time of each instant, as microseconds since 1970-01-01 00:00 local time."""
    if fixed_offset_seconds(zone) == 0:
        return microseconds
    return microseconds + offset_microseconds(microseconds, zone)


def to_utc(local: Vector, zone: str) -> Vector:
    """Return the instant of each local time; of two the earlier, and past a gap by the gap's length, as in Java."""
    fixed = fixed_offset_seconds(zone)
    if fixed is not None:
        return local - fixed * _MICROSECONDS
    day = _DAY * _MICROSECONDS
    before = offset_microseconds(local - day, zone)
    after = offset_microseconds(local + day, zone)
    by_before, by_after = local - before, local - after
    fits_before = offset_microseconds(by_before, zone) == before
    fits_after = offset_microseconds(by_after, zone) == after
    return np.where(~fits_before & fits_after, by_after, by_before)
