from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import any_types, batch, key_types, leaf_types, rows, spark_order
from viewkeeper.zset import grouping
from viewkeeper.zset import schema as t
from viewkeeper.zset.buffers import canonical, from_arrow_type, raw_values
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.rows import RowCodec

SMALL = {
    t.INT: st.integers(0, 2),
    t.BIGINT: st.sampled_from([0, 1, 1 << 62, -(1 << 62)]),
    t.DOUBLE: st.sampled_from([0.0, -0.0, float("nan"), -float("nan"), 1.0]),
    t.STRING: st.sampled_from(["", "a", "\0"]),
    t.BOOLEAN: st.booleans(),
}

small_types = st.sampled_from(list(SMALL))


@st.composite
def deltas(draw, type_strategy=small_types, max_size=30):
    types = tuple(draw(st.lists(type_strategy, min_size=1, max_size=4)))
    strategy = st.tuples(*[st.none() | SMALL[x] for x in types]) if all(x in SMALL for x in types) else None
    python_rows = draw(st.lists(strategy, max_size=max_size) if strategy is not None else rows(types))
    weights = draw(st.lists(st.integers(-2, 2), min_size=len(python_rows), max_size=len(python_rows)))
    names = ["__weight"] * len(types)  # names mean nothing and may repeat
    return types, Delta(batch(types, python_rows, names), np.array(weights, np.int64))


def bag(types, delta):
    """The Z-set as a Counter over row bytes."""
    counter = Counter()
    for key, weight in zip(
        RowCodec(types).encode(delta.rows) if delta.num_rows else [], delta.weights.tolist(), strict=True
    ):
        counter[key] += weight
    return {key: weight for key, weight in counter.items() if weight}


@given(deltas() | deltas(any_types))
def test_consolidate_is_the_sum_of_weights_by_row(case):
    types, delta = case
    result = delta.consolidate()
    assert bag(types, result) == bag(types, delta)
    assert result.num_rows == len(bag(types, result))
    assert result.schema == delta.schema
    assert 0 not in result.weights
    assert result.consolidate() is result or not result.num_rows


@given(deltas() | deltas(key_types), st.data())
def test_group_numbers_rows_by_their_key(case, data):
    types, delta = case
    positions = data.draw(st.lists(st.integers(0, len(types) - 1), max_size=3))
    groups, first_rows = delta.group(positions)
    seen, expected = {}, []
    for i in range(delta.num_rows):
        key = (
            KeyCodec([types[p] for p in positions]).encode([delta.rows.column(p).slice(i, 1) for p in positions])
            if positions
            else [b""]
        )
        seen.setdefault(key[0], (len(seen), i))
        expected.append(seen[key[0]][0])
    assert groups.dtype == first_rows.dtype == np.int64
    assert groups.tolist() == expected
    assert first_rows.tolist() == [i for _, i in seen.values()]


@given(deltas() | deltas(any_types))
def test_bytes_come_back(case):
    types, delta = case
    back = Delta.from_ipc(delta.to_ipc(), delta.schema)
    assert back.schema == delta.schema
    assert RowCodec(types).encode(back.rows) == RowCodec(types).encode(delta.rows)
    assert back.weights.tolist() == delta.weights.tolist()
    assert delta.to_arrow().schema.names == ["__weight"] * (len(types) + 1)


@given(deltas(), st.data())
def test_algebra(case, data):
    types, delta = case
    assert bag(types, Delta.concat([delta, delta.negate()], delta.schema)) == {}
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=delta.num_rows, max_size=delta.num_rows)), np.bool_)
    both = Delta.concat([delta.filter(mask), delta.filter(~mask)], delta.schema)
    assert bag(types, both) == bag(types, delta)
    reverse = np.arange(delta.num_rows)[::-1]
    assert delta.take(reverse).weights.tolist() == delta.weights[::-1].tolist()
    cut = data.draw(st.integers(0, delta.num_rows))
    halves = [delta.slice(0, cut), delta.slice(cut, delta.num_rows)]
    assert Delta.concat(halves, delta.schema).to_arrow().num_rows == delta.num_rows
    assert bag(types, Delta.concat(halves, delta.schema)) == bag(types, delta)
    picked = delta.select([0, 0])
    assert picked.rows.column(0).equals(picked.rows.column(1)) or types[0] == t.DOUBLE
    assert delta.with_columns([delta.rows.column(0)]).schema.names == ["c0"]
    assert delta.byte_size >= 8 * delta.num_rows


def test_empty_and_columnless_deltas():
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    empty = Delta.empty(schema)
    assert (empty.num_rows, len(empty), empty.schema) == (0, 0, schema)
    assert empty.consolidate().num_rows == 0
    assert [x.tolist() for x in empty.group([0, 1])] == [[], []]
    assert Delta.from_ipc(empty.to_ipc(), schema).num_rows == 0
    assert Delta.concat([empty, empty], schema).num_rows == 0
    nothing = Delta(pa.RecordBatch.from_arrays([], schema=pa.schema([])), np.array([1, 1, -1]))
    assert nothing.consolidate().weights.tolist() == [1]
    assert Delta.from_ipc(nothing.to_ipc(), nothing.schema).weights.tolist() == [1, 1, -1]
    assert nothing.filter(np.array([True, False, True])).num_rows == 2
    assert Delta.concat([nothing, nothing], nothing.schema).num_rows == 6
    assert [x.tolist() for x in nothing.group([])] == [[0, 0, 0], [0]]


def test_weights_beyond_doubles_are_summed_exactly():
    delta = Delta(pa.record_batch({"a": [1, 1, 2]}), np.array([(1 << 62) + 1, 1 - (1 << 62), 5]))
    assert delta.consolidate().weights.tolist() == [2, 5]


def test_rows_of_a_large_delta_are_grouped_as_numpy_groups_them():
    generator = np.random.default_rng(7)
    for low, high in [(0, 1000), (-(1 << 62), 1 << 62), (0, 40_000)]:
        key, other = generator.integers(low, high, 20_000), generator.integers(0, 3, 20_000)
        delta = Delta.from_rows(pa.record_batch({"a": key, "b": other}))
        for positions, array in [([0], key), ([0, 1], np.rec.fromarrays([key, other]))]:
            groups, first_rows = delta.group(positions)
            _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
            assert first_rows.tolist() == np.sort(first).tolist()
            assert (first_rows[groups] == first[inverse]).all()


def test_colliding_hashes_are_resolved(monkeypatch):
    monkeypatch.setattr(grouping, "_hash", lambda words: np.zeros(len(words[0]), np.uint64))
    values = np.array([3 << 40, 1, 3 << 40, 2, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 15, 18])
    groups, first_rows = Delta.from_rows(pa.record_batch({"a": values})).group([0])
    assert values[first_rows][groups].tolist() == values.tolist()
    assert first_rows.tolist() == sorted({values.tolist().index(v) for v in values.tolist()})


@given(key_types.flatmap(lambda x: st.tuples(st.just(x), rows((x,)))))
def test_canonical_values_are_equal_where_keys_are(case):
    sql_type, python_rows = case
    column = batch((sql_type,), python_rows).column(0)
    result = canonical(column)
    result.validate(full=True)
    assert result.type == column.type
    assert KeyCodec((sql_type,)).encode([result]) == KeyCodec((sql_type,)).encode([column])
    encoded = RowCodec((sql_type,)).encode([result])
    orders = [spark_order(sql_type, row[0]) for row in python_rows]
    for left, order in zip(encoded, orders, strict=True):
        assert [left == right for right in encoded] == [order == other for other in orders]


@given(any_types)
def test_arrow_types_name_their_sql_type(sql_type):
    assert t.to_arrow_type(from_arrow_type(t.to_arrow_type(sql_type))) == t.to_arrow_type(sql_type)


@given(
    leaf_types.filter(lambda x: x.name not in ("STRING", "BINARY", "VOID")).flatmap(
        lambda x: st.tuples(st.just(x), rows((x,)))
    ),
    st.integers(0, 3),
)
def test_raw_values_respect_slices(case, start):
    sql_type, python_rows = case
    column = batch((sql_type,), python_rows).column(0)
    assert raw_values(column.slice(start)).tolist() == raw_values(column)[start:].tolist() or sql_type.is_floating


@pytest.mark.parametrize("rows_count", [1, 2])
def test_consolidate_drops_rows_of_weight_zero(rows_count):
    delta = Delta.from_rows(pa.record_batch({"a": list(range(rows_count))}), weight=0)
    assert delta.consolidate().num_rows == 0
