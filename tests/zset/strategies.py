"""Types, values and rows with the awkward ones among them, and Spark's order of them."""

import functools
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from viewkeeper.zset import schema as t
from viewkeeper.zset.schema import INTEGER_BITS, SqlType
from viewkeeper.zset.values import from_raw_list, to_raw

_FLOATS = [0.0, -0.0, 1.5, -1.5, float("nan"), -float("nan"), float("inf"), -float("inf"), 5e-324, 1e300, -1e16]
_TEXTS = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0b",
    "aÿ",
    "ab",
    "\x01",
    "é",
    "日本",
    "\U0001f600",
    "NULL",
    " x ",
    "|",
    '"',
    "#",
    "x" * 127,
]
_LONG = ["x" * 128, "x" * 129, "x" * 128 + "\0", "x" * 300, "\0" * 200, "\0" * 128, "é" * 100]

leaf_types = st.sampled_from(
    [
        t.BOOLEAN,
        t.TINYINT,
        t.SMALLINT,
        t.INT,
        t.BIGINT,
        t.FLOAT,
        t.DOUBLE,
        t.STRING,
        t.BINARY,
        t.DATE,
        t.TIMESTAMP,
        t.TIMESTAMP_NTZ,
        t.INTERVAL_DAY_TIME,
        t.decimal(5, 2),
        t.decimal(18, 0),
        t.decimal(38, 10),
        t.decimal(38, 38),
        t.VOID,
    ]
)
_key_leaves = leaf_types.filter(lambda x: x.name != "VOID")


def _containers(inner):
    struct = st.lists(inner, min_size=1, max_size=3).map(
        lambda children: SqlType(
            "STRUCT", children=tuple(children), field_names=tuple(f"f{i}" for i in range(len(children)))
        )
    )
    return inner.map(t.array) | struct


key_types = st.recursive(leaf_types, _containers, max_leaves=4)
any_types = st.recursive(
    leaf_types, lambda inner: _containers(inner) | st.builds(t.map_of, _key_leaves, inner), max_leaves=4
)


@functools.cache
def values(sql_type, nullable=True):
    """Python values of a type, as users pass them."""
    strategy = _values(sql_type)
    return st.none() | strategy if nullable else strategy


def _values(sql_type):
    name = sql_type.name
    if name in INTEGER_BITS:
        limit = 1 << (INTEGER_BITS[name] - 1)
        return st.sampled_from([-limit, limit - 1, 0, 1, -1, 7]) | st.integers(-limit, limit - 1)
    if name == "FLOAT":
        return st.sampled_from([x for x in _FLOATS if abs(x) not in (1e300, 1e16, 5e-324)]) | st.floats(width=32)
    if name == "DOUBLE":
        return st.sampled_from(_FLOATS) | st.floats()
    if name == "DECIMAL":
        limit = 10**sql_type.precision - 1
        raw = st.sampled_from([0, 1, -1, limit, -limit]) | st.integers(-limit, limit)
        return raw.map(lambda x: Decimal(f"{x}E-{sql_type.scale}"))
    return {
        "BOOLEAN": st.booleans(),
        "STRING": st.sampled_from(_TEXTS + _LONG) | st.text(st.characters(codec="utf-8"), max_size=20),
        "BINARY": st.sampled_from([x.encode() for x in _TEXTS + _LONG] + [b"\xff", b"\xff\0"]) | st.binary(max_size=20),
        "DATE": st.sampled_from([date.min, date.max, date(1970, 1, 1), date(1969, 12, 31)]) | st.dates(),
        "TIMESTAMP": st.sampled_from([datetime.min, datetime.max]).map(lambda x: x.replace(tzinfo=UTC))
        | st.datetimes(timezones=st.just(UTC)),
        "TIMESTAMP_NTZ": st.sampled_from([datetime.min, datetime.max]) | st.datetimes(),
        "INTERVAL_DAY_TIME": st.timedeltas(timedelta(days=-100_000_000), timedelta(days=100_000_000)),
        "VOID": st.none(),
        "ARRAY": st.lists(values(sql_type.children[0]), max_size=3) if sql_type.children else st.nothing(),
        "MAP": _maps(sql_type) if name == "MAP" else st.nothing(),
        "STRUCT": st.tuples(*map(values, sql_type.children)).map(
            lambda items: dict(zip(sql_type.field_names, items, strict=True))
        ),
    }[name]


def _maps(sql_type):
    # Python finds −0.0 and 0.0, and each NaN, as dictionaries do; that is not what is tested here.
    keys = values(sql_type.children[0], nullable=False)
    if sql_type.children[0].is_floating:
        keys = keys.filter(lambda x: x != 0 and not math.isnan(x))
    return st.dictionaries(keys, values(sql_type.children[1]), max_size=3)


def column(sql_type, python_values):
    """The Arrow column of Python values."""
    convert = to_raw(sql_type)
    return from_raw_list([None if v is None else convert(v) for v in python_values], sql_type)


def rows(types, max_size=6):
    """Lists of rows of Python values."""
    return st.lists(st.tuples(*map(values, types)), min_size=1, max_size=max_size)


def columns(types, python_rows):
    return [column(sql_type, [row[i] for row in python_rows]) for i, sql_type in enumerate(types)]


def batch(types, python_rows, names=None):
    arrays = columns(types, python_rows)
    names = names or [f"c{i}" for i in range(len(types))]
    fields = [pa.field(name, t.to_arrow_type(sql_type)) for name, sql_type in zip(names, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def spark_order(sql_type, value):
    """A Python value that sorts as Spark sorts ``value``: NULL first, NaN last, −0.0 = 0.0, strings by UTF-8 bytes."""
    if value is None:
        return (0,)
    if sql_type.is_floating:
        return (1, (1, 0.0) if math.isnan(value) else (0, value + 0.0))
    if sql_type.name == "STRING":
        return (1, value.encode())
    if sql_type.name == "ARRAY":
        return (1, [spark_order(sql_type.children[0], item) for item in value])
    if sql_type.name == "STRUCT":
        pairs = zip(sql_type.children, sql_type.field_names, strict=True)
        return (1, [spark_order(child, value[name]) for child, name in pairs])
    return (1, value)


def same(sql_type, left, right):
    """Whether two Python values are one row content: NaN is NaN, −0.0 is not 0.0."""
    if left is None or right is None:
        return left is right
    if sql_type.is_floating:
        return (math.isnan(left) and math.isnan(right)) or (left, math.copysign(1, left)) == (
            right,
            math.copysign(1, right),
        )
    if sql_type.name == "ARRAY":
        return len(left) == len(right) and all(
            same(sql_type.children[0], a, b) for a, b in zip(left, right, strict=True)
        )
    if sql_type.name == "STRUCT":
        return all(
            same(child, left[n], right[n]) for child, n in zip(sql_type.children, sql_type.field_names, strict=True)
        )
    if sql_type.name == "MAP":
        return list(left) == list(right) and all(same(sql_type.children[1], left[k], right[k]) for k in left)
    if sql_type.name == "DECIMAL":
        return left.as_tuple() == right.as_tuple()
    return left == right
