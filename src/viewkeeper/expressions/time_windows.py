"""The windows of time that a moment falls into: one, or several that overlap.

Windows are counted in microseconds since 1970, which no time zone and no daylight saving time shifts: by Spark's
``window``, midnights of a zone begin no day but by its third duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.expressions.dates import in_range
from viewkeeper.expressions.function import always, kernel, make
from viewkeeper.expressions.tree import Call, Expression
from viewkeeper.expressions.vectors import Evaluated, Operand, Vector, as_array, merge, numbers, validity
from viewkeeper.zset.schema import SqlType, array, struct, to_arrow_type

WINDOW = "time_window"
WINDOWS = "time_windows"
BETWEEN = "window_between"


@dataclass(frozen=True)
class WindowSpec:
    """Windows of one length that begin at equal distances.

    Args:
        size: how long each is, in microseconds.
        slide: how far the beginnings of two are apart, at most ``size``.
        offset: when one of them begins, in microseconds since 1970.
    """

    size: int
    slide: int
    offset: int = 0

    @property
    def overlapping(self) -> int:
        """Into how many windows a moment falls at most."""
        return -(-self.size // self.slide)


def window_type(moment: SqlType) -> SqlType:
    """Return the type of a window of moments of a type."""
    return struct(start=moment, end=moment)


def window_of(moment: Expression, spec: WindowSpec) -> Call:
    """Return the one window of ``moment``; ``spec`` has no others that overlap it."""
    return make(WINDOW, [moment], window_type(moment.type), size=spec.size, slide=spec.slide, offset=spec.offset)


def windows_of(moment: Expression, spec: WindowSpec) -> Call:
    """Return all windows of ``moment`` as an ARRAY, the latest first."""
    kind = array(window_type(moment.type))
    return make(WINDOWS, [moment], kind, size=spec.size, slide=spec.slide, offset=spec.offset)


def window_between(start: Expression, end: Expression) -> Call:
    """Return the window that begins and ends then; neither is NULL."""
    return make(BETWEEN, [start, end], window_type(start.type), False)


def spec_of(call: Call) -> WindowSpec:
    """Return the windows that a call of ours makes."""
    size, slide, offset = (call.option(name) for name in ("size", "slide", "offset"))
    assert isinstance(size, int)
    assert isinstance(slide, int)
    assert isinstance(offset, int)
    return WindowSpec(size, slide, offset)


def _moments(operand: Operand, kind: SqlType, length: int) -> tuple[Vector, Vector]:
    """Return the moments of windows of type ``kind``, 0 for NULLs, and which are none."""
    valid = np.broadcast_to(validity(operand), (length,))
    return np.where(valid, np.broadcast_to(numbers(operand, kind.children[0]), (length,)), 0), valid


def _since_start(moments: Vector, spec: WindowSpec) -> Vector:
    """Return how long after the start of its latest window each moment is."""
    # Taken apart, lest the difference of the two be beyond 64 bits.
    return (moments % spec.slide - spec.offset % spec.slide) % spec.slide


def _structs(starts: Vector, about: Vector, kind: SqlType, spec: WindowSpec) -> Evaluated:
    """Return windows by their starts, each near ``about``; those that end or begin beyond 64 bits have failed."""
    length = len(starts)
    everywhere = np.True_
    with np.errstate(over="ignore"):
        ends = starts + spec.size
    start = in_range(starts, about, kind.children[0], everywhere, length)
    end = in_range(ends, about, kind.children[0], everywhere, length)
    values = pa.StructArray.from_arrays([start.values, end.values], fields=list(to_arrow_type(kind)))
    return Evaluated(values, merge(start.errors, end.errors))


@kernel(BETWEEN, strict="all")
def _window_between(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    ends = [as_array(operand, length) for operand in operands]
    return Evaluated(pa.StructArray.from_arrays(ends, fields=list(to_arrow_type(call.type))))


@kernel(WINDOW, raises=always)
def _time_window(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    spec, kind = spec_of(call), call.type
    moments, valid = _moments(operands[0], kind, length)
    with np.errstate(over="ignore"):
        starts = moments - _since_start(moments, spec)
    made = _structs(starts, moments.astype(np.float64), kind, spec)
    failed = np.zeros(length, bool) if made.errors is None else made.errors.rows
    values = made.values.take(pa.array(np.arange(length), mask=~valid | failed))
    return Evaluated(values, made.errors)


@kernel(WINDOWS, raises=always)
def _time_windows(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    spec, kind = spec_of(call), call.type.children[0]
    moments, valid = _moments(operands[0], kind, length)
    since = _since_start(moments, spec)
    with np.errstate(over="ignore"):
        latest = moments - since
        counts = np.where(valid, (spec.size - since - 1) // spec.slide + 1, 0)
        earliest = latest - (counts - 1) * spec.slide
    about = moments.astype(np.float64)
    # One whose first or last window cannot be told fails as a whole.
    errors = merge(_structs(earliest, about, kind, spec).errors, _structs(latest, about, kind, spec).errors)
    if errors is not None:
        counts = np.where(errors.rows, 0, counts)
        valid = valid & ~errors.rows
    offsets = np.r_[0, np.cumsum(counts)]
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    starts = np.repeat(latest, counts) - within * spec.slide
    elements = _structs(starts, np.repeat(about, counts), kind, spec).values
    made = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, mask=pa.array(~valid))
    return Evaluated(made.cast(to_arrow_type(call.type)), errors)
