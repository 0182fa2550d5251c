"""Whether two engines give one answer: their rows as bags, numbers within the rounding of an average."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

# Spark's averages of decimals have six digits behind the point, DuckDB's are doubles.
_TOLERANCE = 2e-6
_SHOWN_MAX = 5


def differences(left: pa.Table, right: pa.Table, tolerance: float = _TOLERANCE) -> list[str]:
    """Return in words where the answers differ, some places at most; nothing where they agree.

    Args:
        left: one answer; the order of its rows does not count, that of its columns does.
        right: the other, whose types may be other ones of the same kind.
        tolerance: how far numbers may lie apart, absolutely and relatively.
    """
    if len(left) != len(right) or left.num_columns != right.num_columns:
        return [f"{len(left)} × {left.num_columns} against {len(right)} × {right.num_columns} rows × columns"]
    if _are_equal(left, right):
        return []
    found = []
    for one, other in zip(_rows(left), _rows(right), strict=True):
        if not all(_same(x, y, tolerance) for x, y in zip(one, other, strict=True)):
            found.append(f"{one} against {other}")
    return found[:_SHOWN_MAX]


def _are_equal(left: pa.Table, right: pa.Table) -> bool:
    """Return whether all rows are exactly equal in the right side's types: much quicker than looking at each."""
    try:
        same = left.rename_columns(right.column_names).cast(right.schema)
    except pa.ArrowInvalid:
        return False
    order = [(name, "ascending") for name in right.column_names]
    return bool(same.sort_by(order).equals(right.sort_by(order)))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows in the order of what is exact first: digits behind the point must not change the order."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    places = sorted(range(len(columns)), key=lambda place: any(map(_is_inexact, columns[place])))
    rows = zip(*columns, strict=True)
    return sorted(rows, key=lambda row: [_sort_key(row[place]) for place in places])


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _sort_key(value: Any) -> tuple[bool, float, str]:
    return (value is None, value, "") if isinstance(value, float) else (value is None, 0.0, str(value))


def _is_inexact(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)
