import itertools
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import columns, key_types, rows, spark_order, values
from viewkeeper.errors import InputError
from viewkeeper.zset import schema as t
from viewkeeper.zset.keys import MAX_KEY_BYTES, KeyCodec, after

types_and_rows = (
    st.lists(key_types, min_size=1, max_size=4).map(tuple).flatmap(lambda ts: st.tuples(st.just(ts), rows(ts)))
)


def order(types, row):
    return [spark_order(sql_type, value) for sql_type, value in zip(types, row, strict=True)]


def order_stands_in(codec, key):
    return not any(codec.is_truncated_at(key, i) for i in range(len(codec.types)))


@given(types_and_rows)
def test_columns_and_values_give_the_same_bytes(case):
    types, python_rows = case
    codec = KeyCodec(types)
    assert codec.encode(columns(types, python_rows)) == [codec.encode_values(row) for row in python_rows]


@given(types_and_rows)
def test_keys_sort_and_compare_as_spark_does(case):
    types, python_rows = case
    codec = KeyCodec(types)
    keyed = [(codec.encode_values(row), order(types, row)) for row in python_rows]
    for key, value in keyed:
        assert 1 <= len(key) <= MAX_KEY_BYTES
        for other_key, other in keyed:
            assert (key == other_key) == (value == other)
            if order_stands_in(codec, key) and order_stands_in(codec, other_key):
                assert (key < other_key) == (value < other)


@given(
    st.lists(st.text(st.sampled_from("\0aé"), max_size=4), min_size=2, max_size=8),
    st.sampled_from([126, 127, 128, 129]),
)
def test_truncated_strings_form_runs_in_order(tails, length):
    codec = KeyCodec((t.STRING,))
    strings = ["x" * length + tail for tail in tails] + ["w", "y"]
    keyed = sorted((codec.encode_values((text,)), text) for text in strings)
    # Runs come in order by themselves; inside a run the reader sorts by full values.
    ordered = []
    for run, members in itertools.groupby(keyed, key=lambda pair: codec.truncated_run_prefix(pair[0], 0)):
        texts = [text for _, text in members]
        ordered += texts if run is None else sorted(texts, key=str.encode)
    assert ordered == sorted(strings, key=str.encode)


@given(types_and_rows, st.data())
def test_all_keys_start_with_the_prefix_of_their_first_columns(case, data):
    types, python_rows = case
    codec = KeyCodec(types, reserve=data.draw(st.sampled_from([0, 11, 200])))
    for row in python_rows:
        count = data.draw(st.integers(0, len(row)))
        assert codec.encode_values(row).startswith(codec.encode_prefix(row[:count]))
    count = data.draw(st.integers(1, len(types)))
    prefixes = codec.encode_prefixes(columns(types, python_rows)[:count])
    assert prefixes == [codec.encode_prefix(row[:count]) for row in python_rows]


def test_no_values_of_first_columns_stand_on_both_sides_of_keys_apart():
    texts = ("e", "c" * 122, "d" * 129)
    codec = KeyCodec((t.STRING,) * 5)
    found = list(itertools.product(texts, texts, texts, texts, ("k", "m" * 50)))
    keys = [(codec.encode_values(row), row[:4]) for row in found]
    for row in found:
        end = after(codec.encode_apart([pa.array([value]) for value in row[:4]]))
        assert not {first for key, first in keys if key < end} & {first for key, first in keys if key >= end}


@given(types_and_rows)
def test_components_are_found(case):
    types, python_rows = case
    codec = KeyCodec(types)
    for row in python_rows:
        key, start = codec.encode_values(row), 0
        for i, sql_type in enumerate(types):
            end = codec.component_end(key, i)
            if key[start] == 0xFF:
                assert end == len(key)
                break
            assert key[start:end] == KeyCodec((sql_type,)).encode_values((row[i],))
            start = end
        assert end == len(key)


def test_a_key_that_is_too_long_keeps_its_first_columns_and_hashes_the_rest():
    codec = KeyCodec((t.STRING, t.STRING, t.STRING, t.STRING, t.STRING), reserve=11)
    row = tuple(letter * 120 for letter in "abcde")
    key = codec.encode_values(row)
    assert len(key) <= 500
    assert key.startswith(codec.encode_prefix(row[:3]))
    assert codec.component_end(key, 2) == 3 * 123
    assert codec.component_end(key, 3) == codec.component_end(key, 4) == len(key) == 3 * 123 + 17
    assert [codec.is_truncated_at(key, i) for i in range(5)] == [False, False, False, True, True]
    assert codec.truncated_run_prefix(key, 4) == key[: 3 * 123]
    assert key != codec.encode_values((*row[:4], "e" * 119 + "f"))
    assert codec.encode([pa.array([value]) for value in row]) == [key]
    assert codec.encode_prefixes([pa.array([value]) for value in row[:4]]) == [key[: 3 * 123]]
    assert codec.encode_prefix(row[:4]) == key[: 3 * 123]


def test_a_truncated_component_keeps_128_bytes():
    codec = KeyCodec((t.STRING, t.BIGINT))
    key = codec.encode_values(("é" * 100, 7))
    assert codec.truncated_run_prefix(key, 0) == b"\x01" + ("é" * 64).encode()
    assert codec.is_truncated_at(key, 0)
    assert not codec.is_truncated_at(key, 1)
    assert codec.component_end(key, 0) == 1 + 128 + 2 + 16


@given(st.lists(values(t.STRING), min_size=1, max_size=20), st.integers(0, 5))
def test_slices_of_columns_encode_as_their_values(strings, start):
    sliced = pa.array([None, "\0skipped", *strings]).slice(2).slice(min(start, len(strings)))
    codec = KeyCodec((t.STRING,))
    assert codec.encode([sliced]) == [codec.encode_values((s,)) for s in sliced.to_pylist()]


@pytest.mark.parametrize(
    ("sql_type", "value", "code"),
    [
        (t.BIGINT, "7", "WRONG_TYPE"),
        (t.BIGINT, True, "WRONG_TYPE"),
        (t.BIGINT, 1 << 63, "VALUE_OUT_OF_RANGE"),
        (t.TINYINT, 128, "VALUE_OUT_OF_RANGE"),
        (t.STRING, b"x", "WRONG_TYPE"),
        (t.STRING, "\ud800", "WRONG_TYPE"),
        (t.BINARY, "x", "WRONG_TYPE"),
        (t.BOOLEAN, 1, "WRONG_TYPE"),
        (t.DATE, datetime(2020, 1, 1, tzinfo=UTC), "WRONG_TYPE"),
        (t.TIMESTAMP, date(2020, 1, 1), "WRONG_TYPE"),
        (t.TIMESTAMP_NTZ, datetime(2020, 1, 1, tzinfo=UTC), "WRONG_TYPE"),
        (t.decimal(5, 2), Decimal("1.234"), "VALUE_OUT_OF_RANGE"),
        (t.decimal(5, 2), Decimal("1000"), "VALUE_OUT_OF_RANGE"),
        (t.decimal(5, 2), Decimal("1E+400"), "VALUE_OUT_OF_RANGE"),
        (t.decimal(5, 2), Decimal("NaN"), "WRONG_TYPE"),
        (t.decimal(5, 2), 1.5, "WRONG_TYPE"),
        (t.FLOAT, 1e300, "VALUE_OUT_OF_RANGE"),
        (t.DOUBLE, "x", "WRONG_TYPE"),
        (t.array(t.INT), "x", "WRONG_TYPE"),
        (t.struct(a=t.INT), {"b": 1}, "WRONG_TYPE"),
        (t.VOID, 1, "WRONG_TYPE"),
    ],
)
def test_values_that_do_not_fit_are_refused(sql_type, value, code):
    with pytest.raises(InputError) as caught:
        KeyCodec((sql_type,)).encode_values((value,))
    assert caught.value.code == code


def test_maps_and_wrong_lengths_are_refused():
    with pytest.raises(InputError, match="MAP_KEY"):
        KeyCodec((t.array(t.map_of(t.INT, t.INT)),))
    with pytest.raises(InputError, match="WRONG_KEY_LENGTH"):
        KeyCodec((t.INT,)).encode_values((1, 2))
    with pytest.raises(InputError, match="WRONG_KEY_LENGTH"):
        KeyCodec((t.INT,)).encode_prefix((1, 2))


def test_a_codec_travels_between_processes():
    codec = pickle.loads(pickle.dumps(KeyCodec((t.STRING, t.decimal(10, 2)), reserve=11)))
    assert codec.reserve == 11
    assert codec.encode_values(("a", Decimal("1.50"))) == KeyCodec(codec.types).encode_values(("a", Decimal("1.5")))
