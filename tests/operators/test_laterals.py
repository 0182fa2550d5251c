"""LATERAL and correlated subqueries: a change reads what it shows, however many rows its key and the tables have."""

import pytest

from tests.operators.test_range_joins import Shown, circuit_of, numbers
from viewkeeper.operators.join import Join

SHAPES = {
    "rows": "SELECT p.k, s.k AS other FROM p, LATERAL (SELECT q.k FROM q WHERE q.l = p.l) s",
    "aggregate": "SELECT p.k, s.n FROM p, LATERAL (SELECT COUNT(*) AS n, SUM(q.l) AS m FROM q WHERE q.g = p.g) s",
    "having": "SELECT p.k, s.n FROM p LEFT JOIN LATERAL "
    "(SELECT COUNT(*) AS n FROM q WHERE q.l = p.k HAVING COUNT(*) > 1) s ON s.n < 9",
    "first": "SELECT p.k, s.l FROM p, LATERAL (SELECT q.l FROM q WHERE q.g = p.g ORDER BY q.l DESC LIMIT 2) s",
    "first of an inequality": "SELECT p.k, s.l FROM p LEFT JOIN LATERAL "
    "(SELECT q.l FROM q WHERE q.k >= p.l ORDER BY q.k LIMIT 1) s",
    "scalar": "SELECT p.k, (SELECT q.l FROM q WHERE q.g = p.g ORDER BY q.l DESC, q.k LIMIT 1) AS l FROM p",
    "united": "SELECT p.k, s.l FROM p, LATERAL (SELECT p.l UNION ALL SELECT q.l FROM q WHERE q.k = p.k) s",
}


@pytest.mark.parametrize("size", [1_000, 10_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_reads_what_it_shows(shape: str, size: int) -> None:
    running = Shown(circuit_of(SHAPES[shape]))
    # One hot key of q, and two rows of p that see it.
    running.step({1: numbers(range(2), size - 3), 2: numbers(range(size))})
    for deltas in (
        {2: numbers(range(size, size + 1), size)},
        {2: numbers(range(size, size + 1), size, -1)},
        {1: numbers(range(2, 3), size - 3)},
        {1: numbers(range(2, 3), size - 3, -1)},
    ):
        running.step(deltas)
        assert running.reads <= 24


def test_a_row_below_the_first_ones_touches_nobody() -> None:
    running = Shown(circuit_of(SHAPES["first"]))
    running.step({1: numbers(range(1_000), 0), 2: numbers(range(1_000))})
    before = dict(running.rows)
    running.step({2: numbers(range(1_000, 1_001), 5)})
    assert running.reads <= 8
    assert running.rows == before


def test_groups_of_rows_that_one_owner_had_move_before_they_are_joined() -> None:
    circuit = circuit_of("SELECT p.k, (SELECT COUNT(*) FROM q WHERE q.l > p.l) AS n FROM p")
    pairs, by_value = (node for node in circuit.nodes if isinstance(node.operator, Join))
    # All pairs meet at one owner; the owners of values, where the other side of the second join is, are others.
    assert pairs.level < by_value.level
