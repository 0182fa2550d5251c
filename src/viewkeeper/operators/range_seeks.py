"""Rows that look for a range of stored rows: from conditions like ``t BETWEEN lo AND hi`` to spans of state keys.

The spans may hold more than the conditions let through (never less): the join judges the conditions on what is found.
Spans of one lookup that overlap are read once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.matching import expand
from viewkeeper.operators.range_order import failing
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import KeyCodec, after

Positions = npt.NDArray[np.int64]

# A component begins with 00 (NULL) or 01: the first and last places of rows, and of rows with a value, under a prefix.
_FIRST, _FIRST_VALUE, _LAST = b"\x00", b"\x01", b"\x02"
_IN_ORDER, _APART = b"\x01\x00", b"\x01\x01"


@dataclass(frozen=True)
class Bound:
    """One end of a range: the ordering value stands in ``function`` (``lt``, ``le``, ``gt``, ``ge``) to ``value``.

    Args:
        function: the comparison.
        value: over the row that looks. Where it is NULL nothing is found; where it fails the end is open.
    """

    function: str
    value: Expression

    @property
    def is_lower(self) -> bool:
        """Whether it is the range's lower end."""
        return self.function in ("gt", "ge")


@dataclass(frozen=True)
class Seek:
    """How the rows of one side look in the arrangement of the other, which has an order.

    Args:
        bounds: the ends of the range; of several on one side the narrowest counts.
        checks: over the row that looks: where one of them fails, all rows of its key are looked at.
        session: time zone and ANSI mode.
    """

    bounds: tuple[Bound, ...]
    checks: tuple[Expression, ...]
    session: Session


@dataclass(frozen=True)
class Spans:
    """Ranges of keys, and the row that looks for each."""

    owners: list[int]
    starts: list[bytes]
    stops: list[bytes]

    def add(self, owner: int, start: bytes, stop: bytes) -> None:
        """Add start <= key < stop; nothing where that is empty."""
        if start < stop:
            self.owners.append(owner)
            self.starts.append(start)
            self.stops.append(stop)

    def united(self) -> list[tuple[bytes, bytes]]:
        """Return disjoint ranges of all keys, ascending."""
        found: list[tuple[bytes, bytes]] = []
        for start, stop in sorted(zip(self.starts, self.stops, strict=True)):
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(stop, found[-1][1]))
            else:
                found.append((start, stop))
        return found

    def matches(self, keys: Sequence[bytes]) -> tuple[Positions, Positions]:
        """Return the pairs (row that looks, position in the ascending ``keys``)."""
        starts = [bisect_left(keys, start) for start in self.starts]
        stops = [bisect_left(keys, stop, low) for stop, low in zip(self.stops, starts, strict=True)]
        span, at = expand(np.array(starts, np.int64), np.array(stops, np.int64))
        return np.array(self.owners, np.int64)[span], at


def look_up_range(
    delta: Delta, columns: tuple[int, ...], seek: Seek, arrangement: Arrange, context: StepContext
) -> tuple[pa.RecordBatch, Positions, Positions]:
    """Return the stored rows in the ranges of ``delta``, and the pairs as (position in delta, position in rows).

    Args:
        delta: the rows that look.
        columns: positions of their join key.
        seek: their ranges.
        arrangement: where they look.
        context: for the lookups.
    """
    spans = spans_of(delta, columns, seek, arrangement)
    keys: list[bytes] = []
    values: list[bytes] = []
    for start, stop in spans.united():
        for key, value in context.lookups.scan(arrangement.state, start, stop):
            keys.append(key)
            values.append(value)
    return arrangement.row_codec.decode(values), *spans.matches(keys)


def pairs_in_range(
    delta: Delta, columns: tuple[int, ...], seek: Seek, others: Delta, arrangement: Arrange
) -> tuple[Positions, Positions]:
    """Return the pairs (position in delta, in others) that ``look_up_range`` would find, were ``others`` stored."""
    keys = arrangement.range_keys(others)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    matches, at = spans_of(delta, columns, seek, arrangement).matches([keys[i] for i in order])
    return matches, np.array(order, np.int64)[at]


def spans_of(delta: Delta, columns: tuple[int, ...], seek: Seek, arrangement: Arrange) -> Spans:
    """Return the ranges of state keys in which the rows of ``delta`` look."""
    spans = Spans([], [], [])
    order = arrangement.order
    assert order is not None, "only an arrangement with an order has ranges"
    if not delta.num_rows:
        return spans
    prefixes = [b""] * delta.num_rows
    if columns:
        prefixes = arrangement.key_codec.encode_prefixes([delta.rows.column(c) for c in columns])
    lows, highs = _ends(delta, seek, KeyCodec((order.value.type,)))
    has_apart = bool(order.checks)
    looks_at_all = failing(seek.checks, delta.rows, seek.session).tolist()
    for row, (prefix, low, high, everywhere) in enumerate(zip(prefixes, lows, highs, looks_at_all, strict=True)):
        if everywhere:
            spans.add(row, prefix + _FIRST, prefix + _LAST)
        elif has_apart:
            spans.add(row, prefix + _IN_ORDER + low, prefix + _IN_ORDER + high)
            spans.add(row, prefix + _APART, prefix + _LAST)
        else:
            spans.add(row, prefix + low, prefix + high)
    return spans


def _ends(delta: Delta, seek: Seek, codec: KeyCodec) -> tuple[list[bytes], list[bytes]]:
    """Return for each row where its range of ordering values starts and stops."""
    lows, highs = [_FIRST_VALUE] * delta.num_rows, [_LAST] * delta.num_rows
    for bound in seek.bounds:
        result = evaluate(bound.value, delta.rows, seek.session)
        ends = [_end(component, bound, codec) for component in codec.encode([result.values])]
        if result.errors is not None:
            open_end = _FIRST_VALUE if bound.is_lower else _LAST
            ends = [open_end if fails else end for end, fails in zip(ends, result.errors.rows.tolist(), strict=True)]
        if bound.is_lower:
            lows = list(map(max, lows, ends))
        else:
            highs = list(map(min, highs, ends))
    return lows, highs


def _end(component: bytes, bound: Bound, codec: KeyCodec) -> bytes:
    """Return where a range starts, or stops, that ends at the value of ``component``."""
    if component == _FIRST:
        return _LAST if bound.is_lower else _FIRST_VALUE
    # Long values with the same beginning do not stand in their order: all of them are looked at.
    run = codec.truncated_run_prefix(component, 0)
    if run is None and bound.function in ("ge", "lt"):
        return component
    if run is not None and bound.is_lower:
        return run
    behind = after(component if run is None else run)
    assert behind is not None, "components begin with 00 or 01"
    return behind
