"""The ring: even shares, few moves, the same everywhere."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from viewkeeper.errors import InputError
from viewkeeper.pipeline.ring import Ring
from viewkeeper.zset.hashing import SLOTS


@pytest.mark.parametrize("owners", [1, 2, 3, 7, 16, 100])
def test_shares_are_almost_even(owners: int) -> None:
    slots = np.bincount(Ring(owners).owners, minlength=owners)
    assert slots.sum() == SLOTS
    assert slots.max() <= np.ceil(SLOTS / owners * 33 / 32)
    assert slots.min() >= SLOTS / owners / 3


def test_weights_decide_the_shares() -> None:
    slots = np.bincount(Ring(3, [1.0, 2.0, 5.0]).owners)
    np.testing.assert_allclose(slots, SLOTS * np.array([1, 2, 5]) / 8, rtol=0.25)


@pytest.mark.parametrize("owners", [2, 4, 8, 16])
def test_few_slots_move_when_an_owner_comes(owners: int) -> None:
    moved = np.count_nonzero(Ring(owners).owners != Ring(owners + 1).owners)
    assert SLOTS / (owners + 1) * 0.8 <= moved <= SLOTS / (owners + 1) * 2


@pytest.mark.slow
def test_is_the_same_in_another_process() -> None:
    program = "from viewkeeper.pipeline.ring import Ring; print(Ring(5, [1, 2, 3, 4, 5]).owners.tobytes().hex())"
    environment = {"PYTHONPATH": "src", "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == Ring(5, [1, 2, 3, 4, 5]).owners.tobytes().hex()


def test_owners_of_hashes_follow_the_slots() -> None:
    ring = Ring(4)
    slots = np.arange(SLOTS, dtype=np.uint64)
    low, high = slots << np.uint64(54), (slots << np.uint64(54)) | np.uint64((1 << 54) - 1)
    assert ring.owners_of(low).tolist() == ring.owners.tolist() == ring.owners_of(high).tolist()
    assert Ring(1).owners_of(low).tolist() == [0] * SLOTS


@pytest.mark.parametrize(
    ("owners", "weights"), [(0, None), (SLOTS + 1, None), (2, [1.0]), (2, [1.0, 0.0]), (1, [float("nan")])]
)
def test_refuses_what_is_no_ring(owners: int, weights: list[float] | None) -> None:
    with pytest.raises(InputError) as caught:
        Ring(owners, weights)
    assert caught.value.code == "INVALID_RING"
