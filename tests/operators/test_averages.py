"""Averages of decimals at the edges of their types, small sums and wide ones."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

from viewkeeper.operators.functions import limbs
from viewkeeper.operators.functions.avg import ExactAverage
from viewkeeper.zset.schema import decimal

EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def state_of(average: ExactAverage, sums: list[int], counts: list[int]) -> list[np.ndarray]:
    width = len(average.state_types) - 1
    parts = [
        np.array([(n >> (limbs.LIMB_BITS * i)) & ((1 << limbs.LIMB_BITS) - 1) for n in sums]) for i in range(width)
    ]
    parts[-1] = np.array([n >> (limbs.LIMB_BITS * (width - 1)) for n in sums])
    return [np.array(counts), *parts]


@pytest.mark.parametrize("wide", [False, True])
def test_decimals_are_rounded_half_up(wide: bool) -> None:
    average = ExactAverage(decimal(15, 2), decimal(19, 6))
    sums = [0, 5, -5, 1, -1, 2, 10**13 + 1, -(10**13) - 1, 7]
    counts = [3, 2, 2, 20_000, 20_000, 30_000, 7, 7, 0]
    if wide:  # one sum of two words sends all of them the long way
        sums, counts = [*sums, 10**24], [*counts, 10**11]
    answer = average.answer(state_of(average, sums, counts))
    expected = [
        None
        if count == 0
        else EXACT.divide(Decimal(total), Decimal(count)).scaleb(-2).quantize(Decimal("0.000001"), context=EXACT)
        for total, count in zip(sums, counts, strict=True)
    ]
    assert answer.values.to_pylist() == expected
    assert answer.values.type == pa.decimal128(19, 6)
    assert not np.any(answer.overflow)


def test_a_quotient_or_a_sum_too_large_for_its_type_overflows() -> None:
    average = ExactAverage(decimal(2, 0), decimal(6, 4))
    answer = average.answer(state_of(average, [99, 100, -100, 200], [1, 1, 1, 0]))
    assert answer.values.to_pylist() == [Decimal("99.0000"), None, None, None]
    assert np.asarray(answer.overflow).tolist() == [False, True, True, False]
