"""Wide integers as columns of limbs: exact group sums of integers and decimals at array speed.

A number is sum(limb[i] << 32 i), where all limbs but the last lie in [0, 2^32) once carried and the last one is signed.
Three limbs hold any sum of BIGINT, six any sum of DECIMAL(38): of more rows than there can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]

LIMB_BITS = 32
_MASK = np.int64((1 << LIMB_BITS) - 1)
_EXACT_IN_DOUBLE = float(1 << 53)
_PART_BITS = 16


def limbs_of_int64(values: Int64Array) -> list[Int64Array]:
    """Return the two limbs of each value."""
    return [values & _MASK, values >> LIMB_BITS]


def limbs_of_decimal(values: pa.Array) -> list[Int64Array]:
    """Return the four limbs of each unscaled value of a decimal128 array; NULLs count as 0."""
    if values.null_count:
        values = values.fill_null(pa.scalar(Decimal(0)).cast(values.type))
    words = np.frombuffer(values.buffers()[1], dtype="<i8")[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = words[0::2], words[1::2]
    return [low & _MASK, (low >> LIMB_BITS) & _MASK, high & _MASK, high >> LIMB_BITS]


def group_sums(
    limbs: Sequence[Int64Array], weights: Int64Array, codes: Int64Array, groups: int, width: int
) -> list[Int64Array]:
    """Return for each group the carried limbs of sum(value * weight).

    Args:
        limbs: the values' limbs.
        weights: a factor a value.
        codes: the group of each value.
        groups: how many groups there are.
        width: how many limbs the result has.
    """
    sums = [_group_sum(limb, weights, codes, groups) for limb in limbs]
    padding = [np.zeros(groups, np.int64)] * (width - len(sums))
    return carry([*sums, *padding])


def _group_sum(limb: Int64Array, weights: Int64Array, codes: Int64Array, groups: int) -> Int64Array:
    """Return the exact sum of limb * weight a group."""
    if not len(limb):
        return np.zeros(groups, np.int64)
    heaviest = float(np.abs(weights).max())
    bound = max(abs(float(limb.max())), abs(float(limb.min()))) * heaviest * len(limb)
    if bound < _EXACT_IN_DOUBLE:
        return np.bincount(codes, limb * weights, groups).astype(np.int64)
    total = np.zeros(groups, np.int64)
    np.add.at(total, codes, limb * weights)
    return total


def carry(limbs: Sequence[Int64Array]) -> list[Int64Array]:
    """Return the same numbers with every limb but the last in [0, 2^32)."""
    out = []
    over: Int64Array | int = 0
    for limb in limbs[:-1]:
        full = limb + over
        out.append(full & _MASK)
        over = full >> LIMB_BITS
    out.append(limbs[-1] + over)
    return out


def add(left: Sequence[Int64Array], right: Sequence[Int64Array]) -> list[Int64Array]:
    """Return the carried sums of two columns of numbers."""
    return carry([a + b for a, b in zip(left, right, strict=True)])


def to_int64(limbs: Sequence[Int64Array]) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return each number as int64 and whether it overflows."""
    low = limbs[0] | (limbs[1] << LIMB_BITS)
    sign = np.where(low < 0, np.int64(-1), np.int64(0))
    overflow = np.zeros(len(low), dtype=bool)
    for limb in limbs[2:-1]:
        overflow |= limb != (sign & _MASK)
    overflow |= limbs[-1] != sign
    return low, overflow


def to_python(limbs: Sequence[Int64Array]) -> list[int]:
    """Return each number as a Python integer."""
    numbers = [0] * len(limbs[0])
    for position, limb in enumerate(limbs):
        shift = LIMB_BITS * position
        numbers = [n + (x << shift) for n, x in zip(numbers, limb.tolist(), strict=True)]
    return numbers


def to_decimal(
    limbs: Sequence[Int64Array], precision: int, scale: int, null: npt.NDArray[np.bool_]
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return each number as DECIMAL(precision, scale) (unscaled value = the number) and whether it overflows."""
    low, overflow = to_int64(limbs)
    if precision <= 18:
        overflow = overflow | (low >= 10**precision) | (low <= -(10**precision))
    if precision <= 18 or not overflow.any():
        high = np.where(low < 0, np.int64(-1), np.int64(0))
    else:
        low = limbs[0] | (limbs[1] << LIMB_BITS)
        # Of three limbs the last is signed and is the high word.
        high = limbs[2] if len(limbs) == 3 else limbs[2] | (limbs[3] << LIMB_BITS)
        limit = 10**precision
        overflow = np.array([not -limit < n < limit for n in to_python(limbs)], dtype=bool)
    return decimal_array(low, high, null | overflow, precision, scale), overflow & ~null


def decimal_array(
    low: Int64Array, high: Int64Array, null: npt.NDArray[np.bool_], precision: int, scale: int
) -> pa.Array:
    """Return decimals of the two words of their unscaled values, NULL where ``null`` says so."""
    words = np.empty((len(low), 2), dtype="<i8")
    words[:, 0], words[:, 1] = np.where(null, 0, low), np.where(null, 0, high)
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), [valid, pa.py_buffer(words.tobytes())])
