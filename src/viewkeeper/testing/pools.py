"""The values of drawn scripts: small pools, one a type and script, so that keys meet and joins find partners.

A pool holds ordinary values and, sometimes, what breaks things: the ends of a type's range, NaN, −0.0, empty and very
long texts that differ only behind their common beginning, 0x00.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.evolution import widened
from viewkeeper.testing.scripts import comparable

_LONG = "x" * 128
_EARLY, _LATE = map(datetime.fromisoformat, ("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"))
_MOMENTS = tuple(
    map(datetime.fromisoformat, ("2024-02-29T12:00:00", "1970-01-01T00:00:00", "2024-03-31T02:30:00.000001"))
)
_TEXTS = ("a", "b", "", "é", "12", " 7", "x", "2024-02-29")

# Per SQL type: its class, ordinary values, awkward ones.
TYPES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "TINYINT": ("integer", (0, 1, 2, -1, 7), (127, -128)),
    "SMALLINT": ("integer", (0, 1, 2, -1, 7), (32767, -32768)),
    "INT": ("integer", (0, 1, 2, -1, 7), (2147483647, -2147483648)),
    "BIGINT": ("integer", (0, 1, 2, -1, 7), (9223372036854775807, -9223372036854775808)),
    "DECIMAL(5,2)": ("decimal", (Decimal("0.00"), Decimal("1.25"), Decimal("-2.00")), (Decimal("999.99"),)),
    "DECIMAL(18,0)": ("decimal", (Decimal(0), Decimal(1), Decimal(10)), (Decimal("-999999999999999999"),)),
    "DECIMAL(38,10)": (
        "decimal",
        (Decimal("0.0000000001"), Decimal("1.2500000000")),
        (Decimal(f"{'9' * 28}.{'9' * 10}"),),
    ),
    "FLOAT": ("floating", (0.0, 0.5, -1.0, 2.0), (-0.0, float("nan"), float("inf"), 16777216.0)),
    "DOUBLE": (
        "floating",
        (0.0, 0.5, -1.0, 0.1),
        (-0.0, float("nan"), float("inf"), float("-inf"), 1e300, -1e16, 5e-324),
    ),
    "STRING": ("string", _TEXTS, ("\0", "a\0", "日本", "\U0001f600", _LONG + "1", _LONG + "2", _LONG, "é" * 100)),
    "BINARY": ("binary", (b"", b"a", b"b"), (b"\0", b"\0\0", b"\xff", b"x" * 200, b"x" * 201)),
    "BOOLEAN": ("boolean", (True, False), ()),
    "DATE": ("date", (date(2024, 2, 29), date(1970, 1, 1)), (date.min, date.max)),
    "TIMESTAMP": (
        "timestamp",
        tuple(m.replace(tzinfo=UTC) for m in _MOMENTS),
        (_EARLY.replace(tzinfo=UTC), _LATE.replace(tzinfo=UTC)),
    ),
    "TIMESTAMP_NTZ": ("timestamp_ntz", _MOMENTS, (_EARLY, _LATE)),
}
# What holds values: of columns outside the key.
NESTED_TYPES: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "ARRAY<INT>": ("integers", ([1, 2], [], [2, None, -1]), ([0] * 70,)),
    "ARRAY<STRING>": ("strings", (["a", "b"], [], ["12", None]), (["", _LONG + "1"], ["\0"])),
    "MAP<STRING, INT>": ("mapping", ({"a": 1}, {}, {"b": 2, "a": None}), ({"": 7, "é": 0},)),
    "STRUCT<a: INT, b: STRING>": ("structure", ({"a": 1, "b": "a"}, {"a": None, "b": "12"}), ({"a": 0, "b": _LONG},)),
}
ALL_TYPES = {**TYPES, **NESTED_TYPES}
DUCKDB_TYPES = frozenset(("TINYINT", "SMALLINT", "INT", "BIGINT", "STRING", "BOOLEAN", "DATE"))
_OF_TIME = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_MAX_KEY_VALUES = 4


@dataclass(frozen=True)
class Pool:
    """The values of one type; those for keys are all different as keys."""

    values: tuple[Any, ...]
    keys: tuple[Any, ...]


def drawn_pool(choices: Choices, kind: str, time_zone: str) -> Pool:
    """Return some values of a type; none that leaves the years of Python in another zone than UTC."""
    _, ordinary, awkward = ALL_TYPES[kind]
    if time_zone != "UTC" and kind in _OF_TIME:
        awkward = ()
    chosen = choices.some(ordinary, 1, 4)
    if awkward and choices.chance(40):
        chosen += choices.some(awkward, 1, 3)
    return Pool(tuple(chosen), ()) if kind in NESTED_TYPES else _pool_of(chosen)


def wider_pool(pool: Pool, kind: str) -> Pool:
    """Return the values of a narrower type, and what only the wider one holds."""
    more = () if kind in _OF_TIME else TYPES[kind][2]
    return _pool_of([*(widened(value, kind) for value in pool.values), *more])


def _pool_of(values: list[Any]) -> Pool:
    keys = {comparable(value): value for value in values}
    return Pool(tuple(values), tuple(list(keys.values())[:_MAX_KEY_VALUES]))
