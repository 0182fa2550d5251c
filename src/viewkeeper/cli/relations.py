"""Tables and views as wholes: their columns, and their rows in batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from viewkeeper.database import Database
from viewkeeper.errors import InputError
from viewkeeper.zset.schema import Schema


def schema_of(db: Database, name: str, base_only: bool = False) -> Schema:
    """Return the columns of a table or view.

    Args:
        db: an open store.
        name: the table or view.
        base_only: take no view.

    Raises:
        InputError: ``TABLE_OR_VIEW_NOT_FOUND``, ``VIEW_NOT_FILLED``; with ``base_only`` ``TABLE_NOT_FOUND``,
            ``NOT_A_TABLE``.
    """
    if base_only and name.lower() not in {table.lower() for table in db.tables()}:
        known = ", ".join(db.tables()) or "none yet"
        code = "NOT_A_TABLE" if name.lower() in {view.lower() for view in db.views()} else "TABLE_NOT_FOUND"
        raise InputError(code, f"{name!r} is no base table, which alone can be loaded into. There are: {known}.")
    return db.table(name).schema


def rows_in(db: Database, name: str) -> int:
    """Return how many rows a table or view has, 0 where it has just been dropped.

    Args:
        db: an open store.
        name: the table or view.
    """
    status = db.status()
    found = [*status["tables"], *status["views"]]
    return next((int(one["rows"]) for one in found if one["name"].lower() == name.lower()), 0)


def batches_of(db: Database, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table or view, at one moment.

    Args:
        db: an open store.
        name: the table or view.
    """
    return db.table(name).batches()
