"""Rows of every version read as the table is now, in bulk and one by one; types become wider without loss."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zset.strategies import rows
from viewkeeper.zset import schema as t
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.versions import StoredColumn, VersionedRows, can_widen, first_layout, widened_value

WIDER = [
    (t.TINYINT, t.BIGINT, -128, -128),
    (t.INT, t.decimal(12, 2), 2**31 - 1, Decimal("2147483647.00")),
    (t.BIGINT, t.decimal(22, 2), -(2**63), Decimal("-9223372036854775808.00")),
    (t.INT, t.DOUBLE, -7, -7.0),
    (t.FLOAT, t.DOUBLE, 0.5, 0.5),
    (t.decimal(5, 2), t.decimal(38, 20), Decimal("-999.99"), Decimal("-999.99")),
    (t.DATE, t.TIMESTAMP_NTZ, date(9999, 12, 31), datetime(9999, 12, 31)),
    (t.DATE, t.TIMESTAMP_NTZ, date(1, 1, 1), datetime(1, 1, 1)),
]


@pytest.mark.parametrize(("old", "new", "value", "expected"), WIDER)
def test_values_become_wider_without_loss(old, new, value, expected):
    assert can_widen(old, new)
    assert not can_widen(new, old)
    assert widened_value(value, old, new) == expected
    assert widened_value(None, old, new) is None
    for others in ((), (t.STRING,)):
        rest = tuple("s" for _ in others)
        before = VersionedRows((first_layout((old, *others)),), (None,) * (1 + len(others)))
        layouts = (first_layout((old, *others)), first_layout((new, *others)))
        after = VersionedRows(layouts, (None,) * (1 + len(others)))
        stored = [before.encode_values((value, *rest)), after.encode_values((None, *rest))]
        assert [after.decode_values(row) for row in stored] == [(expected, *rest), (None, *rest)]
        assert after.encode(after.decode(stored)) == [after.encode_values((v, *rest)) for v in (expected, None)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (t.INT, t.INT), (t.INT, t.FLOAT), (t.BIGINT, t.DOUBLE), (t.INT, t.decimal(10, 1)), (t.STRING, t.BINARY),
        (t.BIGINT, t.decimal(19, 0)), (t.decimal(5, 2), t.decimal(5, 3)), (t.decimal(5, 2), t.decimal(5, 2)),
        (t.decimal(5, 2), t.DOUBLE), (t.DATE, t.TIMESTAMP), (t.INT, t.STRING), (t.TIMESTAMP_NTZ, t.TIMESTAMP),
    ],
)  # fmt: skip
def test_other_changes_of_type_are_none(old, new):
    assert not can_widen(old, new)


def test_a_default_that_a_reader_changes_is_its_own():
    array = t.array(t.INT)
    one = first_layout((t.INT,))
    rows = VersionedRows((one, (*one, StoredColumn(1, array))), (None, [1, 2]))
    stored = RowCodec((t.INT,), 0).encode_values((7,))
    rows.decode_values(stored)[1].append(3)
    assert rows.decode_values(stored) == (7, [1, 2])


@given(st.data())
def test_columns_come_and_go(data):
    """A random history of ADD and DROP: each row shows what it has, and the default where it was written before."""
    types = (t.INT, t.STRING, t.DOUBLE, t.BOOLEAN)
    layouts = [first_layout((t.INT, t.STRING))]
    written: list[tuple[bytes, dict[int, object]]] = []
    defaults: dict[int, object] = {0: None, 1: None}
    following = 2

    def write() -> None:
        codec = RowCodec([column.type for column in layouts[-1]], len(layouts) - 1)
        for row in data.draw(rows(codec.types, max_size=3)):
            numbers = (column.number for column in layouts[-1])
            written.append((codec.encode_values(row), dict(zip(numbers, row, strict=True))))

    write()
    for _ in range(data.draw(st.integers(1, 5))):
        if len(layouts[-1]) > 1 and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(layouts[-1]))
            layouts.append(tuple(column for column in layouts[-1] if column != gone))
        else:
            added = StoredColumn(following, data.draw(st.sampled_from(types)))
            layouts.append((*layouts[-1], added))
            defaults[following] = data.draw(rows((added.type,), max_size=1))[0][0]
            following += 1
        write()
    now = [column.number for column in layouts[-1]]
    codec = VersionedRows(layouts, [defaults[number] for number in now])
    expected = [codec.encode_values([row.get(n, defaults[n]) for n in now]) for _, row in written]
    stored = [value for value, _ in written]
    assert [codec.encode_values(codec.decode_values(value)) for value in stored] == expected
    assert codec.encode(codec.decode(stored)) == expected
