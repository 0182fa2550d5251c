"""Borrowed state is the lender's as it was at the borrower's position: compared with a copy made at that position."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from viewkeeper.store.memory import MemorySpace
from viewkeeper.views.borrowed import BorrowedLookups, keep_old_values
from viewkeeper.views.lookups import SpaceLookups
from viewkeeper.zset.keys import after

LENT, BORROWED, COPY, OWN = "continuous/a", "build-1/a", "copy", "build-1/g"


def _key(chance: Random) -> bytes:
    return bytes([chance.randrange(4), chance.randrange(6), chance.randrange(3)])


def _keys(chance: Random) -> list[bytes]:
    return sorted({_key(chance) for _ in range(chance.randint(1, 12))})


def _histories() -> Iterator[tuple[Random, MemorySpace]]:
    """Yield stores in which a table has been changed several times since it was copied."""
    for seed in range(40):
        chance = Random(seed)
        space = MemorySpace()
        with space.write() as txn:
            rows = [(key, bytes([chance.randrange(1, 9)])) for key in _keys(chance) + _keys(chance)]
            for table in (LENT, COPY, OWN):
                txn.multi_put(table, rows)
        for _ in range(chance.randrange(4)):
            with space.write() as txn:
                keys = _keys(chance)
                keep_old_values(txn, LENT, BORROWED, keys)
                for key in keys:
                    if chance.random() < 0.4:
                        txn.delete(LENT, key)
                    else:
                        txn.put(LENT, key, bytes([chance.randrange(1, 9)]))
        yield chance, space


@pytest.mark.parametrize("state", [BORROWED, OWN])
def test_lookups_show_the_borrowers_position(state: str) -> None:
    for chance, space in _histories():
        with BorrowedLookups(space, {BORROWED: LENT}) as lookups, SpaceLookups(space) as copy:
            keys = _keys(chance)
            assert lookups.multi_get(state, keys) == copy.multi_get(COPY, keys)
            assert lookups.multi_get(state, []) == []
            for prefix in (b"\x00", b"\x02", b"\x01\x03"):
                for reverse in (False, True):
                    expected = list(copy.scan(COPY, prefix, after(prefix), reverse))
                    assert list(lookups.scan(state, prefix, after(prefix), reverse)) == expected
            assert list(lookups.scan(state, b"", None)) == list(copy.scan(COPY, b"", None))
            prefixes = sorted({_key(chance)[: chance.randint(1, 2)] for _ in range(6)})
            for limits in (None, [chance.randint(1, 3) for _ in prefixes]):
                owners, values = lookups.multi_scan(state, prefixes, limits)
                expected_owners, expected_values = copy.multi_scan(COPY, prefixes, limits)
                assert owners.tolist() == expected_owners.tolist()
                assert values == expected_values


def test_only_the_first_old_value_is_kept() -> None:
    space = MemorySpace()
    with space.write() as txn:
        txn.put(LENT, b"1", b"first")
        keep_old_values(txn, LENT, BORROWED, [b"1", b"2"])
        txn.put(LENT, b"1", b"second")
        txn.put(LENT, b"2", b"new")
        keep_old_values(txn, LENT, BORROWED, [b"1", b"2", b"3"])
    with BorrowedLookups(space, {BORROWED: LENT}) as lookups:
        assert lookups.multi_get(BORROWED, [b"1", b"2", b"3"]) == [b"first", None, None]
