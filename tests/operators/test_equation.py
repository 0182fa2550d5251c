"""Every registered operator keeps its equation, in small steps and in one large one, and reads only what it must."""

from collections import Counter
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.operators.running import Running
from viewkeeper import operators
from viewkeeper.operators.base import Operator, Stateless
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import Circuit, Source
from viewkeeper.operators.kept_rows import Keeper, KeptRows
from viewkeeper.operators.partial_aggregate import PartialAggregate
from viewkeeper.operators.registry import EXAMPLES, READS, ROWS, Reads
from viewkeeper.pipeline.kept_rows import range_end, split_kept
from viewkeeper.store.scans import KeyRange
from viewkeeper.views.lookups import SpaceLookups
from viewkeeper.zset.delta import Delta

# Sums of a delta's rows are no rows of a Z-set: their equation is the aggregate's.
OUTPUT_ADDS = sorted(name for name in EXAMPLES if name != "partial_aggregate")
KEEPERS = sorted(name for name in EXAMPLES if isinstance(EXAMPLES[name]().nodes[-1].operator, Keeper))


class Tables:
    """Two tables of (k, g, v), and a circuit over them with the state that it keeps."""

    def __init__(self, circuit):
        self.running = Running(circuit)
        self.rows = {1: {}, 2: {}}

    @property
    def reads(self):
        """How much the last step read, as the store counts it."""
        return self.running.reads

    def step(self, changes):
        """Apply [(table, k, (g, v) or None)] as one epoch; return the output's delta."""
        before = {table: dict(rows) for table, rows in self.rows.items()}
        for table, key, row in changes:
            self.rows[table].pop(key, None)
            if row is not None:
                self.rows[table][key] = row
        pairs = {table: [batch(before[table], -1), batch(self.rows[table], 1)] for table in (1, 2)}
        deltas = {table: Delta.concat(pair, ROWS.to_arrow()).consolidate() for table, pair in pairs.items()}
        return bag(self.running.step(deltas))

    def whole(self):
        circuit = self.running.circuit
        tables = {table: batch(rows, 1) for table, rows in self.rows.items()}
        return bag(circuit.whole(tables)[circuit.nodes[-1].id])


def batch(rows, weight):
    columns = zip(*((k, *row) for k, row in rows.items()), strict=True) if rows else ([], [], [])
    return Delta.from_rows(
        pa.RecordBatch.from_arrays([pa.array(c, pa.int64()) for c in columns], schema=ROWS.to_arrow()), weight
    )


def bag(delta):
    found = Counter()
    for row, weight in zip(zip(*(c.to_pylist() for c in delta.rows.columns), strict=True), delta.weights, strict=True):
        found[tuple(tuple(value) if isinstance(value, list) else value for value in row)] += int(weight)
    return {row: weight for row, weight in found.items() if weight}


def plus(left, right):
    total = Counter(left)
    for row, weight in right.items():
        total[row] += weight
    return {row: weight for row, weight in total.items() if weight}


small = st.none() | st.integers(-2, 3)
changes = st.tuples(st.sampled_from((1, 2)), st.integers(0, 5), st.none() | st.tuples(small, small))
epochs = st.lists(st.lists(changes, max_size=5), min_size=1, max_size=5)


def hold_to_the_equation(name, epochs):
    circuit = EXAMPLES[name]()
    small, large = Tables(circuit), Tables(circuit)
    total = {}
    for epoch in epochs:
        total = plus(total, small.step(epoch))
        assert total == small.whole()
    assert large.step([change for epoch in epochs for change in epoch]) == large.whole() == small.whole()
    assert large.running.state() == small.running.state()


@pytest.mark.parametrize("name", OUTPUT_ADDS)
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(epochs)
def test_small_steps_and_one_large_step_give_the_whole(name, epochs):
    hold_to_the_equation(name, epochs)


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUT_ADDS)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(epochs)
def test_more_small_steps_and_one_large_step_give_the_whole(name, epochs):
    hold_to_the_equation(name, epochs)


@pytest.mark.parametrize("name", KEEPERS)
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(epochs, st.integers(1, 7), st.integers(0, 3))
def test_rows_that_are_kept_are_the_whole_whatever_the_ranges(name, epochs, parts, first):
    circuit = EXAMPLES[name]()
    tables = Tables(circuit)
    for epoch in epochs:
        tables.step(epoch)
    keeper = circuit.nodes[-1].operator
    space, state = tables.running.space, keeper.kept_in
    with space.read() as txn:
        start, count = range_end(txn, state, keeper, None, None, 1 + first)
        ranges = [KeyRange(None, start)]
        if start is not None:
            ranges += split_kept(txn, state, keeper, KeyRange(start), parts, txn.count(state) - count)
    total = {}
    with SpaceLookups(space) as lookups:
        for keys in ranges:
            total = plus(total, bag(KeptRows(keeper).between(lookups, keys.start, keys.stop)))
    assert total == tables.whole()
    assert len(ranges) <= 1 + parts


def test_of_the_first_of_all_rows_no_more_are_read():
    circuit = EXAMPLES["top_k_of_all"]()
    tables = Tables(circuit)
    tables.step([(1, k, (k % 7, k)) for k in range(500)])
    with SpaceLookups(tables.running.space) as lookups:
        kept = KeptRows(circuit.nodes[-1].operator).between(lookups, None, None)
        assert bag(kept) == tables.whole()
        assert lookups.reads < 20


@given(epochs)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_partial_sums_add_to_the_sums_of_the_whole(epochs):
    tables = Tables(EXAMPLES["partial_aggregate"]())
    operator = tables.running.circuit.nodes[-1].operator
    assert isinstance(operator, PartialAggregate)
    counts = Counter()
    for epoch in epochs:
        for row, times in tables.step(epoch).items():
            counts[row[0]] += row[1] * times
    wanted = Counter(row[0] for row in tables.rows[1].values())
    assert {g: n for g, n in counts.items() if n} == dict(wanted)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_order_of_independent_keys_does_not_matter(name):
    epoch = [(1, 0, (1, 2)), (1, 1, (1, 3)), (2, 0, (1, 5)), (1, 2, (None, 1)), (2, 4, (2, None))]
    circuit = EXAMPLES[name]()
    forth, back = Tables(circuit), Tables(circuit)
    assert forth.step(epoch) == back.step(epoch[::-1])
    assert forth.running.state() == back.running.state()


def reads_of(name, groups, rows):
    """Return how much of its store one small epoch reads over tables of ``groups`` groups of ``rows`` rows."""
    tables = Tables(EXAMPLES[name]())
    tables.step([(table, key, (key // rows, key % 7)) for table in (1, 2) for key in range(rows * groups)])
    # In the first group the smallest value goes; a row moves to the third; a row there changes; a new group comes.
    tables.step([(1, 0, None), (1, rows + 1, (2, 9)), (2, 2 * rows + 1, (2, -1)), (1, -1, (-1, 0))])
    return tables.reads


CHANGED_ROWS, TOUCHED_GROUPS = 6, 3


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_work_follows_the_change_and_not_the_table(name):
    reads = READS[name]
    few, many = reads_of(name, 45, 2), reads_of(name, 450, 2)
    if reads.side:
        assert (few, many) == (reads.side * 90, reads.side * 900)
        return
    sides = len({node.operator.table for node in EXAMPLES[name]().nodes if isinstance(node.operator, Source)})
    bounds = [reads.changed * CHANGED_ROWS + reads.touched * TOUCHED_GROUPS * rows * sides for rows in (2, 20)]
    assert few == many <= bounds[0]
    assert bool(few) == (reads != Reads())
    # Of larger groups no more is read than an example says.
    assert reads_of(name, 45, 20) <= bounds[1]


@pytest.mark.parametrize("others", [100, 1000])
def test_a_recursion_follows_the_derivations_that_change(others):
    """Beside a chain of nodes that are reached from its end stand others that are reached, and none of them is read."""
    links = 30
    tables = Tables(EXAMPLES["recursion"]())
    tables.step([(1, 0, (links, 0)), *((2, node, (node - 1, 0)) for node in range(1, links + 1))])
    tables.step([(1, 1 + number, (1000 + number, 0)) for number in range(others)])
    for change, there in (((1, 0, None), 0), ((1, 0, (links, 0)), links + 1), ((2, 11, None), links - 10)):
        tables.step([change])
        assert len(tables.whole()) == others + there
        assert 0 < tables.reads <= 6 * (links + 1)


def test_every_example_says_what_it_reads():
    assert READS.keys() == EXAMPLES.keys()
    # The one operator that has no example, because only Spark runs it, keeps nothing and looks nothing up.
    assert Catalyst.states is Stateless.states
    assert Catalyst.looks_up is Stateless.looks_up


def test_every_operator_has_an_example():
    used = {type(EXAMPLES[name]().nodes[-1].operator) for name in EXAMPLES}
    modules = [import_module(f"{operators.__name__}.{found.name}") for found in iter_modules(operators.__path__)]
    known = {
        v
        for m in modules
        for v in vars(m).values()
        if isinstance(v, type) and hasattr(v, "step") and hasattr(v, "whole")
    }
    assert used == known - {Operator, Circuit, Catalyst}
