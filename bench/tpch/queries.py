"""The 22 queries with the parameters of the specification's validation run.

They are the specification's, but for three things. ORDER BY stands only where LIMIT cuts by it: a view's rows have no
order. Where rows can tie there (3, 10, 18) their key follows, so that every engine cuts alike. Query 15 has its view as
a CTE.
"""

from __future__ import annotations

from pathlib import Path

NUMBERS = tuple(range(1, 23))
_FOLDER = Path(__file__).parent


def query(number: int, scale_factor: float) -> str:
    """Return a query; number 11 depends on the scale factor of the data."""
    text = (_FOLDER / f"q{number:02d}.sql").read_text()
    return text.replace("{fraction}", f"{0.0001 / scale_factor:.10f}").strip()
