"""Joins on an OR: by its branches they give what a look at all pairs gives, and read in proportion to the matches."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from tests.operators.running import Running
from tests.plan.interpreter import execute
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.circuit import Circuit
from viewkeeper.operators.join import Join
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import compile_views
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.nodes import Relation, ViewPlan
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import BIGINT, DOUBLE, INT, STRING, Column, Schema

COLUMNS = {"k": BIGINT, "a": INT, "b": INT, "c": BIGINT, "x": DOUBLE, "s": STRING}
ROWS = Schema(tuple(Column(name, type_, name != "k") for name, type_ in COLUMNS.items()))
RELATIONS = FixedRelations([Relation(i, name, "table", ROWS, (0,)) for i, name in ((1, "p"), (2, "q"))])
LONG = "z" * 140
VALUES = {
    "a": (0, 1, 2, 3, None),
    "b": (0, 1, 2, 5, None),
    "c": (0, 1, 2, 3, 4, None),
    "x": (-0.0, 0.0, 1.5, float("nan"), None),
    "s": ("", "u", LONG + "1", LONG + "2", None),
}
CONDITIONS = (
    "p.a = q.a OR p.b = q.b",
    "p.a = q.a OR p.b = q.b OR p.x = q.x OR p.s = q.s",
    "(p.a = q.a AND p.c < q.c) OR (p.b = q.b AND p.s = q.s)",
    "(p.a = q.a AND q.c > 1) OR (p.b = q.b AND p.c < 3) OR p.x <=> q.x AND p.c <=> q.c",
    "(p.a = q.a OR p.b = q.b) AND (p.c > q.c OR p.s = 'u') AND q.x IS NOT NULL",
    "p.a IN (q.a, q.b)",
    "p.c = q.a OR p.c < q.c",
    "p.c BETWEEN q.c AND q.c OR p.b = q.b",
    "COALESCE(p.a, 0) = q.b OR p.c = COALESCE(q.c, 4)",
    "(p.a = q.a AND p.c = 1) OR (p.a = q.a AND p.c = 2) OR p.b = q.b",
)
FORMS = {
    "inner": "SELECT p.k, q.k AS other, p.c, q.s FROM p JOIN q ON {}",
    "where": "SELECT p.k, q.k AS other FROM p, q WHERE ({}) AND p.c > 0",
    "left": "SELECT p.k, q.k AS other, p.c, q.s FROM p LEFT JOIN q ON {}",
    "right": "SELECT p.k, q.k AS other, p.c, q.s FROM p RIGHT JOIN q ON {}",
    "full": "SELECT p.k, q.k AS other, p.c, q.s FROM p FULL JOIN q ON {}",
    "semi": "SELECT p.k, p.c FROM p LEFT SEMI JOIN q ON {}",
    "anti": "SELECT p.k, p.c FROM p LEFT ANTI JOIN q ON {}",
    "self": "SELECT p.k, q.k AS other, q.c FROM p LEFT JOIN p AS q ON {}",
    "exists": "SELECT p.k FROM p WHERE NOT EXISTS (SELECT 1 FROM q WHERE {}) OR p.c > 2",
    "counted": "SELECT p.c, COUNT(*) AS n, COUNT(q.k) AS m FROM p LEFT JOIN q ON {} GROUP BY p.c",
    "twice": "SELECT p.k, q.k AS other, r.k AS third FROM p JOIN q ON {} LEFT JOIN q AS r ON r.a = p.b OR r.b = q.a",
}


def compiled(sql: str) -> tuple[ViewPlan, Circuit]:
    """Return the plan and the circuit of a view over ``p`` and ``q``."""
    plan = plan_view(sql, RELATIONS, Session())
    return plan, compile_views({9: plan}, (9,), {1: ROWS, 2: ROWS}, "c").circuit


def assert_found_by_keys_or_ranges(circuit: Circuit) -> None:
    for operator in (node.operator for node in circuit.nodes):
        if isinstance(operator, Join):
            assert operator.left.columns or (operator.seek_left and operator.seek_right)
        assert not isinstance(operator, SemiJoin) or operator.left.columns


def batch(rows: Mapping[int, tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*((k, *row) for k, row in rows.items()), strict=True)) or [()] * len(ROWS)
    arrow = ROWS.to_arrow()
    return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow)


def epoch(generator: random.Random, rows: dict[int, dict[int, tuple[object, ...]]], changes: int) -> dict[int, Delta]:
    """Change some rows of one table or of both; return the deltas."""
    deltas = {}
    for table in generator.sample((1, 2), generator.choice((1, 2))):
        before, after = {}, {}
        for key in generator.sample(range(24), changes):
            if key in rows[table]:
                before[key] = rows[table].pop(key)
            if generator.random() < 0.6:
                after[key] = rows[table][key] = tuple(generator.choice(values) for values in VALUES.values())
        parts = [Delta.from_rows(batch(before), -1), Delta.from_rows(batch(after))]
        deltas[table] = Delta.concat(parts, ROWS.to_arrow()).consolidate()
    return deltas


def counted(delta: Delta) -> Counter[str]:
    found: Counter[str] = Counter()
    for row, weight in zip(delta.rows.to_pylist(), delta.weights.tolist(), strict=True):
        found[repr(tuple(row.values()))] += weight
    return found


def present(counts: Counter[str]) -> dict[str, int]:
    return {row: count for row, count in counts.items() if count}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_branches_find_what_a_look_at_all_pairs_finds(condition: str, form: str) -> None:
    plan, circuit = compiled(FORMS[form].format(condition))
    assert_found_by_keys_or_ranges(circuit)
    generator = random.Random(f"{condition} {form}")
    running, shown = Running(circuit), Counter[str]()
    rows: dict[int, dict[int, tuple[object, ...]]] = {1: {}, 2: {}}
    for changes in (12, 1, 3, 6, 2):
        deltas = epoch(generator, rows, changes)
        shown.update(counted(running.step(deltas)))
        tables = {number: [(k, *row) for k, row in found.items()] for number, found in rows.items()}
        wanted = execute(plan.root, tables)
        assert present(shown) == Counter(map(repr, wanted))
        assert len({repr([row[i] for i in plan.key]) for row in wanted}) == len(wanted), "the key tells rows apart"
    whole = circuit.whole({t: Delta.from_rows(batch(found)) for t, found in rows.items()})
    assert present(counted(whole[circuit.nodes[-1].id])) == present(shown)


def numbers(keys: range, values: Sequence[int] | None = None, weight: int = 1) -> Delta:
    """Return rows (k, a = c = value, b = value + 1, others NULL); values are the keys by default."""
    values = keys if values is None else values
    ints = {"k": list(keys), "a": list(values), "b": [v + 1 for v in values], "c": list(values)}
    arrow = ROWS.to_arrow()
    arrays = [pa.array(ints[f.name], f.type) if f.name in ints else pa.nulls(len(keys), f.type) for f in arrow]
    return Delta.from_rows(pa.RecordBatch.from_arrays(arrays, schema=arrow), weight)


@pytest.mark.parametrize("condition", ["p.a = q.a OR p.b = q.a", "p.c BETWEEN q.c AND q.c OR p.b = q.a"])
@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("self", "counted", "twice")])
def test_reads_follow_the_matches_and_not_the_table(form: str, condition: str) -> None:
    reads = []
    for size in (1_000, 10_000):
        running = Running(compiled(FORMS[form].format(condition))[1])
        running.step({1: numbers(range(size)), 2: numbers(range(0, size, 2))})
        counts: list[int] = []
        for side in (1, 2):
            # A row with partners by either branch comes and goes; then one that has none.
            for value, weight in ((500, 1), (500, -1), (size + 7, 1), (size + 7, -1)):
                running.step({side: numbers(range(size, size + 1), range(value, value + 1), weight)})
                counts.append(running.reads)
        running.step({1: numbers(range(9, 10), weight=-1), 2: numbers(range(10, 11), weight=-1)})
        reads.append([*counts, running.reads])
    assert reads[0] == reads[1]
    assert max(reads[0]) <= 30


def test_a_further_partner_is_looked_at_alone_however_many_there_are() -> None:
    running = Running(compiled("SELECT p.k FROM p LEFT SEMI JOIN q ON p.a = q.a OR p.b = q.b")[1])
    hot = [7] * 5_000
    running.step({1: numbers(range(5_000), hot), 2: numbers(range(5_000), hot)})
    out = running.step({2: numbers(range(5_000, 5_001), [7])})
    assert out.consolidate().num_rows == 0
    assert running.reads <= 6


def test_arrangements_are_those_of_joins_by_the_keys_of_the_branches() -> None:
    alone = ("SELECT p.k, q.k AS other, p.c FROM p JOIN q ON p.a = q.a",)
    together = (*alone, "SELECT p.k, q.k AS other, p.c FROM p LEFT JOIN q ON p.a = q.a OR p.c = q.c")
    states = []
    for queries in (alone, together):
        plans = {number: plan_view(sql, RELATIONS, Session()) for number, sql in enumerate(queries, 9)}
        circuit = compile_views(plans, tuple(plans), {1: ROWS, 2: ROWS}, "c").circuit
        states.append({n.operator.state for n in circuit.nodes if isinstance(n.operator, Arrange)})
    assert len(states[0] & states[1]) == 2
