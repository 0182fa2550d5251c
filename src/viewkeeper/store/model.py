"""What a table is to the store: an id, typed columns, a primary key, and the history of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.zset.schema import Column, Schema, SqlType
from viewkeeper.zset.versions import Layout


@dataclass(frozen=True)
class ColumnRead:
    """A column of a table as a view knows it, whatever becomes of the table.

    Args:
        number: the column's number.
        name: what it was called when the view was made: the view's SQL calls it so.
        type: its type then.
    """

    number: int
    name: str
    type: SqlType


@dataclass(frozen=True)
class Table:
    """A base table.

    Args:
        id: the catalog's number; log and storage use it, so a renamed or re-created table never meets old data.
        name: as its creator wrote it.
        schema: the columns in order, newest version.
        key: positions of the primary key's columns, in key order.
        defaults: per column its DEFAULT as a Python value (None: no default, NULL).
        versions: versions[v] is the layout of a row of schema version v (``zset.versions``); the last one has the
            columns of ``schema``.
        added_defaults: per column the value that rows written before the column existed show.
        comments: per column its COMMENT.
        default_texts: per column its DEFAULT as it was written; None where there is none.
    """

    id: int
    name: str
    schema: Schema
    key: tuple[int, ...]
    defaults: tuple[object, ...]
    versions: tuple[Layout, ...]
    added_defaults: tuple[object, ...]
    comments: tuple[str | None, ...] = ()
    default_texts: tuple[str | None, ...] = ()

    @property
    def version(self) -> int:
        """The schema version that new rows carry."""
        return len(self.versions) - 1

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The primary key's columns."""
        return tuple(self.schema.columns[i] for i in self.key)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns' numbers."""
        return tuple(column.number for column in self.versions[-1])

    @property
    def next_number(self) -> int:
        """The number that the next new column gets."""
        return 1 + max(column.number for layout in self.versions for column in layout)

    def columns_read(self) -> tuple[ColumnRead, ...]:
        """Return the columns as a view that is made now will know them."""
        pairs = zip(self.numbers, self.schema.columns, strict=True)
        return tuple(ColumnRead(number, column.name, column.type) for number, column in pairs)

    def seen(self, columns: tuple[ColumnRead, ...] | None) -> tuple[tuple[int, ...], Schema]:
        """Return the positions and the schema of those of ``columns`` that are there still, None for all.

        They have the names and types that the view knows.
        """
        places = {number: i for i, number in enumerate(self.numbers)}
        there = [c for c in (self.columns_read() if columns is None else columns) if c.number in places]
        positions = tuple(places[c.number] for c in there)
        found = (Column(c.name, c.type, self.schema.columns[places[c.number]].nullable) for c in there)
        return positions, Schema(tuple(found))
