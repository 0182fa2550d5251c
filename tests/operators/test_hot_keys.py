"""One key with very many partners: what one change reads and returns is linear in the answer, never quadratic."""

import numpy as np
import pyarrow as pa
import pytest

from tests.operators.running import Running
from viewkeeper.operators.registry import EXAMPLES, ROWS
from viewkeeper.zset.delta import Delta

PARTNERS = 20_000


class Hot:
    """A circuit, stepped by deltas of table 1 (left) and 2 (right)."""

    def __init__(self, name: str) -> None:
        self.running = Running(EXAMPLES[name]())

    def step(self, left: Delta | None = None, right: Delta | None = None) -> tuple[int, int]:
        """Publish an epoch; return how much state it read, and how many rows the circuit returned."""
        out = self.running.step({table: delta for table, delta in ((1, left), (2, right)) if delta is not None})
        return self.running.reads, out.consolidate().num_rows


def rows(keys: range, value: int = 0, weight: int = 1) -> Delta:
    """Return rows (k, 7, value): one hot key."""
    columns = [np.array(keys, np.int64), np.full(len(keys), 7), np.full(len(keys), value)]
    return Delta.from_rows(pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=ROWS.to_arrow()), weight)


def both(*deltas: Delta) -> Delta:
    return Delta.concat(deltas, ROWS.to_arrow())


@pytest.fixture
def semi() -> Hot:
    hot = Hot("semi_join")
    hot.step(rows(range(PARTNERS)), rows(range(PARTNERS)))
    return hot


def test_a_left_row_looks_at_one_of_its_partners(semi: Hot) -> None:
    reads, returned = semi.step(left=both(rows(range(1), 0, -1), rows(range(1), 5)))
    assert (reads <= 4, returned) == (True, 2)


def test_a_right_row_that_is_not_the_last_is_looked_at_alone(semi: Hot) -> None:
    assert semi.step(right=rows(range(PARTNERS, PARTNERS + 1)))[1] == 0
    reads, returned = semi.step(right=rows(range(10), 0, -1))
    assert (reads <= 12, returned) == (True, 0)


def test_when_the_last_partner_goes_all_left_rows_go_once(semi: Hot) -> None:
    reads, returned = semi.step(right=rows(range(PARTNERS), 0, -1))
    assert reads <= 2 * PARTNERS + 10
    assert returned == PARTNERS
    reads, returned = semi.step(right=rows(range(1)))
    assert reads <= PARTNERS + 10
    assert returned == PARTNERS


@pytest.mark.parametrize("name", ["matched_rows", "unmatched_rows"])
def test_with_a_further_condition_one_change_costs_its_pairs_once(name: str) -> None:
    hot = Hot(name)
    hot.step(rows(range(PARTNERS)), rows(range(2), 1))
    # Each left row has two partners; one goes, then the other, and both come back.
    changes = [(rows(range(1), 1, -1), 0), (rows(range(1, 2), 1, -1), 1), (rows(range(2), 1), 1)]
    for delta, turns in changes:
        reads, returned = hot.step(right=delta)
        assert reads <= 4 * PARTNERS + 20
        if name == "matched_rows":
            assert returned == turns * PARTNERS


def test_both_sides_of_a_hot_key_in_one_epoch() -> None:
    hot = Hot("semi_join")
    hot.step(rows(range(PARTNERS)), rows(range(1)))
    reads, returned = hot.step(left=rows(range(0, PARTNERS, 2), 0, -1), right=rows(range(1), 0, -1))
    assert reads <= PARTNERS + 10
    assert returned == PARTNERS
