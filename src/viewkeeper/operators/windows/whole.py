"""MODE, and LISTAGG in an order of its own, over whole partitions: their values sorted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.operators.windows.call import Call
from viewkeeper.operators.windows.partitions import Int64Array, Partitions
from viewkeeper.zset.buffers import canonical
from viewkeeper.zset.schema import SqlType
from viewkeeper.zset.sort_keys import OrderItem, sort_keys


def value_ranks(column: pa.Array, sql_type: SqlType) -> tuple[Int64Array, Int64Array]:
    """Return the rank of each value among the different ones, and the ranks that there are."""
    keys = pc.dictionary_encode(sort_keys([column], (sql_type,), [OrderItem(0)], len(column)))
    rank = np.empty(len(keys.dictionary), np.int64)
    rank[pc.array_sort_indices(keys.dictionary).to_numpy()] = np.arange(len(rank))
    return rank[keys.indices.to_numpy()], rank


def modes(call: Call, parts: Partitions, counted: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the most frequent value of each row's partition, of equally frequent ones the first; of no values NULL.

    Args:
        call: the function; its constant says whether the last one is meant.
        parts: the rows.
        counted: whether the value of a row counts.
    """
    column = canonical(parts.rows.rows.column(call.arguments[0]))
    ranks, rank = value_ranks(column, call.argument_types[0])
    if call.constants[0]:
        ranks = len(rank) - 1 - ranks
    at = np.flatnonzero(counted)
    values, first, count = np.unique(parts.codes[at] * len(rank) + ranks[at], return_index=True, return_counts=True)
    partition = values // max(len(rank), 1)
    # The values of a partition follow each other by rank: of equal counts the first stays.
    best = np.lexsort((-count, partition))
    best = best[np.r_[True, np.diff(partition[best]) > 0]] if len(best) else best
    places = np.full(int(parts.new_partition.sum()), -1, np.int64)
    places[partition[best]] = at[first[best]]
    found = places[parts.codes]
    return column.take(pa.array(found, mask=found < 0))


def list_order(constants: Sequence[object]) -> list[tuple[bool, bool]]:
    """Return for each item of LISTAGG's order whether it ascends, and whether NULLs stand first: none without an order.

    Args:
        constants: those of the call, the delimiter first.

    Example:
        >>> list_order((",", False, True))
        [(False, True)]
    """
    flags = [bool(flag) for flag in constants[1:]]
    return list(zip(flags[::2], flags[1::2], strict=True))


def ordered_texts(call: Call, parts: Partitions, counted: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the joined texts of each row's partition in the call's order, ties by the rows' own; of none NULL."""
    columns = [parts.rows.rows.column(position) for position in call.arguments]
    directions = enumerate(list_order(call.constants), 1)
    items = [OrderItem(i, ascending, nulls_first) for i, (ascending, nulls_first) in directions]
    keys = sort_keys(columns, call.argument_types, items, parts.count)
    at = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
    at = np.lexsort((parts.place, _dense(keys, at), parts.codes))
    at = at[counted[at]]
    partitions = int(parts.new_partition.sum())
    offsets = np.searchsorted(parts.codes[at], np.arange(partitions + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), columns[0].take(pa.array(at)))
    texts = joined(lists, call.constants[0])
    return texts.take(pa.array(parts.codes))


def _dense(keys: pa.Array, at: Int64Array) -> Int64Array:
    """Return a number for each key that sorts as it does, equal for equal ones."""
    taken = keys.take(pa.array(at))
    numbers = np.zeros(len(at), np.int64)
    if len(at) > 1:
        numbers[at[1:]] = np.cumsum(pc.not_equal(taken[1:], taken[:-1]).to_numpy(zero_copy_only=False))
    return numbers


def joined(lists: pa.Array, delimiter: object) -> pa.Array:
    """Return the texts of each list one behind the other, of none NULL."""
    texts = pc.binary_join(lists, pa.scalar(delimiter, lists.type.value_type))
    return pc.if_else(pc.greater(pc.list_value_length(lists), 0), texts, pa.scalar(None, texts.type))
