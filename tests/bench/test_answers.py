"""The comparison of two engines' answers finds what differs, and only that."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from bench.answers import differences


def test_order_types_and_rounding_do_not_count() -> None:
    left = pa.table({"k": ["b", "a", None], "n": [Decimal("1.333333"), Decimal("2.00"), None]})
    right = pa.table({"k": [None, "a", "b"], "m": [None, 2.0, 4 / 3]})
    assert differences(left, right) == []


def test_what_differs_is_told() -> None:
    left = pa.table({"k": ["a", "b"], "n": [1.5, 2.5]})
    assert differences(left, pa.table({"k": ["a", "b"], "n": [1.5, 2.6]})) == ["('b', 2.5) against ('b', 2.6)"]
    assert differences(left, pa.table({"k": ["a", None], "n": [1.5, 2.5]})) == ["('b', 2.5) against (None, 2.5)"]
    assert differences(left, left.slice(1)) == ["2 × 2 against 1 × 2 rows × columns"]


def test_bags_count_their_rows() -> None:
    left, right = pa.table({"k": [1, 1, 2]}), pa.table({"k": [1, 2, 2]})
    assert differences(left, right) == ["(1.0,) against (2.0,)"]
