"""The list of SQL that Spark's parser refuses, with its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Malformed(NamedTuple):
    """One statement.

    Args:
        code: Spark's error.
        place: Spark's place as line:column, ``-`` where it tells none.
        sql: the statement, of one line.
    """

    code: str
    place: str
    sql: str


def malformed() -> list[Malformed]:
    """Return the list."""
    lines = Path(__file__).with_name("malformed.txt").read_text().splitlines()
    return [Malformed(*line.split("\t")) for line in lines if line and not line.startswith("#")]
