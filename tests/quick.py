"""Which cases of a parametrised test belong to `make check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def quick_first(cases: Sequence[Any], count: int) -> list[Any]:
    """Return the cases of ``parametrize``; those behind the first ``count`` are slow: `make test` runs them."""
    rest = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*case, marks=pytest.mark.slow) for case in rest)]
