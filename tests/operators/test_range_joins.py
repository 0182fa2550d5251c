"""Joins that seek ranges give what joins that look at all rows of a key give, and read in proportion to the matches."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.operators.running import Running
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.circuit import Circuit
from viewkeeper.operators.join import Join
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import compile_views
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Column,
    Schema,
    SqlType,
    decimal,
)

COLUMNS = {
    "k": BIGINT,
    "g": INT,
    "i": INT,
    "l": BIGINT,
    "y": SqlType("TINYINT"),
    "d": decimal(10, 2),
    "x": DOUBLE,
    "s": STRING,
    "b": BINARY,
    "t": TIMESTAMP,
    "n": TIMESTAMP_NTZ,
    "a": DATE,
}
ROWS = Schema(tuple(Column(name, type_, name != "k") for name, type_ in COLUMNS.items()))
RELATIONS = FixedRelations([Relation(i, name, "table", ROWS, (0,)) for i, name in ((1, "p"), (2, "q"))])
NOON = datetime(2024, 2, 29, 12)
LAST = datetime(1970, 1, 1) + timedelta(microseconds=2**53)
VALUES = {
    "g": (0, 1),
    "i": (-(2**31), -1, 0, 1, 2, 2**31 - 1, None),
    "l": (-(2**63), -1, 0, 1, 2, 2**63 - 1, None),
    "y": (-128, -1, 0, 3, 127, None),
    "d": (Decimal("-0.50"), Decimal("0.00"), Decimal("1.25"), Decimal("99999999.99"), None),
    "x": (float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan"), None),
    "s": ("", "\0", "a", "a\0", "ab", "é", "z" * 128, "z" * 128 + "a", "z" * 128 + "b", "z" * 127, "z" * 129, None),
    "b": (b"", b"\0", b"\xff", b"\xff\xff", b"\xff" * 128, b"\xff" * 129 + b"a", b"\xff" * 130, None),
    "t": (NOON, NOON + timedelta(hours=1), NOON - timedelta(days=1), LAST, None),
    "n": (NOON, NOON + timedelta(minutes=5), NOON - timedelta(days=1), LAST, None),
    # Days as Arrow may bring them: the last ones wrap around where days are added.
    "a": (19_782, 19_783, -719_162, 0, -(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 2, None),
}
CONDITIONS = (
    "p.g = q.g AND p.i < q.i",
    "p.g = q.g AND p.i BETWEEN q.l AND q.y",
    "p.g = q.g AND p.l BETWEEN q.l - 1 AND q.l + 1",
    "p.g <=> q.g AND q.y - 1 <= p.y AND 2 + q.y > p.y",
    "p.g = q.g AND p.i BETWEEN q.i AND q.i + 1 AND 4 / p.l > 0",
    "p.g = q.g AND 4 / p.l > q.d AND p.i + 1 >= q.i",
    "p.i > 4 / q.i AND p.l < q.l",
    "p.l >= q.i",
    "p.l + 1 > q.l - 1 AND p.d < q.x",
    "p.x < q.x",
    "p.x >= q.x AND p.x <= q.d",
    "p.d >= q.d AND p.d < q.y",
    "p.g = q.g AND p.s > q.s",
    "p.s <= q.s AND q.b < p.b",
    "p.b BETWEEN q.b AND q.b",
    "p.t BETWEEN q.t - INTERVAL 1 HOUR AND q.t + INTERVAL 1 DAY",
    "p.n BETWEEN q.n - INTERVAL 90 MINUTES AND q.n AND p.a >= q.a",
    "p.a BETWEEN q.a - 1 AND q.a + 1 AND p.i <= q.i",
    "p.g = q.g AND p.a > q.a - INTERVAL 3 DAYS AND p.a <= DATE_ADD(q.a, 2)",
    "DATE_SUB(p.a, 1) < q.a AND NOT (q.a > p.a + 4) AND p.a + 1 > q.a",
)
KINDS = ("INNER", "FULL", "ANTI")


def circuit_of(sql: str) -> Circuit:
    """Return the circuit of a view over ``p`` and ``q``."""
    return compile_views({9: plan_view(sql, RELATIONS, Session())}, (9,), {1: ROWS, 2: ROWS}, "c").circuit


def without_seeks(circuit: Circuit) -> Circuit:
    """Return the circuit in which every join looks at all rows of a key."""
    nodes = []
    for node in circuit.nodes:
        operator = node.operator
        if isinstance(operator, Arrange):
            operator = replace(operator, order=None)
        if isinstance(operator, Join):
            left, right = (replace(side, order=None) for side in (operator.left, operator.right))
            operator = replace(operator, left=left, right=right, seek_left=None, seek_right=None)
        nodes.append(replace(node, operator=operator))
    return Circuit(tuple(nodes))


class Shown(Running):
    """A circuit with the rows and the errors that it has come to."""

    def __init__(self, circuit: Circuit) -> None:
        super().__init__(circuit)
        self.errors: Counter[bytes] = Counter()
        self.rows: Counter[tuple[object, ...]] = Counter()

    def step(self, deltas: Mapping[int, Delta]) -> Delta:
        """Publish an epoch."""
        out = super().step(deltas)
        for bag in self.writes.merges.values():
            self.errors.update(bag)
        self.add(out)
        return out

    def add(self, delta: Delta) -> None:
        for row, weight in zip(
            zip(*(c.to_pylist() for c in delta.rows.columns), strict=True), delta.weights, strict=True
        ):
            self.rows[tuple(map(repr, row))] += int(weight)

    def shown(self) -> tuple[dict[tuple[object, ...], int], dict[bytes, int]]:
        """Return the rows and the errors that there are."""
        return {r: n for r, n in self.rows.items() if n}, {e: n for e, n in self.errors.items() if n}


def batch(rows: dict[int, tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*((k, *row) for k, row in rows.items()), strict=True)) or [()] * len(ROWS)
    arrow = ROWS.to_arrow()
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def epoch(generator: random.Random, rows: dict[int, dict[int, tuple[object, ...]]], changes: int) -> dict[int, Delta]:
    """Change some rows; return the deltas."""
    deltas = {}
    for table in generator.sample((1, 2), generator.choice((1, 2))):
        before, after = {}, {}
        for key in generator.sample(range(30), changes):
            if key in rows[table]:
                before[key] = rows[table].pop(key)
            if generator.random() < 0.7:
                after[key] = tuple(generator.choice(values) for values in VALUES.values())
                rows[table][key] = after[key]
        parts = [Delta.from_rows(batch(before), -1), Delta.from_rows(batch(after))]
        deltas[table] = Delta.concat(parts, ROWS.to_arrow()).consolidate()
    return deltas


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_seeks_find_the_rows_and_the_errors_of_all_pairs(condition: str, kind: str) -> None:
    columns = "p.k, p.i" if kind == "ANTI" else "p.k, q.k AS other, p.i"
    circuit = circuit_of(f"SELECT {columns} FROM p {kind} JOIN q ON {condition}")
    joins = [node.operator for node in circuit.nodes if isinstance(node.operator, Join)]
    assert joins[0].seek_left is not None
    generator = random.Random(f"{condition} {kind}")
    seeking, plain = Shown(circuit), Shown(without_seeks(circuit))
    rows: dict[int, dict[int, tuple[object, ...]]] = {1: {}, 2: {}}
    # The first epoch joins many rows in memory, the others few by lookups.
    for changes in (25, 1, 2, 4, 8, 1, 3, 2):
        deltas = epoch(generator, rows, changes)
        seeking.step(deltas)
        plain.step(deltas)
        assert seeking.shown() == plain.shown()
        assert seeking.reads <= plain.reads + 2 * changes
    if not seeking.shown()[1]:
        whole = Shown(circuit)
        whole.add(circuit.whole({t: Delta.from_rows(batch(r)) for t, r in rows.items()})[circuit.nodes[-1].id])
        assert whole.shown() == seeking.shown()


PARTNERS = 100_000


def numbers(keys: range, value: int | None = None, weight: int = 1) -> Delta:
    """Return rows (k, g = 7, l = k or value, others NULL)."""
    ints = {"k": list(keys), "g": [7] * len(keys), "l": list(keys) if value is None else [value] * len(keys)}
    arrow = ROWS.to_arrow()
    arrays = [pa.array(ints[f.name], f.type) if f.name in ints else pa.nulls(len(keys), f.type) for f in arrow]
    return Delta.from_rows(pa.RecordBatch.from_arrays(arrays, schema=arrow), weight)


@pytest.mark.parametrize("equality", ["p.g = q.g AND ", ""])
def test_a_range_that_meets_three_of_a_hot_keys_partners_reads_few(equality: str) -> None:
    sql = f"SELECT p.k, q.k AS other FROM p JOIN q ON {equality} p.l BETWEEN q.l - 1 AND q.l + 1"
    running = Shown(circuit_of(sql))
    running.step({1: numbers(range(PARTNERS)), 2: numbers(range(1), PARTNERS // 2)})
    assert len(running.shown()[0]) == 3
    for side in (1, 2):
        running.step({side: numbers(range(PARTNERS, PARTNERS + 1), 500)})
        assert running.reads <= 8
    assert len(running.shown()[0]) == 7
    both = {1: numbers(range(7, 8), weight=-1), 2: numbers(range(PARTNERS, PARTNERS + 1), 500, -1)}
    running.step(both)
    assert running.reads <= 12
    assert len(running.shown()[0]) == 3


def test_ranges_that_overlap_are_read_once() -> None:
    running = Shown(circuit_of("SELECT p.k, q.k AS other FROM p JOIN q ON p.g = q.g AND p.l < q.l"))
    running.step({1: numbers(range(1_000))})
    running.step({2: numbers(range(50), 200)})
    assert running.reads <= 210
    assert len(running.shown()[0]) == 50 * 200


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_reads_follow_the_matches_and_not_the_table(size: int) -> None:
    running = Shown(circuit_of("SELECT p.k, q.k AS other FROM p LEFT JOIN q ON p.l BETWEEN q.l AND q.l + 3"))
    running.step({1: numbers(range(size)), 2: numbers(range(0, size, 10))})
    running.step({1: numbers(range(size, size + 1), 42), 2: numbers(range(100, 101), weight=-1)})
    assert running.reads <= 20
