"""RING: key -> hash -> slot -> owner, by consistent hashing with virtual nodes and bounded loads.

    hash of a key --highest ten bits--> slot (1,024 of them) --ring--> owner (the view manager that has the key)

Each owner stands at many points of a circle; a slot belongs to the next point clockwise whose owner has not yet its
fill. So owners get their share almost exactly, and few slots move when one is added. The same arguments give the same
ring in every process. It changes between epochs only.
Source: Mirrokni, Thorup, Zadimoghaddam, Consistent Hashing with Bounded Loads, 2018.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

from viewkeeper.errors import InputError
from viewkeeper.zset.hashing import SLOTS, UInt64Array, slot_of

VIRTUAL_NODES = 128
_SLACK = 1 / 32  # how far an owner may be above its share: room for slots to stay where they are
_SLOT_WIDTH = (1 << 64) // SLOTS

Int32Array = npt.NDArray[np.int32]


class Ring:
    """Which owner has which slot.

    Args:
        owners: how many owners there are, numbered from 0.
        weights: per owner its part of the work, relative to the others'; equal parts if absent.

    Raises:
        InputError: ``INVALID_RING`` without owners, or where ``weights`` are not one positive number an owner.

    Example:
        >>> ring = Ring(2)
        >>> sorted(set(ring.owners.tolist())), len(ring.owners)
        ([0, 1], 1024)
    """

    def __init__(self, owners: int, weights: Sequence[float] | None = None) -> None:
        shares = [1.0] * owners if weights is None else list(weights)
        if owners < 1 or owners > SLOTS or len(shares) != owners or not all(0 < s < float("inf") for s in shares):
            raise InputError(
                "INVALID_RING",
                f"A ring needs 1 to {SLOTS} owners and one positive weight for each: {owners} owners, {weights!r}.",
            )
        self.count = owners
        self.owners = _assign(shares)

    def owners_of(self, hashes: UInt64Array) -> Int32Array:
        """Return the owner of each hash.

        Args:
            hashes: hashes of keys, as ``zset.hashing.hash_columns`` gives them.
        """
        if self.count == 1:
            return np.zeros(len(hashes), np.int32)
        owners: Int32Array = self.owners[slot_of(hashes)]
        return owners


def _assign(weights: Sequence[float]) -> Int32Array:
    total, largest = sum(weights), max(weights)
    points = sorted(
        (xxh64_intdigest(b"%d/%d" % (owner, number)), owner)
        for owner, weight in enumerate(weights)
        for number in range(max(1, round(VIRTUAL_NODES * weight / largest)))
    )
    room = [ceil(SLOTS * weight / total * (1 + _SLACK)) for weight in weights]
    places = [place for place, _ in points]
    owners = np.empty(SLOTS, np.int32)
    for slot in range(SLOTS):
        at = bisect_left(places, slot * _SLOT_WIDTH)
        while not room[points[at % len(points)][1]]:
            at += 1
        owner = points[at % len(points)][1]
        room[owner] -= 1
        owners[slot] = owner
    owners.flags.writeable = False
    return owners
