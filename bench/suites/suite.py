"""What a suite is: tables, queries, and a stream of rounds that change the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from bench.harness import Scale


@dataclass(frozen=True)
class Round:
    """What one round changes: one transaction.

    Args:
        puts: new and changed rows of each table, whole.
        deletes: the primary keys of rows that go.
    """

    puts: Mapping[str, pa.Table]
    deletes: Mapping[str, pa.Table]

    @property
    def changes(self) -> int:
        """How many rows are put or deleted."""
        return sum(len(rows) for rows in (*self.puts.values(), *self.deletes.values()))


class Stream(Protocol):
    """A seeded stream of rounds over tables that change with it."""

    tables: dict[str, pa.Table]

    def take(self, part: float) -> Round:
        """Return the next round, which changes about so large a part of the tables, at least a row."""


@dataclass(frozen=True)
class Suite:
    """Queries that are measured as views of one store.

    Args:
        name: what its measurements begin with.
        title: its name for people.
        about: what a round is, for the report.
        counted: of what a round changes a part.
        parts: how large a part a round changes, ascending.
        repeated_max: the largest part whose rounds are repeated.
        judged: the part that the targets are about; None where it has no targets.
        create_tables: by name, the CREATE TABLE statements.
        numbers: of the queries.
        query: gives a query at a scale.
        folder: names what is prepared at a scale.
        stream: gives the tables at a scale, unchanged yet; what it generates may lie in the folder that it is told.
    """

    name: str
    title: str
    about: str
    counted: str
    parts: tuple[float, ...]
    repeated_max: float
    judged: float | None
    create_tables: Mapping[str, str]
    numbers: Sequence[int]
    query: Callable[[int, Scale], str]
    folder: Callable[[Scale], str]
    stream: Callable[[Path, Scale], Stream]

    @property
    def summary(self) -> str:
        """The measurement that compares the others."""
        return f"{self.name}-summary"

    def measure(self, number: int) -> str:
        """Return the measurement of a query."""
        return f"{self.name}-{view_name(number)}"

    def changed(self, part: float) -> str:
        """Return in words how much a round changes."""
        return f"{part:.2%} of the {self.counted} changed"


def view_name(number: int) -> str:
    """Return the name of a query's view."""
    return f"q{number:02d}"
