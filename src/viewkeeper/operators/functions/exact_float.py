"""Exact sums of doubles: a sum that does not depend on order or history.

A finite double is an integer times 2^-1074. Sums are kept as such integers (unbounded), so adding and taking away are
exact, and only the final answer is rounded, once, to the nearest double. Infinities and NaN are counted aside: they
come and go without trace. (The idea of a superaccumulator: Kulisch, "Computer Arithmetic and Validity"; here sparse.)

State of a group: one BINARY: the integer without its trailing zero bytes, behind their number as two bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

UNIT_BITS = 1074
_UNIT = 1 << UNIT_BITS
_LIMB_BITS = 32
_LIMBS = (UNIT_BITS + 1024) // _LIMB_BITS + 3


def group_sums(values: Float64Array, weights: Int64Array, codes: Int64Array, groups: int) -> list[int]:
    """Return for each group sum(value * weight) in units of 2^-1074; the values are finite."""
    sums = [0] * groups
    if not len(values):
        return sums
    limb_codes, limb_sums = _limb_sums(values, weights, codes)
    for code, total in zip(limb_codes.tolist(), limb_sums.tolist(), strict=True):
        group, limb = divmod(code, _LIMBS)
        sums[group] += total << (_LIMB_BITS * limb)
    return sums


def _limb_sums(values: Float64Array, weights: Int64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct (group * _LIMBS + limb) and the sum of the values' bits that fall there."""
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    # value = mantissa * 2^(exponent - 53); subnormals would need a negative shift, their mantissa has zeros to spare.
    shift = exponent.astype(np.int64) - 53 + UNIT_BITS
    negative = np.minimum(shift, 0)
    mantissa >>= -negative
    shift -= negative
    limb, within = shift // _LIMB_BITS, shift % _LIMB_BITS
    low, high = mantissa & 0xFFFFFFFF, mantissa >> _LIMB_BITS
    low, high = low << within, high << within
    parts = [low & 0xFFFFFFFF, (low >> _LIMB_BITS) + (high & 0xFFFFFFFF), high >> _LIMB_BITS]
    keys = np.concatenate([codes * _LIMBS + limb + i for i in range(3)])
    amounts = np.concatenate([part * weights for part in parts])
    distinct, inverse = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, inverse, amounts)
    return distinct, totals


def to_bytes(number: int) -> bytes:
    """Return the state form of a sum; zero is empty."""
    if number == 0:
        return b""
    zeros = ((number & -number).bit_length() - 1) // 8
    number >>= 8 * zeros
    return zeros.to_bytes(2, "little") + number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)


def from_bytes(state: bytes) -> int:
    """Return the sum that ``to_bytes`` wrote."""
    if not state:
        return 0
    return int.from_bytes(state[2:], "little", signed=True) << (8 * int.from_bytes(state[:2], "little"))


def to_float(number: int) -> float:
    """Return the nearest double; a sum beyond the largest double is an infinity.

    Example:
        >>> to_float(sum(group_sums(np.array([1e300, 1e16, 0.1, -1e300, -1e16]), np.ones(5, int), np.zeros(5, int), 1)))
        0.1
    """
    try:
        return number / _UNIT
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def divided(number: int, count: int) -> float:
    """Return the double nearest to the sum divided by ``count``."""
    try:
        return number / (_UNIT * count)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def add_states(left: Sequence[bytes], right: Sequence[bytes]) -> list[bytes]:
    """Return the states of the sums of two columns of states."""
    return [
        (a or b) if not a or not b else to_bytes(from_bytes(a) + from_bytes(b))
        for a, b in zip(left, right, strict=True)
    ]
