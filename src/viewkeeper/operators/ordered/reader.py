"""What an ordered function sees of the touched groups: their entries as of E-1 and as of E."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from viewkeeper.operators.ordered.values import UNCHANGED, Changed, Changes, Entry, OrderedValues
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.schema import SqlType


@dataclass(frozen=True)
class Reader:
    """The entries of the touched groups.

    Args:
        entries: the arrangement.
        prefixes: one a group.
        changes: what the epoch changes, by prefix.
        context: for lookups.
    """

    entries: OrderedValues
    prefixes: Sequence[bytes]
    changes: Changes
    context: StepContext

    def changed(self, group: int) -> Changed | None:
        """Return what changes in a group, None for nothing."""
        return self.changes.get(self.prefixes[group])

    def walk(
        self, group: int, reverse: bool = False, start: bytes | None = None, within: bytes | None = None
    ) -> Iterator[Entry]:
        """Yield the entries of a group as of E: see ``OrderedValues.walk``; ``within`` is a longer prefix."""
        prefix = self.prefixes[group]
        changed = self.changes.get(prefix, UNCHANGED)
        return self.entries.walk(within or prefix, changed, self.context, reverse, start)

    def published(self, group: int, reverse: bool = False) -> Iterator[Entry]:
        """Yield the entries of a group as of E-1."""
        return self.entries.walk(self.prefixes[group], UNCHANGED, self.context, reverse)

    def each_group(self, now: bool, reverse: bool = False) -> Iterator[Iterator[Entry]]:
        """Yield the entries of all groups, as of E where ``now``, else as of E-1."""
        walk = self.walk if now else self.published
        return (walk(group, reverse) for group in range(len(self.prefixes)))


def gathered(reader: Reader, groups: Iterable[Iterable[Entry]]) -> tuple[pa.Array, list[int]]:
    """Return the first column of all entries, and at which of them each group begins, with the end of all.

    Args:
        reader: what the entries are of.
        groups: the entries of each group.
    """
    rows: list[bytes] = []
    offsets = [0]
    for entries in groups:
        rows += [row for _, row in entries]
        offsets.append(len(rows))
    return reader.entries.row_codec.decode(rows).column(0), offsets


class OrderedFunction(Protocol):
    """An aggregate that reads ordered values."""

    @property
    def kept(self) -> tuple[SqlType, ...]:
        """The types of what it keeps in the state row of a group."""

    def advance(self, reader: Reader, old: Sequence[pa.Array]) -> list[pa.Array]:
        """Return what it keeps as of E, one value a group; groups without a change keep what they have.

        Args:
            reader: the entries.
            old: what it has kept, NULL where the group is new.
        """

    def answer(self, reader: Reader, kept: Sequence[pa.Array], now: bool) -> pa.Array:
        """Return the answers that follow from ``kept``, as of E or as of E-1."""

    @property
    def empty_sql(self) -> str | None:
        """The answer over no values; None for NULL."""

    def answer_sql(self, values: OrderedValues) -> str:
        """Return the answer as an aggregate by Spark over the rows that change ``values``."""

    def kept_sql(self, values: OrderedValues) -> tuple[str, ...]:
        """Return such aggregates for what it keeps, from the first on; what comes behind is not shown."""


@dataclass(frozen=True)
class Ordered:
    """An aggregate that is no sum: which values it ranges over, and what it reads from them."""

    values: int
    function: OrderedFunction


def chosen(changed: Sequence[bool], new: pa.Array, old: pa.Array) -> pa.Array:
    """Return ``new`` for the groups that have changed and ``old`` for the others.

    Args:
        changed: one a group.
        new: one value for each group that has changed.
        old: one value a group.
    """
    if all(changed):
        return new
    at, after = [], len(old)
    for group, has in enumerate(changed):
        at.append(after if has else group)
        after += has
    return pa.concat_arrays([old, new]).take(pa.array(at, pa.int64()))
