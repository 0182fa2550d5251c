"""The oracle: runs a script and, after each refresh, compares every view with its query over what the tables held then.

    view as published at position p   =   whole (the circuit's plain twins) over the tables as of p
    FAILED                            =   whole raises over the tables as of the cadence's position, or the declared key
                                          is not unique there; the rows are those of the last good position

The tables are plain dictionaries (``model.TableModel``), kept for every position, so that neither store nor log takes
part in the answer. Where DuckDB means the same, it is asked too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from viewkeeper.clock import seeded
from viewkeeper.database.connection import Database
from viewkeeper.errors import EvaluationError, InputError, ViewFailed
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.records import ViewRecord, read_cadence, read_view
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.testing.evolution import AddColumn, DropColumn, MoveRow, RenameColumn, TableChange, WidenColumn
from viewkeeper.testing.model import TableModel
from viewkeeper.testing.scripts import AlterView, Commit, Create, Refresh, Script, ScriptTable, ScriptView, comparable
from viewkeeper.testing.user_functions import register_with
from viewkeeper.testing.ways import draw_ways
from viewkeeper.views.definition import ACTIVE, ViewDefinition
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema, to_arrow_type
from viewkeeper.zset.values import from_raw_list, to_raw

Bag = Counter[tuple[Any, ...]]
Tables = dict[str, pa.RecordBatch]
DuckDb = Callable[[str, Mapping[str, pa.RecordBatch]], "list[tuple[Any, ...]] | None"]


def in_memory(time_zone: str = "UTC") -> Database:
    """Return a new store in memory whose epochs all run in process; views of policy AUTO go drawn ways."""
    database = Database(memory_store(), Settings(executor="local", time_zone=time_zone))
    draw_ways(database._engine.coordinator.ways, seeded(0))
    return database


@dataclass
class Expected:
    """What a view's query gives over some tables: its rows with hidden columns, or the reason why there are none."""

    rows: Bag | None
    reason: str = ""


@dataclass
class Run:
    """One run of a script.

    Args:
        script: what to do.
        database: an empty store.
        duckdb: asks DuckDB, None to leave it out.
    """

    script: Script
    database: Database
    duckdb: DuckDb | None = None
    compared: int = 0
    model: TableModel = field(init=False)
    history: dict[int, Tables] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    _circuits: dict[int, tuple[Circuit, int]] = field(default_factory=dict)
    _expected: dict[tuple[int, int], Expected] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = TableModel(self.script)
        for table in self.script.tables:
            self.database.sql(table.definition)
        register_with(self.database, self.script.queries())
        self._learn_columns()
        self._tables: Tables = {t.name: self._batch(t) for t in self.script.tables}
        self._remember()

    def all_steps(self) -> Run:
        """Do all steps, comparing after each refresh; at the end the tables are compared too.

        Raises:
            AssertionError: naming the view, what it holds and what it should hold.
        """
        for number in range(len(self.script.steps)):
            self.step(number)
        self.compare_tables()
        return self

    def step(self, number: int) -> None:
        """Do one step."""
        step = self.script.steps[number]
        if isinstance(step, Commit):
            self.commit(step)
            return
        # A view is created, or altered, even where some rows fail it: it then has no rows yet.
        with suppress(ViewFailed):
            if isinstance(step, Create):
                self.created.append(step.view)
                self.model.define(self.script.view(step.view))
                self.database.sql(self.model.views[step.view].definition)
            elif isinstance(step, Refresh):
                self.database.refresh(*(name for name in step.views if name in self.created))
            elif isinstance(step, AlterView):
                self.model.alter(step)
                self.database.sql(step.statement)
            else:
                self.change(step)
        self._remember()
        self.compare()

    def change(self, step: TableChange) -> None:
        """Change a table, in the store and in the model, or see it refused and nothing changed."""
        refusal = self.model.refusal(step)
        if refusal is not None:
            self._see_refused(step, refusal)
            return
        self.model.change(step)
        with suppress(ViewFailed):
            self._say(step)
        self._learn_columns()
        if isinstance(step, AddColumn | DropColumn | RenameColumn | WidenColumn):
            schema = self._schemas[step.table]
            for tables in self.history.values():
                tables[step.table] = _with_change(tables[step.table], step, schema)
            # They know columns by position.
            self._circuits.clear()
        self._tables[step.table] = self._batch(self.model.tables[step.table])

    def _see_refused(self, step: TableChange, refusal: str) -> None:
        coordinator = self.database._engine.coordinator
        before, refused = coordinator.catalog(), None
        try:
            self._say(step)
        except InputError as error:
            refused = error
        code, details = (refused.code, refused.details) if refused else ("nothing", {})
        assert code == refusal, f"{step.statement}: refused with {code}, not {refusal}"
        assert coordinator.catalog() == before, f"{step.statement}: refused, but changed something"
        if isinstance(step, DropColumn):
            users, named = self.model.users_of(step.table, step.name), str(details["views"])
            assert all(repr(user) in named for user in users), (
                f"{step.statement}: names {named}, but not all of {users}"
            )

    def _say(self, step: TableChange) -> None:
        self.database.sql(step.statement, step.parameters if isinstance(step, MoveRow) else None)

    def _learn_columns(self) -> None:
        self._schemas = {t.name: t.schema for t in self.database._engine.coordinator.catalog().tables.values()}

    def commit(self, step: Commit) -> None:
        """Do one transaction, in the store and in the model."""
        with self.database.transaction() as transaction:
            for operation in step.operations:
                if not self.model.apply(operation):
                    continue
                if operation.kind == "put":
                    transaction.put(operation.table, operation.values)
                elif operation.kind == "delete":
                    transaction.delete(operation.table, operation.values)
                else:
                    transaction.update(operation.table, operation.key, operation.values)
        for name in {operation.table for operation in step.operations}:
            self._tables[name] = self._batch(self.model.tables[name])
        self._remember()

    def _remember(self) -> None:
        self.history[self.database._engine.coordinator.head()] = dict(self._tables)

    def _batch(self, table: ScriptTable) -> pa.RecordBatch:
        return batch_of(self._schemas[table.name], list(self.model.rows[table.name].values()))

    # ---- comparing ----

    def compare(self) -> None:
        """Compare every view with its query at the position that it shows."""
        catalog = self.database._engine.coordinator.catalog()
        for name in self.created:
            view = catalog.view(name)
            if view.state == ACTIVE:
                self._compare_view(view)
                self.compared += 1

    def _compare_view(self, view: ViewDefinition) -> None:
        with self.database._engine.store.views.read() as txn:
            record, cadence = read_view(txn, view.id), read_cadence(txn, view.cadence)
            assert record is not None, f"{view.name}: nothing is published"
            assert cadence is not None, f"{view.name}: its cadence {view.cadence} is unknown"
            rows = self._rows(txn, view, record)
        now = self.expected(view, cadence.position)
        self._compare_state(view, record, cadence.position, now)
        if record.position >= 0:
            shown = now if record.position == cadence.position else self.expected(view, record.position)
            assert shown.rows is not None, f"{view.name}: shows position {record.position}, where {shown.reason}"
            same_bag(view.name, rows, shown.rows)
            self._ask_duckdb(view, record.position, shown.rows)
        else:
            assert not rows, f"{view.name}: has rows before it was ever good"

    def _rows(self, txn: ReadTransaction, view: ViewDefinition, record: ViewRecord) -> Bag:
        stored = StoredView.of(view, self._plan(view), record.state, record.rows)
        return bag_of(list(stored.batches(txn, hidden=True)))

    def published(self, name: str) -> Bag:
        """Return the rows of a view, hidden columns included, as they are published."""
        view = self.database._engine.coordinator.catalog().view(name)
        with self.database._engine.store.views.read() as txn:
            record = read_view(txn, view.id)
            return Counter() if record is None else self._rows(txn, view, record)

    def _compare_state(self, view: ViewDefinition, record: ViewRecord, position: int, now: Expected) -> None:
        if record.is_failed:
            assert now.rows is None, f"{view.name}: is FAILED with {record.failures}, though its query can be computed"
            return
        assert now.rows is not None, f"{view.name}: is good, though {now.reason}"
        assert record.position == position, f"{view.name}: good, but at {record.position}, its cadence at {position}"

    def _plan(self, view: ViewDefinition) -> Any:
        coordinator = self.database._engine.coordinator
        return coordinator.planner.plan(coordinator.catalog(), view)

    def expected(self, view: ViewDefinition, position: int) -> Expected:
        """Return what ``view`` is over the tables at ``position``."""
        at = max(p for p in self.history if p <= position)
        known = self._expected.get((view.id, at))
        if known is None:
            known = self._expected[view.id, at] = self._whole(view, self.history[at])
        return known

    def _whole(self, view: ViewDefinition, tables: Tables) -> Expected:
        coordinator = self.database._engine.coordinator
        catalog = coordinator.catalog()
        if view.id not in self._circuits:
            compilation = coordinator.planner.compile(catalog, (view,), "oracle")
            self._circuits[view.id] = compilation.circuit, compilation.views[view.id].root
        circuit, root = self._circuits[view.id]
        deltas = {t: Delta.from_rows(tables[catalog.tables[t].name]) for t in circuit.tables}
        try:
            found = circuit.whole(deltas)[root]
        except EvaluationError as error:
            return Expected(None, error.message)
        for below in (catalog.views[i] for i in view.read_ids if i in catalog.views):
            # A view stays behind with those that it reads.
            reason = self._whole(below, tables).reason
            if reason:
                return Expected(None, f"{below.name} fails: {reason}")
        return self._checked_keys(view, bag_of([found.rows], found.weights.tolist()))

    def _checked_keys(self, view: ViewDefinition, rows: Bag) -> Expected:
        """Return the rows, or the reason where a declared key, of this view or of one below, is not unique."""
        plan = self._plan(view)
        if not plan.declared:
            return Expected(rows)
        keys = Counter(tuple(row[i] for i in plan.key) for row in rows.elements())
        shared = [key for key, count in keys.items() if count > 1]
        return Expected(None, f"the declared key {shared[0]} is not unique") if shared else Expected(rows)

    def _ask_duckdb(self, view: ViewDefinition, position: int, rows: Bag) -> None:
        defined = self.model.views[view.name]
        # Where a column has another name, views of before know it by the old one.
        if self.duckdb is None or not defined.in_duckdb or self.model.has_renamed:
            return
        at = max(p for p in self.history if p <= position)
        answer = self.duckdb(with_views(tuple(self.model.views.values()), defined), self.history[at])
        if answer is not None:
            visible = len(self._plan(view).schema)
            mine = Counter(row[:visible] for row in rows.elements())
            same_bag(f"{view.name} by DuckDB", mine, Counter(tuple(map(comparable, row)) for row in answer))

    def compare_tables(self) -> None:
        """Compare the base tables with the model."""
        for name, rows in self.model.rows.items():
            held = bag_of(self.database.table(name).to_arrow().to_batches())
            same_bag(name, held, bag_of([self._tables[name]]))
            assert sum(held.values()) == len(rows), name

    def current(self, table: str) -> pa.RecordBatch:
        """Return what a table holds now, by the model."""
        return self._tables[table]

    def good_views(self) -> list[ScriptView]:
        """Return the views that show the last position: those that another engine can be asked about."""
        catalog = self.database._engine.coordinator.catalog()
        head = self.database._engine.coordinator.head()
        good = []
        with self.database._engine.store.views.read() as txn:
            for name in self.created:
                record = read_view(txn, catalog.view(name).id)
                if record is not None and not record.is_failed and record.position == head:
                    good.append(self.model.views[name])
        return good


def with_views(views: Sequence[ScriptView], view: ScriptView) -> str:
    """Return the query of ``view`` over base tables only: those of ``views`` before it stand in front as WITH."""
    sql, below = view.sql, views[: views.index(view)]
    named = ", ".join(f"{v.name} AS ({v.sql})" for v in below if v.name in sql or any(v.name in b.sql for b in below))
    if not named:
        return sql
    words = next((words for words in ("WITH RECURSIVE ", "WITH ") if sql.startswith(words)), "")
    return f"{words}{named}, {sql.removeprefix(words)}" if words else f"WITH {named} {sql}"


def batch_of(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return rows of Python values as a batch."""
    columns = []
    for column in schema.columns:
        convert = to_raw(column.type)
        raw = [None if row[column.name] is None else convert(row[column.name]) for row in rows]
        columns.append(from_raw_list(raw, column.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema.to_arrow())


def _with_change(
    batch: pa.RecordBatch, change: AddColumn | DropColumn | RenameColumn | WidenColumn, schema: Schema
) -> pa.RecordBatch:
    """Return rows of before as they are read after a change of columns."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if isinstance(change, AddColumn):
        kind = schema.types[-1]
        value = None if change.default is None else to_raw(kind)(change.default)
        columns[change.name] = from_raw_list([value] * batch.num_rows, kind)
    elif isinstance(change, DropColumn):
        del columns[change.name]
    elif isinstance(change, WidenColumn):
        kind = schema.types[schema.index(change.name)]
        columns[change.name] = columns[change.name].cast(to_arrow_type(kind))
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema.to_arrow())


def bag_of(batches: Sequence[pa.RecordBatch], weights: Sequence[int] | None = None) -> Bag:
    """Return the rows of batches as a bag of comparable values."""
    bag: Bag = Counter()
    for batch in batches:
        columns = [[comparable(value) for value in column.to_pylist()] for column in batch.columns]
        for number, row in enumerate(zip(*columns, strict=True)):
            bag[row] += 1 if weights is None else weights[number]
    return Counter({row: count for row, count in bag.items() if count})


def same_bag(name: str, left: Bag, right: Bag) -> None:
    """Assert that two bags are equal.

    Raises:
        AssertionError: with the rows that differ.
    """
    if left != right:
        more, missing = list((left - right).elements())[:5], list((right - left).elements())[:5]
        raise AssertionError(f"{name}: unexpected {more}, missing {missing}")
