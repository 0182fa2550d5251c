"""What of an epoch's time is whose: parts add up, what is shared is divided."""

from __future__ import annotations

import pytest

from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.costs import Concern, Measured, rows_of, seconds_of


def concern(nodes: set[int], states: set[str], recomputed: bool = False) -> Concern:
    return Concern(frozenset(nodes), frozenset(states), frozenset({min(nodes)}), recomputed)


def writes(**keys: int) -> WriteSet:
    found = WriteSet()
    for state, count in keys.items():
        found.put(state, [bytes([i]) for i in range(count)], [b"" for _ in range(count)])
    return found


def test_shared_operators_and_state_count_for_each_in_part() -> None:
    concerns = {1: concern({0, 1}, {"a"}), 2: concern({0, 2}, {"a", "b"})}
    measured = Measured({0: 2.0, 1: 1.0, 2: 3.0}, {0: 40, 1: 7}, 6.0)
    seconds = seconds_of(concerns, measured, [writes(a=2, b=1), writes(a=2, b=5)], 10.0)
    # Stepping: 1 + 1 against 1 + 3. Publishing: 2 of 10 keys against 2 + 6.
    assert seconds == pytest.approx({1: 2.0 + 2.0, 2: 4.0 + 8.0})
    assert rows_of(concerns[1], measured) == 40


def test_finding_what_differs_is_the_recomputed_views() -> None:
    concerns = {1: concern({0}, {"a"}), 2: concern({5}, {"b"}, recomputed=True)}
    measured = Measured({0: 1.0, 5: 1.0}, {}, 2.0, settle_seconds=4.0)
    assert seconds_of(concerns, measured, [writes(a=1, b=1)], 0.0) == pytest.approx({1: 1.0, 2: 5.0})


def test_what_cannot_be_told_apart_is_divided_evenly() -> None:
    concerns = {1: concern({0}, {"a"}), 2: concern({1}, {"b"})}
    assert seconds_of(concerns, Measured({}, {}, 1.0), [], 1.0) == pytest.approx({1: 1.0, 2: 1.0})
