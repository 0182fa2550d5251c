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


def _histories() -> Iterator[tuple[Random, MemorySpace, list[int]]]:
    """Yield stores in which a table has been changed several times, copied at some positions, which are yielded too."""
    for seed in range(80):
        chance = Random(seed)
        space = MemorySpace()
        with space.write() as txn:
            rows = [(key, bytes([chance.randrange(1, 9)])) for key in _keys(chance) + _keys(chance)]
            for table in (LENT, f"{COPY}0", OWN):
                txn.multi_put(table, rows)
        marks = [0]
        for position in range(1, chance.randrange(2, 8)):
            with space.write() as txn:
                if chance.random() < 0.4:
                    marks.append(position)
                    txn.multi_put(f"{COPY}{position}", list(txn.scan(LENT)))
                keys = _keys(chance)
                keep_old_values(txn, LENT, BORROWED, keys, marks[-1])
                for key in keys:
                    if chance.random() < 0.4:
                        txn.delete(LENT, key)
                    else:
                        txn.put(LENT, key, bytes([chance.randrange(1, 9)]))
        yield chance, space, marks


@pytest.mark.parametrize("state", [BORROWED, OWN])
def test_lookups_show_the_borrowers_position(state: str) -> None:
    for chance, space, marks in _histories():
        mark = 0 if state == OWN else chance.choice(marks)
        table = f"{COPY}{mark}"
        with BorrowedLookups(space, {BORROWED: LENT}, mark) as lookups, SpaceLookups(space) as copy:
            keys = _keys(chance)
            assert lookups.multi_get(state, keys) == copy.multi_get(table, keys)
            assert lookups.multi_get(state, []) == []
            for prefix in (b"\x00", b"\x02", b"\x01\x03"):
                for reverse in (False, True):
                    expected = list(copy.scan(table, prefix, after(prefix), reverse))
                    assert list(lookups.scan(state, prefix, after(prefix), reverse)) == expected
            assert list(lookups.scan(state, b"", None)) == list(copy.scan(table, b"", None))
            prefixes = sorted({_key(chance)[: chance.randint(1, 2)] for _ in range(6)})
            for limits in (None, [chance.randint(1, 3) for _ in prefixes]):
                owners, values = lookups.multi_scan(state, prefixes, limits)
                expected_owners, expected_values = copy.multi_scan(table, prefixes, limits)
                assert owners.tolist() == expected_owners.tolist()
                assert values == expected_values


def test_only_the_first_old_value_is_kept() -> None:
    space = MemorySpace()
    with space.write() as txn:
        txn.put(LENT, b"1", b"first")
        keep_old_values(txn, LENT, BORROWED, [b"1", b"2"], 0)
        txn.put(LENT, b"1", b"second")
        txn.put(LENT, b"2", b"new")
        keep_old_values(txn, LENT, BORROWED, [b"1", b"2", b"3"], 0)
    with BorrowedLookups(space, {BORROWED: LENT}, 0) as lookups:
        assert lookups.multi_get(BORROWED, [b"1", b"2", b"3"]) == [b"first", None, None]
