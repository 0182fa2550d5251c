"""Reading tables and views by key: single gets, scans, and snapshots of several at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.errors import InputError, StoreError
from viewkeeper.log import reader as log
from viewkeeper.log.position import Position
from viewkeeper.pipeline.records import publishing_count, read_view
from viewkeeper.store import scans, values
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import BUILDING, ViewDefinition
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.schema import Schema

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

Row = dict[str, Any]


class Names:
    """What readers look names up in: tables and views in their stored form, remembered for one catalog.

    Args:
        engine: the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._version = -1
        self._known: dict[str, Table | StoredView] = {}
        self._catalog = Catalog()

    def find(self, name: str) -> Table | StoredView:
        """Return the table or view called ``name``.

        Raises:
            InputError: ``TABLE_OR_VIEW_NOT_FOUND``, or ``VIEW_NOT_FILLED``.
        """
        catalog = self._engine.coordinator.catalog()
        if catalog.version != self._version:
            self._known.clear()
            self._version, self._catalog = catalog.version, catalog
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._make(name)
        return found

    def _make(self, name: str) -> Table | StoredView:
        found = self._catalog.find(name)
        if found is None:
            names = sorted(
                [*(t.name for t in self._catalog.tables.values()), *(v.name for v in self._catalog.views.values())]
            )
            known = f"There are: {', '.join(names[:20])}." if names else "There are none yet."
            raise InputError("TABLE_OR_VIEW_NOT_FOUND", f"There is no table or view {name!r}. {known}")
        return found if isinstance(found, Table) else stored_view(self._engine, self._catalog, found)


def stored_view(engine: Engine, catalog: Catalog, view: ViewDefinition) -> StoredView:
    """Return ``view`` as its rows are stored.

    Raises:
        InputError: ``VIEW_NOT_FILLED`` before its rows are there.
    """
    if view.state == BUILDING:
        remedy = f"run REFRESH MATERIALIZED VIEW {view.name}"
        raise InputError(
            "VIEW_NOT_FILLED", f"View {view.name!r} has no rows yet: {remedy}, or let a maintainer fill it."
        )
    return StoredView.of(view, engine.coordinator.planner.plan(catalog, view), f"{view.cadence}/v{view.id}")


class Reader:
    """Reads at one moment of each space, opened when it is first needed; use as a context manager.

    Args:
        engine: the connection.
        names: its names.
    """

    def __init__(self, engine: Engine, names: Names) -> None:
        self._engine = engine
        self._names = names
        self._open = ExitStack()
        self._base: ReadTransaction | None = None
        self._views: ReadTransaction | None = None
        self._zone = engine.settings.time_zone

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def base(self) -> ReadTransaction:
        """The moment of the base space."""
        if self._base is None:
            self._base = self._open.enter_context(self._engine.store.base.read())
        return self._base

    @property
    def views(self) -> ReadTransaction:
        """The moment of the views space."""
        if self._views is None:
            self._views = self._open.enter_context(self._engine.store.views.read())
        return self._views

    def get(self, name: str, key: object) -> Row | None:
        """Return the row at ``key``."""
        found = self._names.find(name)
        if isinstance(found, StoredView):
            return found.get(self.views, key, self._zone)
        format_ = format_of(found)
        raw = self.base.get(
            format_.database, format_.key_codec.encode_values(values.key_of_table(found, key, self._zone))
        )
        return None if raw is None else dict(zip(found.schema.names, format_.decode_row(raw), strict=True))

    def multi_get(self, name: str, keys: Sequence[object]) -> list[Row | None]:
        """Return the rows at ``keys``, in order."""
        found = self._names.find(name)
        if isinstance(found, StoredView):
            return found.multi_get(self.views, keys, self._zone)
        return [self.get(name, key) for key in keys]

    def scan(
        self, name: str, prefix: object, start: object, stop: object, reverse: bool, limit: int | None
    ) -> Iterator[Row]:
        """Yield rows in key order."""
        found = self._names.find(name)
        if isinstance(found, StoredView):
            yield from found.scan(self.views, prefix, start, stop, reverse, limit, self._zone)
            return
        bounds = scans.Bounds(*(self._bound(found, value) for value in (start, stop, prefix)))
        for row in scans.scan(found, self.base, bounds, reverse, limit):
            yield dict(zip(found.schema.names, row, strict=True))

    def _bound(self, table: Table, value: object) -> tuple[object, ...] | None:
        if value is None:
            return None
        count = len(value) if isinstance(value, tuple | list | dict) else 1
        columns = table.key_columns[:count]
        return values.key_values([c.name for c in columns], [c.type for c in columns], value, self._zone)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield all rows as Arrow batches."""
        found = self._names.find(name)
        if isinstance(found, StoredView):
            yield from found.batches(self.views)
        else:
            yield from scans.scan_batches(found, self.base)

    def arrow(self, name: str) -> pa.Table:
        """Return all rows."""
        found = self._names.find(name)
        schema = found.visible_schema if isinstance(found, StoredView) else found.schema
        return pa.Table.from_batches(list(self.batches(name)), schema.to_arrow())


def reader(engine: Engine) -> Reader:
    """Return a reader of the present moment."""
    return Reader(engine, engine.names)


class TableHandle:
    """A table or view as a whole; made by ``db.table``.

    Args:
        engine: the connection.
        name: its name.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    @property
    def schema(self) -> Schema:
        """The columns that users see."""
        found = self._engine.names.find(self._name)
        return found.visible_schema if isinstance(found, StoredView) else found.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows as Arrow batches, at one moment."""
        with reader(self._engine) as moment:
            yield from moment.batches(self._name)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table, at one moment."""
        with reader(self._engine) as moment:
            return moment.arrow(self._name)

    def to_pandas(self) -> Any:
        """Return all rows as a pandas frame, at one moment."""
        return self.to_arrow().to_pandas()


class Snapshot:
    """One moment of the store, for reads that belong together; use as a context manager.

    All views are seen at one publishing, base tables at ``position``. It holds back the reuse of space, so it ends by
    itself after ``snapshot_timeout_seconds``.

    Args:
        engine: the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names = Names(engine)
        self._reader = Reader(engine, self._names)
        self._deadline = engine.clock.monotonic_seconds() + engine.settings.snapshot_timeout_seconds
        self.position = Position(log.head(self._reader.base))
        self.epoch = publishing_count(self._reader.views)
        self._catalog = engine.coordinator.catalog()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the snapshot."""
        self._deadline = -1.0
        self._reader.__exit__(None, None, None)

    def _live(self) -> Reader:
        if self._engine.clock.monotonic_seconds() > self._deadline:
            self._reader.__exit__(None, None, None)
            limit = f"{self._engine.settings.snapshot_timeout_seconds:g} s"
            message = (
                f"The snapshot has ended (it may stay open {limit}): take another, or set snapshot_timeout_seconds."
            )
            raise StoreError("SNAPSHOT_ENDED", message)
        return self._reader

    def get(self, name: str, key: object) -> Row | None:
        """Return the row of a table or view at ``key``."""
        return self._live().get(name, key)

    def multi_get(self, name: str, keys: Sequence[object]) -> list[Row | None]:
        """Return the rows at ``keys``, in order."""
        return self._live().multi_get(name, keys)

    def scan(
        self,
        name: str,
        prefix: object = None,
        start: object = None,
        stop: object = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """Yield rows of a table or view in key order."""
        for row in self._live().scan(name, prefix, start, stop, reverse, limit):
            self._live()
            yield row

    def to_arrow(self, name: str) -> pa.Table:
        """Return all rows of a table or view."""
        return self._live().arrow(name)

    def position_of(self, view: str) -> Position:
        """Return the log position that ``view`` shows.

        Raises:
            InputError: ``VIEW_NOT_FOUND`` or ``VIEW_NOT_FILLED``.
        """
        definition = self._catalog.view(view)
        record = read_view(self._live().views, definition.id)
        if record is None or record.position < 0:
            raise InputError("VIEW_NOT_FILLED", f"View {view!r} has no rows yet.")
        return Position(record.position)
