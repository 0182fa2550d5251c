"""Exact sums of products of doubles: what variances and correlations are made of, whatever the order or the history.

A finite double is an integer times 2^-1074, so a product of k of them is an integer times 2^-(1074 k): sums of products
are kept as such integers. A product of two is split without error into its rounded value and the rest (Dekker, "A
Floating-Point Technique for Extending the Available Precision", 1971), at array speed, where neither part can overflow
or underflow; all others are multiplied as integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewkeeper.operators.functions.exact_float import UNIT_BITS, Float64Array, Int64Array, group_sums
from viewkeeper.zset.buffers import BoolArray

_SPLITTER = float((1 << 27) + 1)
_LARGEST = 2.0**480
_SMALLEST = 2.0**-480


def product_sums(factors: Sequence[Float64Array], weights: Int64Array, codes: Int64Array, groups: int) -> list[int]:
    """Return for each group sum(weight * product of the factors) in units of 2^-(1074 * number of factors).

    Example:
        >>> third = np.array([3.0])
        >>> one = np.ones(1, int)
        >>> product_sums([third, third], one, 0 * one, 1) == [9 << 2148]
        True
    """
    if len(factors) == 1:
        return group_sums(factors[0], weights, codes, groups)
    if len(factors) > 2:
        return _as_integers(factors, weights, codes, groups)
    safe = _is_safe(factors[0]) & _is_safe(factors[1])
    left, right = factors[0][safe], factors[1][safe]
    product, rest = _two_product(left, right)
    values = np.concatenate([product, rest])
    sums = group_sums(values, np.tile(weights[safe], 2), np.tile(codes[safe], 2), groups)
    sums = [total << UNIT_BITS for total in sums]
    if safe.all():
        return sums
    others = _as_integers([f[~safe] for f in factors], weights[~safe], codes[~safe], groups)
    return [a + b for a, b in zip(sums, others, strict=True)]


def integer_of(value: float) -> int:
    """Return a finite double in units of 2^-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS + 1 - denominator.bit_length())


def _as_integers(factors: Sequence[Float64Array], weights: Int64Array, codes: Int64Array, groups: int) -> list[int]:
    sums = [0] * groups
    for code, weight, *row in zip(codes.tolist(), weights.tolist(), *(f.tolist() for f in factors), strict=True):
        product = weight
        for value in row:
            product *= integer_of(value)
        sums[code] += product
    return sums


def _is_safe(values: Float64Array) -> BoolArray:
    sizes = np.abs(values)
    safe: BoolArray = (sizes == 0) | ((sizes >= _SMALLEST) & (sizes <= _LARGEST))
    return safe


def _two_product(left: Float64Array, right: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the rounded products and what rounding took from them."""
    product = left * right
    left_high, left_low = _split(left)
    right_high, right_low = _split(right)
    rest = ((left_high * right_high - product) + left_high * right_low + left_low * right_high) + left_low * right_low
    return product, rest


def _split(values: Float64Array) -> tuple[Float64Array, Float64Array]:
    scaled = _SPLITTER * values
    high = scaled - (scaled - values)
    return high, values - high
