"""Exact sums of doubles: a sum that does not depend on order or history.

A finite double is an integer times 2^-1074. Sums are kept as such integers (unbounded), so adding and taking away are
exact, and only the final answer is rounded, once, to the nearest double. Infinities and NaN are counted aside: they
come and go without trace. (The idea of a superaccumulator: Kulisch, "Computer Arithmetic and Validity"; here sparse.)

State of a group: one BINARY: the integer without its trailing zero bytes, behind their number as two bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


INFINITY_SQL = "CAST('Infinity' AS DOUBLE)"
_SHIFT = 600  # brings every double into the range in which its logarithm and powers of two are normal numbers
_MANTISSA_BITS = 54
_SPARE_BITS = 64


def parts_sql(relation: str, groups: Sequence[str], argument: str) -> str:
    """Return a query of the exact sums of ``argument`` by group and exponent: columns ``groups``, then ``parts``.

    A finite double is m * 2^e with an integer m of few bits; sums of m for one e are exact in a decimal. The exponent
    may be one off where Spark's logarithm rounds: there are bits to spare. ``sums_of_parts`` adds the parts up.

    Args:
        relation: the rows.
        groups: the group columns.
        argument: the column of doubles.
    """
    by = "".join(f"{group}, " for group in groups)
    small, large = f"abs(x) < 1e-200D THEN {_SHIFT}", f"abs(x) > 1e200D THEN -{_SHIFT}"
    values = f"SELECT {by}CAST({argument} AS DOUBLE) AS x FROM {relation}"
    finite = f"x <> 0 AND x < {INFINITY_SQL} AND x > -{INFINITY_SQL}"
    shifted = f"SELECT {by}x, CASE WHEN {small} WHEN {large} ELSE 0 END AS k FROM ({values}) WHERE {finite}"
    scaled = f"SELECT {by}k, x * pow(2D, CAST(k AS DOUBLE)) AS y FROM ({shifted})"
    exponents = f"SELECT {by}k, y, CAST(floor(log2(abs(y))) AS INT) AS e FROM ({scaled})"
    mantissa = f"CAST(y * pow(2D, CAST({_MANTISSA_BITS} - e AS DOUBLE)) AS BIGINT)"
    whole = f"SELECT {by}e - {_MANTISSA_BITS} - k AS e, CAST({mantissa} AS DECIMAL(20,0)) AS m FROM ({exponents})"
    sums = f"SELECT {by}e, SUM(m) AS m FROM ({whole}) GROUP BY {by}e"
    grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {by}collect_list(named_struct('e', e, 'm', m)) AS parts FROM ({sums}){grouped}"


def sums_of_parts(parts: Sequence[Sequence[Mapping[str, Any]] | None]) -> list[bytes]:
    """Return the state form of the sums whose ``parts`` a query by ``parts_sql`` gave; None has none."""
    bits = UNIT_BITS + _SPARE_BITS
    totals = (sum(int(part["m"]) << (part["e"] + bits) for part in some or ()) for some in parts)
    return [to_bytes(total >> _SPARE_BITS) for total in totals]


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
