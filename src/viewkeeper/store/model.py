"""What a table is to the store: an id, typed columns, a primary key, and the history of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.zset.schema import Column, Schema


@dataclass(frozen=True)
class Table:
    """A base table.

    Args:
        id: the catalog's number; log and storage use it, so a renamed or re-created table never meets old data.
        name: as its creator wrote it.
        schema: the columns in order, newest version.
        key: positions of the primary key's columns, in key order.
        defaults: per column its DEFAULT as a Python value (None: no default, NULL).
        versions: versions[v] is how many of ``schema``'s columns a row of schema version v holds: ADD COLUMN appends
            a version and rewrites nothing; columns that an old row lacks read as ``added_defaults``.
        added_defaults: per column the value that rows written before the column existed show.
        comments: per column its COMMENT.
    """

    id: int
    name: str
    schema: Schema
    key: tuple[int, ...]
    defaults: tuple[object, ...]
    versions: tuple[int, ...]
    added_defaults: tuple[object, ...]
    comments: tuple[str | None, ...] = ()

    @property
    def version(self) -> int:
        """The schema version that new rows carry."""
        return len(self.versions) - 1

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The primary key's columns."""
        return tuple(self.schema.columns[i] for i in self.key)
