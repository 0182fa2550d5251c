"""Reading tables and views by key: single gets, scans, and snapshots of several at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.closing import Closing
from viewkeeper.errors import InputError, StoreError
from viewkeeper.evaluation.moments import EvaluationContext, Moment, not_filled, open_moment
from viewkeeper.log.position import Position
from viewkeeper.pipeline.records import ViewRecord, publishing_count, read_view
from viewkeeper.store import scans, values
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog, catalog_version
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
        catalog: always this one; None for the present one.
    """

    def __init__(self, engine: Engine, catalog: Catalog | None = None) -> None:
        self._engine = engine
        self._pinned = catalog
        # In one piece, so that a thread never finds one catalog's forms under another.
        self._known: tuple[Catalog, dict[str, Table | StoredView]] = (catalog or Catalog(), {})

    def find(self, name: str) -> Table | StoredView:
        """Return the table or view called ``name``.

        Raises:
            InputError: ``TABLE_OR_VIEW_NOT_FOUND``, or ``VIEW_NOT_FILLED``.
        """
        return self.find_with_version(name)[0]

    def find_with_version(self, name: str) -> tuple[Table | StoredView, int]:
        """Return the table or view called ``name``, and the version of the catalog that says so; see ``find``."""
        catalog = self._pinned or self._engine.coordinator.catalog()
        if catalog.version != self._known[0].version:
            self._known = (catalog, {})
        catalog, known = self._known
        found = known.get(name)
        if found is None:
            found = known[name] = self._make(catalog, name)
        return found, catalog.version

    def _make(self, catalog: Catalog, name: str) -> Table | StoredView:
        found = catalog.relation(name)
        return found if isinstance(found, Table) else stored_view(self._engine, catalog, found)


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
    with engine.store.views.read() as txn:
        record = read_view(txn, view.id)
    form = b"" if record is None else record.rows
    return StoredView.of(view, engine.coordinator.planner.plan(catalog, view), f"{view.cadence}/v{view.id}", form)


class Reader(Closing):
    """Reads at one moment of each space, opened when it is first needed; use as a context manager.

    Args:
        engine: the connection.
        names: its names.
        moment: read at this one; None for the present.
    """

    def __init__(self, engine: Engine, names: Names, moment: Moment | None = None) -> None:
        self._engine = engine
        self._names = names
        self._open = ExitStack()
        self._base = moment.base if moment is not None else None
        self._views = moment.views if moment is not None else None
        self._is_pinned = moment is not None
        self._zone = engine.settings.time_zone

    def close(self) -> None:
        """End the reading transactions."""
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

    def _find(self, name: str) -> Table | StoredView:
        """Return what ``name`` means at this reader's moments.

        Between the look at the catalog and the moment a table's columns may change, or a view's version be swapped so
        that its rows are gone: look again, at both.
        """
        found, version = self._names.find_with_version(name)
        record = self._record(found)
        while not self._is_pinned and not self._is_there(found, record, version):
            self._open.close()
            self._base = self._views = None
            before = found
            found, version = self._names.find_with_version(name)
            record = self._record(found)
            if found is before and isinstance(found, StoredView):
                break  # The catalog is still the same: the view's rows are not to come by another look.
        if record is not None and record.position < 0:
            # It FAILED before it ever had rows: that none is found would say that there is none.
            raise not_filled(found.name, record)
        return found

    def _record(self, found: Table | StoredView) -> ViewRecord | None:
        return read_view(self.views, found.id) if isinstance(found, StoredView) else None

    def _is_there(self, found: Table | StoredView, record: ViewRecord | None, version: int) -> bool:
        return record is not None if isinstance(found, StoredView) else catalog_version(self.base) == version

    def get(self, name: str, key: object) -> Row | None:
        """Return the row at ``key``."""
        found = self._find(name)
        if isinstance(found, StoredView):
            return found.get(self.views, key, self._zone)
        return self._row_of(found, key)

    def _row_of(self, found: Table, key: object) -> Row | None:
        format_ = format_of(found)
        raw = self.base.get(
            format_.database, format_.key_codec.encode_values(values.key_of_table(found, key, self._zone))
        )
        return None if raw is None else dict(zip(found.schema.names, format_.decode_row(raw), strict=True))

    def multi_get(self, name: str, keys: Sequence[object]) -> list[Row | None]:
        """Return the rows at ``keys``, in order."""
        found = self._find(name)
        if isinstance(found, StoredView):
            return found.multi_get(self.views, keys, self._zone)
        return [self._row_of(found, key) for key in keys]

    def scan(
        self, name: str, prefix: object, start: object, stop: object, reverse: bool, limit: int | None
    ) -> Iterator[Row]:
        """Yield rows in key order."""
        _check_limit(limit)
        found = self._find(name)
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
        return self._batches(self._find(name))

    def _batches(self, found: Table | StoredView) -> Iterator[pa.RecordBatch]:
        if isinstance(found, StoredView):
            yield from found.batches(self.views)
        else:
            yield from scans.scan_batches(found, self.base)

    def arrow(self, name: str) -> pa.Table:
        """Return all rows."""
        found = self._find(name)
        schema = found.visible_schema if isinstance(found, StoredView) else found.schema
        return pa.Table.from_batches(list(self._batches(found)), schema.to_arrow())


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InputError("INVALID_LIMIT", f"The limit of a scan is None or a number from 0 on, not {limit!r}.")


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
        """The columns that users see.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.table("sales").schema.names
            ('product', 'total')
        """
        found = self._engine.names.find(self._name)
        return found.visible_schema if isinstance(found, StoredView) else found.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows as Arrow batches, at one moment.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     sum(batch.num_rows for batch in db.table("orders").batches())
            3
        """
        with reader(self._engine) as moment:
            yield from moment.batches(self._name)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table, at one moment.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     db.table("orders").to_arrow().column("price").to_pylist()
            [5, 7, 4]
        """
        with reader(self._engine) as moment:
            return moment.arrow(self._name)

    def to_pandas(self) -> Any:
        """Return all rows as a pandas frame, at one moment.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     int(db.table("orders").to_pandas()["price"].sum())
            16
        """
        return self.to_arrow().to_pandas()


class Snapshot(Closing):
    """One moment of the store, for reads that belong together; use as a context manager.

    All views are seen at one publishing, base tables at ``position``. It holds back the reuse of space, so it ends by
    itself after ``snapshot_timeout_seconds``.

    Args:
        engine: the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open = ExitStack()
        self._moment = self._open.enter_context(open_moment(EvaluationContext(engine.store.base, engine.store.views)))
        self._catalog = self._moment.catalog
        self._reader = Reader(engine, Names(engine, self._catalog), self._moment)
        self._deadline = engine.clock.monotonic_seconds() + engine.settings.snapshot_timeout_seconds
        self.position = Position(self._moment.position)
        self.epoch = publishing_count(self._moment.views)

    def refusal(self) -> StoreError | None:
        """Return the error of a closed connection or an ended snapshot, None while it can be read.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     moment = db.snapshot()
            ...     moment.close()
            ...     moment.refusal().code
            'SNAPSHOT_ENDED'
        """
        closed = self._engine.refusal()
        if closed is not None:
            return closed
        if self._engine.clock.monotonic_seconds() <= self._deadline:
            return None
        limit = f"{self._engine.settings.snapshot_timeout_seconds:g} s"
        message = f"The snapshot has ended (it may stay open {limit}): take another, or set snapshot_timeout_seconds."
        return StoreError("SNAPSHOT_ENDED", message)

    def close(self) -> None:
        """End the snapshot; ending twice is fine.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     moment = db.snapshot()
            ...     moment.close()
            ...     moment.refusal() is None
            False
        """
        self._deadline = -1.0
        self._open.close()

    def _live(self) -> Reader:
        refusal = self.refusal()
        if refusal is not None:
            self._open.close()
            raise refusal
        return self._reader

    def get(self, name: str, key: object) -> Row | None:
        """Return the row of a table or view at ``key``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db, db.snapshot() as moment:
            ...     moment.get("sales", "tea")
            {'product': 'tea', 'total': 9}
        """
        return self._live().get(name, key)

    def multi_get(self, name: str, keys: Sequence[object]) -> list[Row | None]:
        """Return the rows at ``keys``, in order.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db, db.snapshot() as moment:
            ...     moment.multi_get("sales", ["jam", "rum"])
            [{'product': 'jam', 'total': 7}, None]
        """
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
        """Yield rows of a table or view in key order.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db, db.snapshot() as moment:
            ...     [row["price"] for row in moment.scan("orders", limit=2)]
            [5, 7]
        """
        for row in self._live().scan(name, prefix, start, stop, reverse, limit):
            self._live()
            yield row

    def to_arrow(self, name: str) -> pa.Table:
        """Return all rows of a table or view.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db, db.snapshot() as moment:
            ...     moment.to_arrow("orders").num_rows
            3
        """
        return self._live().arrow(name)

    def position_of(self, view: str) -> Position:
        """Return the log position that ``view`` shows.

        Raises:
            InputError: ``VIEW_NOT_FOUND`` or ``VIEW_NOT_FILLED``.

        Example:
            >>> from viewkeeper.database.examples import shop
            >>> with shop() as db:
            ...     behind = db.put("orders", {"id": 4, "product": "rum", "price": 9})
            ...     with db.snapshot() as moment:
            ...         moment.position_of("sales") < moment.position == behind
            True
        """
        definition = self._catalog.view(view)
        self._live()
        record = read_view(self._moment.views, definition.id)
        if record is None or record.position < 0:
            raise not_filled(definition.name, record)
        return Position(record.position)
