"""Aggregates that keep only the groups which can have a partner give what all groups give, and keep and read less."""

import random

import pytest

from tests.operators.test_range_joins import Shown, batch, circuit_of, epoch, numbers
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.circuit import Circuit
from viewkeeper.plan import rules
from viewkeeper.plan.rules.restrict_groups import restrict_groups
from viewkeeper.plan.rules.share_arrangements import share_arrangements
from viewkeeper.zset.delta import Delta

ABOVE_AVERAGE = (
    "SELECT q.k, p.k AS other FROM q JOIN p ON q.l = p.i WHERE p.g = 1 AND q.x >= (SELECT {} FROM q r WHERE r.l = q.l)"
)
SHAPES = {
    "average": ABOVE_AVERAGE.format("AVG(r.x)"),
    "least": ABOVE_AVERAGE.format("MIN(r.x)"),
    "left": "SELECT q.k, s.n, s.m FROM q JOIN p ON q.l = p.i AND p.g = 1"
    " LEFT JOIN (SELECT l, COUNT(*) AS n, MAX(y) AS m FROM q GROUP BY l) s ON s.l = q.l",
    "two keys": "SELECT q.k, s.n FROM q JOIN p ON q.l = p.i AND q.g = p.g"
    " LEFT JOIN (SELECT g, l, COUNT(d) AS n FROM q GROUP BY g, l) s ON s.l = q.l AND s.g = q.g WHERE p.l IS NOT NULL",
    "joined below": "SELECT q.k, s.n FROM q JOIN p ON q.l = p.i AND p.g = 1"
    " LEFT JOIN (SELECT r.l, SUM(o.d) AS n FROM q r JOIN p o ON r.y = o.y GROUP BY r.l) s ON s.l = q.l",
    "floating": "SELECT q.k, s.n FROM q JOIN p ON q.x = p.x AND p.g = 1"
    " LEFT JOIN (SELECT x, COUNT(*) AS n FROM q GROUP BY x HAVING COUNT(*) > 1) s ON s.x = q.x",
    "exists": "SELECT q.k FROM q JOIN p ON q.l = p.i AND p.g = 1"
    " WHERE q.l IN (SELECT l FROM q GROUP BY l HAVING SUM(y) > 2)",
}


def unrestricted(sql: str, monkeypatch: pytest.MonkeyPatch) -> Circuit:
    """Return the circuit that keeps all groups."""
    with monkeypatch.context() as patch:
        others = tuple(rule for rule in rules.RULES if rule not in (restrict_groups, share_arrangements))
        patch.setattr(rules, "RULES", others)
        return circuit_of(sql)


def arranged(circuit: Circuit) -> set[str]:
    return {node.operator.state for node in circuit.nodes if isinstance(node.operator, Arrange)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_few_groups_give_what_all_give(shape: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit, plain = circuit_of(SHAPES[shape]), unrestricted(SHAPES[shape], monkeypatch)
    assert len(circuit.nodes) > len(plain.nodes)
    generator = random.Random(f"{shape} {seed}")
    few, every = Shown(circuit), Shown(plain)
    rows: dict[int, dict[int, tuple[object, ...]]] = {1: {}, 2: {}}
    seen = 0
    for changes in (25, 1, 2, 4, 8, 1, 3, 20, 2):
        deltas = epoch(generator, rows, changes)
        few.step(deltas)
        every.step(deltas)
        assert few.shown() == every.shown()
        seen += len(few.shown()[0])
    assert seen
    whole = Shown(circuit)
    whole.add(circuit.whole({t: Delta.from_rows(batch(r)) for t, r in rows.items()})[circuit.nodes[-1].id])
    assert whole.shown() == few.shown()


@pytest.mark.parametrize("shape", SHAPES)
def test_what_the_restriction_reads_is_arranged_anyway(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(arranged(circuit_of(SHAPES[shape]))) == len(arranged(unrestricted(SHAPES[shape], monkeypatch)))


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_groups_without_a_partner_are_neither_kept_nor_read(size: int) -> None:
    sql = (
        "SELECT q.k FROM q JOIN p ON q.l = p.k WHERE p.l > 3"
        " AND q.k >= (SELECT AVG(r.k) FROM q r WHERE r.l = q.l)"
    )  # fmt: skip
    running = Shown(circuit_of(sql))
    # Each row of q is a group of its own; of the rows of p one passes.
    running.step({1: numbers(range(5)), 2: numbers(range(size))})
    assert [row[0] for row in running.shown()[0]] == ["4"]
    groups = [len(rows) for state, rows in running.state().items() if "/g" in state]
    assert groups == [1]
    for deltas in (
        {2: numbers(range(size, size + 1))},
        {2: numbers(range(size, size + 1), weight=-1)},
        {2: numbers(range(4, 5), weight=-1)},
        {1: numbers(range(4, 5), weight=-1), 2: numbers(range(4, 5))},
        {1: numbers(range(size - 1, size))},
    ):
        running.step(deltas)
        assert running.reads <= 12
    assert [row[0] for row in running.shown()[0]] == [repr(size - 1)]
