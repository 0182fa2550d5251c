"""Scans in key order, long keys included, against sorted lists."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.examples import make_table
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.model import Table
from viewkeeper.store.scans import Bounds, order_key, scan
from viewkeeper.store.transactions import PutRow, TableStore
from viewkeeper.zset.schema import BIGINT, BINARY, DOUBLE, INT, STRING, array, struct

NUMBERS = make_table({"k": BIGINT, "v": BIGINT}, ("k",))
WORDS = make_table({"v": INT, "a": STRING, "b": STRING, "c": INT}, ("a", "b", "c"))


def filled(table: Table, rows: list[tuple[Any, ...]]) -> MemorySpace:
    space = MemorySpace()
    TableStore(space).commit([PutRow(table, row) for row in rows])
    return space


def scanned(space: MemorySpace, table: Table, **options: Any) -> list[tuple[Any, ...]]:
    reverse, limit = options.pop("reverse", False), options.pop("limit", None)
    with space.read() as txn:
        return list(scan(table, txn, Bounds(**options), reverse, limit))


def test_bounds_of_one_column() -> None:
    space = filled(NUMBERS, [(k, k * 10) for k in (5, -3, 0, 1 << 40, 7)])
    assert [row[0] for row in scanned(space, NUMBERS)] == [-3, 0, 5, 7, 1 << 40]
    assert [row[0] for row in scanned(space, NUMBERS, start=(0,), stop=(7,))] == [0, 5]
    assert [row[0] for row in scanned(space, NUMBERS, reverse=True, limit=2)] == [1 << 40, 7]
    assert scanned(space, NUMBERS, prefix=(5,)) == [(5, 50)]
    assert scanned(space, NUMBERS, start=(8,), stop=(8,)) == []
    assert scanned(space, NUMBERS, prefix=()) == scanned(space, NUMBERS)
    assert scanned(space, NUMBERS, limit=0) == []


def test_columns_behind_a_prefix() -> None:
    space = filled(WORDS, [(n, a, b, n) for n, (a, b) in enumerate(product(["", "a", "ab"], ["", "\x00", "z"]))])
    assert [row[0] for row in scanned(space, WORDS, prefix=("a",))] == [3, 4, 5]
    assert [row[0] for row in scanned(space, WORDS, prefix=("a",), start=("a", "\x00"))] == [4, 5]
    assert [row[0] for row in scanned(space, WORDS, prefix=("a",), stop=("a", "z"), reverse=True)] == [4, 3]


_LONG = "x" * 128
_TEXTS = st.sampled_from(
    ["", "x", _LONG[:-1], _LONG, _LONG + "a", _LONG + "b", _LONG + "\x00", "x" * 300, "\x00" * 128 + "q", "\x00" * 129]
)
_KEYS = st.tuples(_TEXTS, _TEXTS, st.integers(-2, 2))
_BOUNDS = st.one_of(st.none(), st.tuples(_TEXTS), st.tuples(_TEXTS, _TEXTS), _KEYS)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(keys=st.sets(_KEYS, max_size=25), start=_BOUNDS, stop=_BOUNDS, prefix=_BOUNDS, reverse=st.booleans())
def test_long_keys_keep_their_order(keys: set[Any], start: Any, stop: Any, prefix: Any, reverse: bool) -> None:
    space = filled(WORDS, [(0, *key) for key in keys])
    expected = sorted(
        (
            key
            for key in keys
            if (start is None or key >= start)
            and (stop is None or key < stop)
            and (prefix is None or key[: len(prefix)] == prefix)
        ),
        key=lambda key: (key[0].encode(), key[1].encode(), key[2]),
        reverse=reverse,
    )
    found = scanned(space, WORDS, start=start, stop=stop, prefix=prefix, reverse=reverse)
    assert [row[1:] for row in found] == expected
    assert [row[1:] for row in scanned(space, WORDS, start=start, reverse=reverse, limit=3)] == [
        row[1:] for row in scanned(space, WORDS, start=start, reverse=reverse)
    ][:3]


@pytest.mark.parametrize(
    ("sql_type", "ascending"),
    [
        (DOUBLE, [None, float("-inf"), -1.0, 0.0, 2.5, float("inf"), float("nan")]),
        (STRING, [None, "", "\x00", "a", "é", "😀"]),
        (BINARY, [None, b"", b"\x00", b"\xff"]),
        (array(INT), [None, [], [None], [1], [1, None], [1, 0], [2]]),
        (struct(a=INT, b=STRING), [None, {"a": None, "b": "z"}, {"a": 1, "b": None}, {"a": 1, "b": "a"}]),
    ],
)
def test_order_of_values(sql_type: Any, ascending: list[Any]) -> None:
    keys = [order_key((sql_type,), (value,)) for value in ascending]
    assert keys == sorted(keys)
    assert len(set(map(repr, keys))) == len(keys)
