"""What evaluation works with: the store's parts, and one consistent moment of both spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa

from viewkeeper.errors import InputError
from viewkeeper.expressions.errors import remedy
from viewkeeper.expressions.tree import Session
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.reader import head
from viewkeeper.log.retention import holding
from viewkeeper.pipeline.records import ViewRecord, read_view
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.model import Table
from viewkeeper.store.scans import scan_batches
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog, read_catalog
from viewkeeper.views.definition import BUILDING, ViewDefinition
from viewkeeper.views.inputs import SparkQueries
from viewkeeper.views.planning import Planner
from viewkeeper.views.reads import StoredView

QUERY_ROWS_LOCAL = 200_000
LOCAL, SPARK = "local", "spark"


@dataclass(frozen=True)
class EvaluationContext:
    """The parts of an open store that statements are evaluated on.

    Args:
        base: the base space.
        views: the views space.
        planner: plans of views.
        session: time zone and ANSI mode of the caller.
        spark: gives Spark SQL over the store, started at its first use; None where there is none.
        rows_local: up to how many input rows a query that cannot be streamed runs in process.
    """

    base: Space
    views: Space
    planner: Planner = field(default_factory=Planner)
    session: Session = field(default_factory=Session)
    spark: Callable[[], SparkQueries] | None = None
    rows_local: int = QUERY_ROWS_LOCAL


@dataclass(frozen=True)
class Moment:
    """One unchanging moment of a store: no view shows more than the base tables do.

    Args:
        base: a transaction of the base space.
        views: a transaction of the views space, opened before it.
        catalog: tables and views.
        position: the log's head.
        locked: whether ``base`` is the write transaction, so that nobody else can write meanwhile.
    """

    base: ReadTransaction
    views: ReadTransaction
    catalog: Catalog
    position: int
    locked: bool = False

    def stored_view(self, context: EvaluationContext, view: ViewDefinition) -> StoredView:
        """Return ``view`` as it is published at this moment.

        Raises:
            InputError: ``VIEW_NOT_FILLED`` where it has never been published.
        """
        record = read_view(self.views, view.id)
        if record is None or record.position < 0:
            raise not_filled(view.name, record)
        return StoredView.of(view, context.planner.plan(self.catalog, view), record.state, record.rows)

    def table_rows(self, table: Table) -> int:
        """Return how many rows ``table`` has."""
        return self.base.count(format_of(table).database)

    def table_batches(self, context: EvaluationContext, table: Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``table``; of a large one by short transactions, as of this moment's position."""
        if self.locked or self.table_rows(table) <= context.rows_local:
            return scan_batches(table, self.base)
        return scan_as_of(context.base, table, self.position)

    def held(self, context: EvaluationContext) -> AbstractContextManager[object]:
        """Hold the log behind this moment's position, so that tasks can read base tables as of it."""
        return nullcontext() if self.locked else holding(context.base, "query", self.position)


def not_filled(name: str, record: ViewRecord | None) -> InputError:
    """Return the error of reading a view that was never published, with the row that it waits for if there is one."""
    message = f"View {name!r} holds no rows yet: run REFRESH MATERIALIZED VIEW {name}."
    if record is not None and record.is_failed:
        first = record.failures[0]
        why = f"{first.reason} at {first.key}{remedy(first.reason)}"
        message = f"View {name!r} holds no rows yet, since it FAILED when it was filled by {why}. Then refresh it."
    return InputError("VIEW_NOT_FILLED", message, {"view": name})


@contextmanager
def open_moment(context: EvaluationContext) -> Iterator[Moment]:
    """Open a moment: the present."""
    version = -1
    while True:
        with context.views.read() as views, context.base.read() as base:
            catalog = read_catalog(base)
            # After a swap between the two looks the older one lacks a view of the catalog, or has it half built.
            if catalog.version == version or _has_all_views(views, catalog):
                yield Moment(base, views, catalog, head(base))
                return
            version = catalog.version


def _has_all_views(views: ReadTransaction, catalog: Catalog) -> bool:
    filled = [view for view in catalog.views.values() if view.state != BUILDING]
    return all(_is_in_its_cadence(read_view(views, view.id), view) for view in filled)


def _is_in_its_cadence(record: ViewRecord | None, view: ViewDefinition) -> bool:
    return record is not None and record.state.startswith(f"{view.cadence}/")
