"""MEDIAN, PERCENTILE and PERCENTILE_APPROX over whole partitions: the values of each sorted once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.operators.ordered.percentiles import Percentile
from viewkeeper.operators.windows.call import Call
from viewkeeper.operators.windows.partitions import Partitions
from viewkeeper.zset.schema import to_arrow_type
from viewkeeper.zset.sort_keys import OrderItem, sort_keys


def percentiles(call: Call, parts: Partitions, counted: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the percentiles of each row's partition; of no values NULL.

    Args:
        call: the function.
        parts: the rows.
        counted: whether the value of a row counts.
    """
    column = parts.rows.rows.column(call.arguments[0])
    at = pc.array_sort_indices(sort_keys([column], call.argument_types, [OrderItem(0)], len(column))).to_numpy()
    weights = parts.rows.rows.column(call.arguments[1]) if len(call.arguments) > 1 else None
    if weights is not None:
        counted = counted & weights.is_valid().to_numpy(zero_copy_only=False)
    at = at[counted[at]]
    at = at[np.argsort(parts.codes[at], kind="stable")]
    values: list[Any] = column.take(pa.array(at)).to_pylist()
    partitions = int(parts.new_partition.sum())
    ends = np.searchsorted(parts.codes[at], np.arange(partitions + 1))
    wanted = Percentile.of_constants(call.constants, call.type)
    ranges = [slice(start, stop) for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    if weights is None:
        answers = [wanted.of_sorted(values[part]) for part in ranges]
    else:
        frequencies = weights.take(pa.array(at)).to_pylist()
        answers = [wanted.of_weighted(values[part], frequencies[part]) for part in ranges]
    return pa.array(answers, to_arrow_type(call.type)).take(pa.array(parts.codes))
