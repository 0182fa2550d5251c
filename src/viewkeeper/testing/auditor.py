"""The auditor: knows what the base tables held at each position, and so what each published view must show.

It keeps a history of its own, fed with what writers were told, and compares with it what readers could see:

- the base tables hold every confirmed write, and nothing else;
- a view's rows are those of its query, computed in one go, over the tables as they were at the view's position;
- a view is FAILED exactly where its query cannot be computed at its cadence's position, and then shows its last good
  state;
- positions and epochs only grow, views that refresh together stand at one position, no view is ahead of one it reads;
- the log behind every cadence is still there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from viewkeeper.errors import EvaluationError
from viewkeeper.expressions.errors import READS_FAILED_VIEW
from viewkeeper.log import reader, retention
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.layouts import STATE_OUTDATED
from viewkeeper.pipeline.records import CadenceRecord, ViewRecord, publishing_count, read_cadences, read_view
from viewkeeper.store import scans
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog, read_catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, NEEDS_REBUILD, ViewDefinition
from viewkeeper.views.planning import Planner
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.delta import Delta

Rows = dict[object, dict[str, Any]]
Tables = dict[str, Rows]
Bag = Counter[str]

_NAMESPACE = "audit"


class Auditor:
    """Compares a store with what it must be.

    Args:
        base: its base space.
        views: its views space.
    """

    def __init__(self, base: Space, views: Space) -> None:
        self._base = base
        self._views = views
        self._planner = Planner()
        self._history: list[tuple[int, Tables]] = [(0, {})]
        self._changes: dict[int, list[Callable[[Tables], None]]] = {}
        self._circuits: dict[tuple[object, ...], tuple[Circuit, int]] = {}
        self._expected: dict[tuple[object, ...], Bag | None] = {}
        self._positions: dict[object, int] = {}
        self.comparisons = 0

    def reopen(self, base: Space, views: Space) -> None:
        """Go on with the same store, opened anew.

        Args:
            base: its base space.
            views: its views space.
        """
        self._base, self._views = base, views

    # ---- what was written ----

    def committed(self, position: int, change: Callable[[Tables], None]) -> None:
        """Note a transaction.

        Args:
            position: its place in the log.
            change: makes of what the base tables held before it what they held after it.
        """
        self._changes[position] = [*self._changes.get(position, ()), change]
        # Others may have committed after it and been noted before it.
        while self._history[-1][0] >= position:
            self._history.pop()
        for later in sorted(p for p in self._changes if p >= position):
            tables = _copy(self._history[-1][1])
            for each in self._changes[later]:
                each(tables)
            self._history.append((later, tables))
            # A transaction that changes nothing has no place of its own, only the one before it.
            again = _copy(tables)
            for each in self._changes[later]:
                each(again)
                assert again == tables, f"two transactions have taken position {later}"

    def at(self, position: int) -> Tables:
        """Return what the base tables held at ``position``."""
        return next(tables for since, tables in reversed(self._history) if since <= position)

    # ---- what is there ----

    def check(self) -> None:
        """Compare everything.

        Raises:
            AssertionError: saying what differs.
        """
        with self._views.read() as views, self._base.read() as base:
            catalog = read_catalog(base)
            self._check_tables(catalog, base)
            cadences = {record.name: record for record in read_cadences(views)}
            self._check_records(views, base, cadences)
            records = {id_: read_view(views, id_) for id_ in catalog.views}
            for view in catalog.views.values():
                record = records[view.id]
                if view.state == BUILDING:
                    continue
                assert record is not None, f"view {view.name} is {view.state} and was never published"
                self._check_view(catalog, view, record, cadences, views)
                self._check_inputs(catalog, view, record, records)

    def _check_tables(self, catalog: Catalog, base: ReadTransaction) -> None:
        wanted = self._history[-1][1]
        for table in catalog.tables.values():
            found = Counter(repr(row) for row in scans.scan(table, base, scans.Bounds(), False, None))
            expected = Counter(repr(row) for row in _tuples(table, wanted.get(table.name, {})))
            assert found == expected, f"table {table.name}: {_difference(found, expected)}"

    def _check_records(
        self, views: ReadTransaction, base: ReadTransaction, cadences: Mapping[str, CadenceRecord]
    ) -> None:
        head = reader.head(base)
        self._grows("publishings", publishing_count(views))
        behind = {held.consumer.name for held in retention.consumers(base) if held.consumer.needs_rebuild}
        for name, record in cadences.items():
            assert record.position <= head, f"cadence {name} is ahead of the log"
            if record.build is None:
                self._grows(("cadence", name), record.position)
            if f"cadence/{name}" not in behind:
                assert reader.purged_to(base) <= record.position, f"the log behind cadence {name} is gone"

    def _check_view(
        self,
        catalog: Catalog,
        view: ViewDefinition,
        record: ViewRecord,
        cadences: Mapping[str, CadenceRecord],
        views: ReadTransaction,
    ) -> None:
        name = f"view {view.name} ({view.id}, {view.state}, {view.cadence})"
        assert STATE_OUTDATED not in (view.reason or ""), f"{name}: {view.reason}, and there is but one version"
        if record.position >= 0:
            self._grows(("view", view.id), record.position)
            expected = self._whole(catalog, view, record.position)
            assert expected is not None, f"{name} shows rows at {record.position}, where it cannot be computed"
            found = self._stored(catalog, view, record, views)
            assert found == expected, f"{name} at {record.position}: {_difference(found, expected)}"
        if view.state != ACTIVE:
            return
        cadence = cadences.get(view.cadence)
        assert cadence is not None, f"{name} has no cadence"
        computable = self._whole(catalog, view, cadence.position) is not None
        waits = any(failure.reason == READS_FAILED_VIEW for failure in record.failures)
        assert record.is_failed is (waits or not computable), f"{name}: {record.failures}, computable {computable}"
        if not record.is_failed:
            assert record.position == cadence.position, f"{name} is at {record.position}, not at {cadence.position}"

    def _check_inputs(
        self, catalog: Catalog, view: ViewDefinition, record: ViewRecord, records: Mapping[int, ViewRecord | None]
    ) -> None:
        for id_ in view.read_ids:
            below = records.get(id_)
            if view.state != ACTIVE or below is None or catalog.views[id_].state in (BUILDING, NEEDS_REBUILD):
                continue
            ahead = f"view {view.name} at {record.position} is ahead of {catalog.views[id_].name} at {below.position}"
            assert record.position <= below.position, ahead

    def _grows(self, what: object, value: int) -> None:
        before = self._positions.get(what, value)
        assert value >= before, f"{what} went back from {before} to {value}"
        self._positions[what] = value

    # ---- both sides of a comparison ----

    def _stored(self, catalog: Catalog, view: ViewDefinition, record: ViewRecord, txn: ReadTransaction) -> Bag:
        stored = StoredView.of(view, self._planner.plan(catalog, view), record.state, record.rows)
        return Counter(repr(row) for batch in stored.batches(txn) for row in _rows(batch))

    def _whole(self, catalog: Catalog, view: ViewDefinition, position: int) -> Bag | None:
        """Return the rows of the view's query at ``position``, None where they cannot be computed."""
        tables = self.at(position)
        query = (view.id, view.sql, view.reads)
        stamp = (*query, id(tables))
        if stamp not in self._expected:
            self.comparisons += 1
            self._expected[stamp] = self._compute(catalog, view, query, tables)
        return self._expected[stamp]

    def _compute(self, catalog: Catalog, view: ViewDefinition, query: tuple[object, ...], tables: Tables) -> Bag | None:
        bases = [catalog.tables[id_] for id_ in catalog.base_tables_of(view)]
        versions = tuple((table.id, table.versions) for table in bases)
        plan = self._planner.plan(catalog, view)
        if (query, versions) not in self._circuits:
            compiled = self._planner.compile(catalog, (view,), _NAMESPACE)
            self._circuits[query, versions] = (compiled.circuit, compiled.views[view.id].root)
        circuit, root = self._circuits[query, versions]
        deltas = {}
        for table in bases:
            batch = format_of(table).batch_of(_tuples(table, tables.get(table.name, {})))
            deltas[table.id] = Delta.empty(table.schema.to_arrow()) if batch is None else Delta.from_rows(batch)
        try:
            output = circuit.whole(deltas)[root].consolidate()
        except EvaluationError:
            return None
        if view.declared_key and not _is_unique(output, plan.key):
            return None
        rows = _rows(output.rows.select(list(range(plan.visible))))
        return Counter(
            repr(row) for row, weight in zip(rows, output.weights.tolist(), strict=True) for _ in range(weight)
        )


def apply(tables: Tables, operations: Iterable[Sequence[Any]]) -> None:
    """Do ``("put", table, row)`` and ``("delete", table, key)`` to tables whose key is their column ``id``."""
    for kind, table, value in operations:
        if kind == "put":
            tables.setdefault(table, {})[value["id"]] = dict(value)
        else:
            tables.get(table, {}).pop(value, None)


def _copy(tables: Tables) -> Tables:
    return {name: dict(rows) for name, rows in tables.items()}


def _tuples(table: Table, rows: Rows) -> list[tuple[object, ...]]:
    names, defaults = table.schema.names, table.added_defaults
    return [tuple(row.get(n, d) for n, d in zip(names, defaults, strict=True)) for row in rows.values()]


def _rows(batch: Any) -> list[tuple[object, ...]]:
    if not batch.num_columns:
        return [() for _ in range(batch.num_rows)]
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _is_unique(delta: Delta, key: tuple[int, ...]) -> bool:
    keys = Counter(_rows(delta.rows.select(list(key))))
    return max(keys.values(), default=0) <= 1 and bool((delta.weights == 1).all())


def _difference(found: Bag, expected: Bag) -> str:
    return f"unexpected {list((found - expected).elements())}, missing {list((expected - found).elements())}"
