import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import any_types, batch, leaf_types, rows, same
from viewkeeper.errors import InputError, StoreError
from viewkeeper.zset import schema as t
from viewkeeper.zset.rows import RowCodec, is_fixed_width
from viewkeeper.zset.versions import VersionedRows, first_layout

fixed_types = leaf_types.filter(lambda sql_type: is_fixed_width((sql_type,)))
cases = (
    (st.lists(fixed_types, min_size=1, max_size=10) | st.lists(any_types, min_size=1, max_size=4))
    .map(tuple)
    .flatmap(lambda ts: st.tuples(st.just(ts), rows(ts)))
)


def same_row(types, left, right):
    return all(same(*item) for item in zip(types, left, right, strict=True))


@given(cases, st.sampled_from([0, 1, 65_535]))
def test_columns_and_values_give_the_same_bytes(case, version):
    types, python_rows = case
    codec = RowCodec(types, version)
    encoded = codec.encode(batch(types, python_rows))
    assert encoded == [codec.encode_values(row) for row in python_rows]
    assert all(value[:2] == version.to_bytes(2, "little") for value in encoded)


@given(cases)
def test_one_row_comes_back(case):
    types, python_rows = case
    codec = RowCodec(types)
    for row in python_rows:
        assert same_row(types, codec.decode_values(codec.encode_values(row)), row)


@given(cases)
def test_many_rows_come_back_as_columns(case):
    types, python_rows = case
    codec = RowCodec(types)
    encoded = codec.encode(batch(types, python_rows))
    decoded = codec.decode(encoded)
    decoded.validate(full=True)
    assert decoded.schema == batch(types, python_rows).schema
    assert codec.encode(decoded) == encoded
    assert codec.encode(decoded.slice(1)) == encoded[1:]


@given(st.data())
def test_rows_of_older_versions_read_with_defaults(data):
    types = tuple(data.draw(st.lists(any_types | fixed_types, min_size=2, max_size=5)))
    cut = data.draw(st.integers(1, len(types) - 1))
    defaults = data.draw(rows(types, max_size=1))[0]
    old_rows, new_rows = data.draw(rows(types[:cut])), data.draw(rows(types))
    layout = first_layout(types)
    old = VersionedRows((layout[:cut],), defaults[:cut])
    new = pickle.loads(pickle.dumps(VersionedRows((layout[:cut], layout), defaults)))
    mixed = [(old.encode_values(row), (*row, *defaults[cut:])) for row in old_rows]
    mixed += [(new.encode_values(row), row) for row in new_rows]
    mixed = data.draw(st.permutations(mixed))
    decoded = new.decode([value for value, _ in mixed])
    decoded.validate(full=True)
    assert new.encode(decoded) == [new.encode_values(row) for _, row in mixed]
    assert all(same_row(types, new.decode_values(value), row) for value, row in mixed)


@pytest.mark.parametrize("types", [(t.INT, t.BOOLEAN), (t.INT, t.STRING)])
def test_no_rows_are_no_rows(types):
    codec = RowCodec(types)
    empty = codec.decode([])
    assert empty.num_rows == 0
    assert empty.schema.types == [t.to_arrow_type(sql_type) for sql_type in types]
    assert codec.encode(empty) == []


@pytest.mark.parametrize("types", [(t.BIGINT, t.DATE), (t.BIGINT, t.STRING)])
@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0\x93", b"\0\0\x91\x01", b"\0\0garbage"])
def test_damaged_rows_are_reported(types, value):
    codec = RowCodec(types)
    with pytest.raises(StoreError, match="ROW_UNREADABLE"):
        codec.decode([value])
    with pytest.raises(StoreError, match="ROW_UNREADABLE"):
        codec.decode_values(value)


@pytest.mark.parametrize("sql_type", [t.DATE, t.TIMESTAMP, t.decimal(38, 0), t.array(t.DATE), t.struct(a=t.DATE)])
def test_rows_of_other_types_are_reported(sql_type):
    value = RowCodec((t.STRING, t.STRING)).encode_values(("a", "b"))
    codec = RowCodec((sql_type, t.STRING))
    with pytest.raises(StoreError, match="ROW_UNREADABLE"):
        codec.decode([value])
    with pytest.raises(StoreError, match="ROW_UNREADABLE"):
        codec.decode_values(value)


def test_a_version_from_the_future_is_reported():
    codec = VersionedRows((first_layout((t.INT,)),), (None,))
    value = RowCodec((t.INT,), version=3).encode_values((1,))
    with pytest.raises(StoreError, match="schema version 3"):
        codec.decode_values(value)
    with pytest.raises(StoreError, match="schema version 3"):
        codec.decode([value])


def test_wrong_values_are_refused():
    codec = RowCodec((t.INT, t.decimal(5, 2)))
    with pytest.raises(InputError, match="WRONG_ROW_LENGTH"):
        codec.encode_values((1,))
    with pytest.raises(InputError, match="VALUE_OUT_OF_RANGE"):
        codec.encode_values((1, Decimal("1234.5")))


def test_more_rows_than_one_call_reads():
    codec = RowCodec((t.BIGINT, t.STRING))
    columns = [pa.array(range(2000)), pa.array([f"text {i}" for i in range(2000)])]
    assert codec.decode(codec.encode(columns)).columns == columns


def test_a_map_without_types_comes_back():
    codec = RowCodec((t.map_of(t.VOID, t.VOID), t.map_of(t.INT, t.map_of(t.VOID, t.INT))))
    python_rows = [({}, {1: {}}), (None, None)]
    encoded = [codec.encode_values(row) for row in python_rows]
    assert [codec.decode_values(row) for row in encoded] == python_rows
    assert codec.encode(codec.decode(encoded)) == encoded
