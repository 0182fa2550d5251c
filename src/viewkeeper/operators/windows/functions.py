"""Window functions over sorted rows: rankings, offsets, values of frames, extremes and aggregates of frames.

Everything is computed for all rows at once. Aggregates of frames use that partial states add: for k = 0, 1, 2, ... the
states of the 2^k rows from each place are the sums of two states of half as many, and a frame is the disjoint union of
such blocks by the bits of its length. So no state is ever taken away, and a frame of any length costs at most log n
additions. Extremes do the same with two overlapping blocks. Sums of doubles are differences of exact prefix sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.operators.functions import exact_float
from viewkeeper.operators.functions.avg import FloatAverage
from viewkeeper.operators.functions.base import Accumulator, Answer, Rows, StateColumn
from viewkeeper.operators.functions.registry import accumulator
from viewkeeper.operators.functions.sum import FloatSum
from viewkeeper.operators.windows.call import EXTREMES, LISTS, OFFSETS, RANKINGS, VALUES, Call
from viewkeeper.operators.windows.frames import Frames, frames_of
from viewkeeper.operators.windows.partitions import Int64Array, Partitions
from viewkeeper.operators.windows.percentiles import percentiles
from viewkeeper.operators.windows.whole import joined, list_order, modes, ordered_texts, value_ranks
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.schema import SqlType, array, to_arrow_type
from viewkeeper.zset.sort_keys import OrderItem

Bools = npt.NDArray[np.bool_]


def evaluate_call(call: Call, parts: Partitions, types: Sequence[SqlType], order: Sequence[OrderItem]) -> Answer:
    """Return the values of a window function, one a sorted row.

    Args:
        call: the function.
        parts: the rows.
        types: their columns' types.
        order: the window's order.
    """
    if call.function in RANKINGS:
        return Answer(_RANKINGS.get(call.function, _whole_rank)(call, parts))
    if call.function in OFFSETS:
        return Answer(_offset(call, parts))
    frames = frames_of(call, parts, types, order)
    if call.function in VALUES:
        return Answer(_value(call, parts, frames))
    if call.function in EXTREMES:
        return Answer(_extreme(call, parts, frames))
    whole = _of_partitions(call)
    if whole is not None:
        return Answer(whole(call, parts, _counted_places(call, parts, parts.rows.rows.column(call.arguments[0]))))
    if call.function in LISTS:
        return Answer(_listed(call, parts, frames))
    return _aggregate(call, parts, frames)


def _of_partitions(call: Call) -> Callable[[Call, Partitions, Bools], pa.Array] | None:
    """Return how a function of whole partitions, whose values have an order of their own, is computed."""
    if call.function == "listagg" and list_order(call.constants):
        return ordered_texts
    return {"percentile": percentiles, "mode": modes}.get(call.function)


# ---- rankings ----


def _whole_rank(call: Call, parts: Partitions) -> pa.Array:
    return pa.array(parts.ranks(call.function).astype(np.int32))


def _percent_rank(call: Call, parts: Partitions) -> pa.Array:
    others = parts.stop - parts.start - 1
    return pa.array(np.where(others > 0, (parts.ranks("rank") - 1) / np.maximum(others, 1), 0.0))


def _cume_dist(call: Call, parts: Partitions) -> pa.Array:
    return pa.array((parts.peers_stop - parts.start) / (parts.stop - parts.start))


def _ntile(call: Call, parts: Partitions) -> pa.Array:
    """The first buckets have one row more where the rows cannot be shared evenly."""
    size, more = np.divmod(parts.stop - parts.start, _number(call))
    place = parts.place - parts.start
    large = more * (size + 1)
    number = np.where(place < large, place // (size + 1), more + (place - large) // np.maximum(size, 1))
    return pa.array((number + 1).astype(np.int32))


_RANKINGS: dict[str, Callable[[Call, Partitions], pa.Array]] = {
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
}


# ---- values of other rows ----


def _number(call: Call) -> int:
    """Return the constant of NTILE, LAG, LEAD and NTH_VALUE."""
    number = call.constants[0]
    assert isinstance(number, int)
    return number


def _taken(column: pa.Array, at: Int64Array, exists: Bools) -> pa.Array:
    return column.take(pa.array(np.where(exists, at, 0), mask=~exists))


def _present(column: pa.Array) -> Int64Array:
    """Return the places of the values that are not NULL."""
    return np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))


def _offset(call: Call, parts: Partitions) -> pa.Array:
    column = parts.rows.rows.column(call.arguments[0])
    distance = _number(call)
    if call.function == "lag":
        distance = -distance
    at: Int64Array = parts.place + distance
    if call.ignore_nulls and distance:
        present = _present(column)
        here = np.searchsorted(present, parts.place, "right" if distance > 0 else "left")
        wanted = here + (distance - 1 if distance > 0 else distance)
        outside = np.full(parts.count, -1, np.int64)
        inside = (wanted >= 0) & (wanted < len(present))
        outside[inside] = present[wanted[inside]]
        at = outside
    exists = (at >= parts.start) & (at < parts.stop)
    values = _taken(column, at, exists)
    if len(call.arguments) == 1:
        return values
    return pc.if_else(pa.array(exists), values, parts.rows.rows.column(call.arguments[1]))


def _value(call: Call, parts: Partitions, frames: Frames) -> pa.Array:
    column = parts.rows.rows.column(call.arguments[0])
    number = _number(call) - 1 if call.function == "nth_value" else 0
    kept = np.ones(parts.count, dtype=bool)
    if call.ignore_nulls:
        kept &= column.is_valid().to_numpy(zero_copy_only=False)
    if call.filter is not None:
        kept &= _chosen(parts, call.filter)
    candidates = np.flatnonzero(kept)
    if call.function == "last_value":
        wanted = np.searchsorted(candidates, frames.stop) - 1
    else:
        wanted = np.searchsorted(candidates, frames.start) + min(number, parts.count)
    inside = (wanted >= 0) & (wanted < len(candidates))
    at = np.full(parts.count, -1, np.int64)
    at[inside] = candidates[wanted[inside]]
    return _taken(column, at, (at >= frames.start) & (at < frames.stop))


def _chosen(parts: Partitions, condition: int) -> Bools:
    chosen = parts.rows.rows.column(condition).fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray(chosen, dtype=bool)


# ---- extremes ----


def _counted_places(call: Call, parts: Partitions, column: pa.Array) -> Bools:
    """Return which rows have a value that counts."""
    counted = np.ones(parts.count, dtype=bool)
    if call.ignore_nulls or call.function not in LISTS:
        counted &= column.is_valid().to_numpy(zero_copy_only=False)
    return counted if call.filter is None else counted & _chosen(parts, call.filter)


def _extreme(call: Call, parts: Partitions, frames: Frames) -> pa.Array:
    """MIN and MAX: the place of the extreme is found among ranks of the values."""
    column = canonical(parts.rows.rows.column(call.arguments[0]))
    counted = _counted_places(call, parts, column)
    ranks, rank = value_ranks(column, call.argument_types[0])
    if call.function == "max":
        ranks = len(rank) - 1 - ranks
    # The smallest number tells the rank and, behind it, the place.
    nowhere = np.int64((len(rank) + 1) * (parts.count + 1))
    numbers = np.where(counted, ranks * (parts.count + 1) + parts.place, nowhere)
    found = np.full(parts.count, nowhere)
    for width, rows, block in _blocks(frames, numbers, np.minimum):
        found[rows] = np.minimum(block[frames.start[rows]], block[frames.stop[rows] - width])
    exists = found < nowhere
    return _taken(column, found % (parts.count + 1), exists)


def _blocks(
    frames: Frames, numbers: Int64Array, joined: Callable[[Any, Any], Int64Array]
) -> list[tuple[int, Int64Array, Int64Array]]:
    """Return (width, rows whose frames are two blocks of that width, blocks from each place) for widths 1, 2, 4, ..."""
    found = []
    width, block = 1, numbers
    lengths = frames.lengths
    longest = int(lengths.max(initial=0))
    while width <= longest:
        rows = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        if len(rows):
            found.append((width, rows, block))
        block = joined(block[:-width], block[width:]) if len(block) > width else block[:0]
        width *= 2
    return found


# ---- lists ----


def _listed(call: Call, parts: Partitions, frames: Frames) -> pa.Array:
    """COLLECT_LIST and COLLECT_SET, and the texts of a list joined: LISTAGG, of none NULL."""
    if call.function != "listagg":
        return _collected(call, parts, frames, call.type)
    return joined(_collected(call, parts, frames, array(call.type)), call.constants[0])


def _collected(call: Call, parts: Partitions, frames: Frames, list_type: SqlType) -> pa.Array:
    """COLLECT_LIST in the order of the rows, COLLECT_SET in that of the values."""
    column = parts.rows.rows.column(call.arguments[0])
    if call.function == "collect_set":
        column = canonical(column)
    candidates = np.flatnonzero(_counted_places(call, parts, column))
    first, last = np.searchsorted(candidates, frames.start), np.searchsorted(candidates, frames.stop)
    lengths = np.maximum(last - first, 0)
    lists = np.repeat(np.arange(parts.count), lengths)
    # Behind the first value of its list each one stands one further.
    inside = np.arange(len(lists)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = candidates[np.repeat(first, lengths) + inside]
    if call.function == "collect_set" and len(places):
        ranks = value_ranks(column, call.argument_types[0])[0][places]
        order = np.lexsort((places, ranks, lists))
        lists, ranks, places = lists[order], ranks[order], places[order]
        new = np.r_[True, (np.diff(lists) != 0) | (np.diff(ranks) != 0)]
        places, lengths = places[new], np.bincount(lists[new], minlength=parts.count)
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), column.take(pa.array(places)), type=to_arrow_type(list_type))


# ---- aggregates ----


def _aggregate(call: Call, parts: Partitions, frames: Frames) -> Answer:
    argument = parts.rows.rows.column(call.arguments[0]) if call.arguments else None
    function = accumulator(call.function, call.argument_types[0] if call.arguments else None, call.type)
    if np.array_equal(frames.start, parts.start) and np.array_equal(frames.stop, parts.stop):
        codes, count = parts.codes, int(parts.new_partition.sum())
        state = function.partial(_counted(call, parts, argument, codes, count))
        answer = function.answer(state)
        overflow = None if answer.overflow is None else answer.overflow[codes]
        return Answer(answer.values.take(pa.array(codes)), overflow)
    state = function.partial(_counted(call, parts, argument, parts.place, parts.count))
    if isinstance(function, FloatSum | FloatAverage):
        return function.answer(_differences(state, frames))
    return function.answer(_summed(function, state, frames))


def _counted(call: Call, parts: Partitions, argument: pa.Array | None, codes: Int64Array, count: int) -> Rows:
    rows = Rows(argument, np.ones(parts.count, np.int64), codes, count)
    return rows if call.filter is None else rows.where(_chosen(parts, call.filter))


def _summed(function: Accumulator, state: Sequence[StateColumn], frames: Frames) -> list[StateColumn]:
    """Return the states of the frames, put together from blocks of 1, 2, 4, ... rows."""
    count = len(frames.start)
    total = _zeros(state, count)
    at, left = frames.start.copy(), frames.lengths.copy()
    block, width = list(state), 1
    while (left > 0).any():
        rows = np.flatnonzero(left & width)
        if len(rows):
            places = at[rows]
            part = function.add([c[rows] for c in total], [c[places] for c in block])
            for column, values in zip(total, part, strict=True):
                column[rows] = values
            at[rows] += width
            left[rows] -= width
        if len(block[0]) > width:
            block = function.add([c[:-width] for c in block], [c[width:] for c in block])
        width *= 2
    return total


def _zeros(state: Sequence[StateColumn], count: int) -> list[StateColumn]:
    return [np.full(count, b"", dtype=object) if c.dtype == object else np.zeros(count, c.dtype) for c in state]


def _differences(state: Sequence[StateColumn], frames: Frames) -> list[StateColumn]:
    """Return the states of FLOAT sums over frames: counts, and exact sums as differences of prefix sums."""
    counts = [np.r_[0, np.cumsum(column)] for column in state[:-1]]
    sums = [0]
    for part in state[-1].tolist():
        sums.append(sums[-1] + exact_float.from_bytes(part))
    pairs = zip(frames.start.tolist(), frames.stop.tolist(), strict=True)
    total = [exact_float.to_bytes(sums[stop] - sums[start]) for start, stop in pairs]
    return [*(c[frames.stop] - c[frames.start] for c in counts), np.array([*total, None], dtype=object)[:-1]]
