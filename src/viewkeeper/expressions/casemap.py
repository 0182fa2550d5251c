"""Upper and lower case as Spark has it: Unicode's full mappings, version 17 (ICU 78), on any Python.

Python brings the mappings of its own Unicode version; the pairs that later versions added stand here. The test
compares every code point with Spark.
"""

from __future__ import annotations

_PAIRS = (
    (0x1C89, 0x1C8A), (0xA7CB, 0x0264), (0xA7CC, 0xA7CD), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D3), (0xA7D4, 0xA7D5),
    (0xA7DA, 0xA7DB), (0xA7DC, 0x019B),
    *((0x10D50 + i, 0x10D70 + i) for i in range(22)),
    *((0x16EA0 + i, 0x16EBB + i) for i in range(25)),
)  # fmt: skip
_TO_UPPER = {lower: upper for upper, lower in _PAIRS}
_TO_LOWER = dict(_PAIRS)


def upper(text: str) -> str:
    """Return ``text`` in upper case."""
    return text.upper().translate(_TO_UPPER)


def lower(text: str) -> str:
    """Return ``text`` in lower case; a final sigma as in ICU."""
    return text.lower().translate(_TO_LOWER)
