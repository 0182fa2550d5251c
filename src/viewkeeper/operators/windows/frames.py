"""Frames: which sorted rows a window function sees from each row, as ranges [start, stop) of places.

ROWS counts places. RANGE with a distance compares values: each order column becomes integers that sort as it does
(``_Ruler``), and the bounds are found by bisection in the partition's non-NULL run. A NULL sees its peers. Distances
are added without overflow: beyond the type's range there is simply no row. A distance of the calendar moves each value
as ``+`` does. Where clocks go back, a later row may so have an earlier bound: as in Spark, bounds never turn back then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.registry import resolve
from viewkeeper.expressions.tree import ColumnRef, Literal, Session
from viewkeeper.operators.windows.call import Bound, CalendarDistance, Call
from viewkeeper.operators.windows.partitions import Int64Array, Partitions
from viewkeeper.zset.buffers import float_bits, raw_values
from viewkeeper.zset.schema import SqlType
from viewkeeper.zset.sort_keys import OrderItem

_LOWEST, _HIGHEST, _LOW_WORD = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


@dataclass(frozen=True)
class Frames:
    """The frame of each row; empty where ``start`` equals ``stop``."""

    start: Int64Array
    stop: Int64Array

    @property
    def lengths(self) -> Int64Array:
        """How many rows each frame has."""
        return self.stop - self.start


def frames_of(call: Call, parts: Partitions, types: Sequence[SqlType], order: Sequence[OrderItem]) -> Frames:
    """Return the frames of ``call`` over sorted rows.

    Args:
        call: the function with its bounds.
        parts: the rows.
        types: their columns' types.
        order: the window's order.
    """
    if call.unit == "rows":
        start = parts.start if call.start is None else parts.place - _integer(call.start)
        stop = parts.stop if call.stop is None else parts.place + _integer(call.stop) + 1
    else:
        start, stop = _range_bounds(call, parts, types, order)
    start = np.clip(start, parts.start, parts.stop)
    return Frames(start, np.maximum(np.clip(stop, parts.start, parts.stop), start))


def _integer(bound: Bound) -> int:
    assert isinstance(bound, int)
    return bound


def _range_bounds(
    call: Call, parts: Partitions, types: Sequence[SqlType], order: Sequence[OrderItem]
) -> tuple[Int64Array, Int64Array]:
    if not call.start and not call.stop:
        start = parts.start if call.start is None else parts.peers_start
        return start, parts.stop if call.stop is None else parts.peers_stop
    item = order[0]
    ruler = _Ruler(parts.rows.rows.column(item.column), types[item.column], item.ascending)
    start = parts.start if call.start is None else ruler.bisected(parts, call.start, before=True)
    return start, parts.stop if call.stop is None else ruler.bisected(parts, call.stop, before=False)


class _Ruler:
    """The single order column of a RANGE frame with a distance.

    Args:
        column: its values, sorted within partitions.
        sql_type: their type.
        ascending: how they are sorted.
    """

    def __init__(self, column: pa.Array, sql_type: SqlType, ascending: bool) -> None:
        self._column, self._type = column, sql_type
        self._null = column.is_null().to_numpy(zero_copy_only=False)
        self._sign = 1 if ascending else -1
        self._values: npt.NDArray[Any]
        if sql_type.is_floating:
            self._values = raw_values(column)
        elif sql_type.name == "DECIMAL":
            pairs = raw_values(column).tolist()
            unscaled = [(high << 64) + (low & _LOW_WORD) for low, high in pairs]
            self._values = np.array([*unscaled, None], dtype=object)[:-1]
        else:
            self._values = raw_values(column).astype(np.int64)
        self._scale = 10**sql_type.scale if sql_type.name == "DECIMAL" else 1

    def bisected(self, parts: Partitions, distance: Bound, before: bool) -> Int64Array:
        """Return for each row where its frame starts (``before``) or stops, at ``distance`` from its value."""
        targets = self._ordered(self._moved(distance, -self._sign if before else self._sign))
        values = self._ordered(self._values)
        found: Int64Array = (parts.peers_start if before else parts.peers_stop).copy()
        edges = np.r_[np.flatnonzero(parts.new_partition), parts.count]
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            present = np.flatnonzero(~self._null[first:last])
            if len(present):
                low, high = first + int(present[0]), first + int(present[-1]) + 1
                found[low:high] = low + np.searchsorted(
                    values[low:high], targets[low:high], "left" if before else "right"
                )
        return np.maximum.accumulate(found) if isinstance(distance, CalendarDistance) else found

    def _moved(self, distance: Bound, sign: int) -> npt.NDArray[Any]:
        if isinstance(distance, CalendarDistance):
            return self._by_calendar(distance if sign > 0 else -distance)
        if self._values.dtype.kind == "f":
            assert isinstance(distance, int | float | Decimal)
            with np.errstate(all="ignore"):
                return np.asarray(self._values + self._values.dtype.type(sign * float(distance)))
        if self._values.dtype == object:
            assert isinstance(distance, int | Decimal)
            return np.asarray(self._values + sign * int(distance * self._scale), dtype=object)
        assert isinstance(distance, int)
        if abs(distance) > _HIGHEST:
            return np.full(len(self._values), _HIGHEST if sign * distance > 0 else _LOWEST)
        step = np.int64(sign * distance)
        with np.errstate(all="ignore"):
            moved = self._values + step
        if step >= 0:
            return np.where(moved < self._values, np.int64(_HIGHEST), moved)
        return np.where(moved > self._values, np.int64(_LOWEST), moved)

    def _by_calendar(self, distance: CalendarDistance) -> Int64Array:
        session = Session(distance.time_zone)
        interval = Literal(distance.count, distance.unit)
        moved = resolve("+", [ColumnRef(0, self._type), interval], session)
        result = evaluate(moved, pa.RecordBatch.from_arrays([self._column], names=["value"]), session)
        values = raw_values(result.values).astype(np.int64)
        if result.errors is None:
            return values
        return np.where(result.errors.rows, np.int64(_HIGHEST if distance.count > 0 else _LOWEST), values)

    def _ordered(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return integers that ascend as the sorted column does."""
        if values.dtype.kind == "f":
            bits = float_bits(values, equal_zeros=True)
            lowest = np.iinfo(bits.dtype).min
            values = np.where(bits < 0, ~bits ^ lowest, bits)
        if self._sign > 0:
            return values
        return np.asarray(-values - 1, dtype=object) if values.dtype == object else ~values
