import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import columns, key_types, rows, spark_order
from viewkeeper.zset import schema as t
from viewkeeper.zset.hashing import SLOTS, hash_columns, slot_of

cases = st.lists(key_types, min_size=1, max_size=3).map(tuple).flatmap(lambda ts: st.tuples(st.just(ts), rows(ts)))


@given(cases)
def test_equal_keys_have_equal_hashes_and_others_differ(case):
    types, python_rows = case
    hashes = hash_columns(columns(types, python_rows), types).tolist()
    orders = [[spark_order(x, v) for x, v in zip(types, row, strict=True)] for row in python_rows]
    for hashed, order in zip(hashes, orders, strict=True):
        assert [hashed == other for other in hashes] == [order == other for other in orders]


@given(cases)
def test_chunks_do_not_matter(case):
    types, python_rows = case
    whole = columns(types, python_rows)
    chunked = [pa.chunked_array([column.slice(0, 1), column.slice(1)]) for column in whole]
    assert hash_columns(chunked, types).tolist() == hash_columns(whole, types).tolist()
    assert (
        hash_columns([column.slice(1) for column in whole], types).tolist() == hash_columns(whole, types)[1:].tolist()
    )


def test_hashes_never_change():
    columns = [pa.array([7, None]), pa.array(["EWR", "é\0"]), pa.array([1.5, float("nan")])]
    hashes = hash_columns(columns, [t.BIGINT, t.STRING, t.DOUBLE])
    assert [f"{value:016x}" for value in hashes.tolist()] == ["b6372d03c86a67ee", "36e94332cbf067d4"]


def test_slots_are_even_for_regular_keys():
    for keys in (np.arange(100_000), np.arange(100_000) << 20, np.arange(100_000) * 1000):
        counts = np.bincount(slot_of(hash_columns([pa.array(keys)], [t.BIGINT])), minlength=SLOTS)
        assert len(counts) == SLOTS
        assert counts.min() > 50
        assert counts.max() < 150


def test_order_of_columns_and_absent_columns():
    a, b = pa.array([1, 2]), pa.array([2, 1])
    left, right = hash_columns([a, b], [t.BIGINT] * 2), hash_columns([b, a], [t.BIGINT] * 2)
    assert left[0] != right[0]
    assert left[0] == right[1]
    assert hash_columns([a.cast(pa.int8())], [t.TINYINT]).tolist() == hash_columns([a], [t.BIGINT]).tolist()
    assert hash_columns([], [], num_rows=3).tolist() == [0, 0, 0]
