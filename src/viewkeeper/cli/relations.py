"""Tables and views as wholes: their columns, and their rows in batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from viewkeeper.database import Database
from viewkeeper.database.reading import reader
from viewkeeper.store.model import Table
from viewkeeper.store.scans import scan_batches
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
    engine = db._engine
    if base_only:
        return engine.coordinator.catalog().table(name).schema
    found = engine.names.find(name)
    return found.schema if isinstance(found, Table) else found.visible_schema


def batches_of(db: Database, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table or view, at one moment.

    Args:
        db: an open store.
        name: the table or view.
    """
    engine = db._engine
    found = engine.names.find(name)
    with reader(engine) as moment:
        if isinstance(found, Table):
            yield from scan_batches(found, moment.base)
        else:
            yield from found.batches(moment.views)
