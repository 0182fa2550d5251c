"""Small stores for the tests of evaluation: tables with rows, and views filled by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from viewkeeper.errors import ViewkeeperError
from viewkeeper.evaluation import dml
from viewkeeper.evaluation.merge import merge
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.queries import run_query
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.tree import Session
from viewkeeper.log.reader import head
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.records import ViewRecord, write_view
from viewkeeper.statements import model
from viewkeeper.statements.parse import parse_statement
from viewkeeper.store.key_value import Space
from viewkeeper.store.memory import MemorySpace
from viewkeeper.store.model import Table
from viewkeeper.store.scans import scan, scan_batches
from viewkeeper.store.transactions import PutRow, TableStore
from viewkeeper.views.catalog import Catalog, read_catalog, write_catalog
from viewkeeper.views.definition import ACTIVE, Refresh, ViewDefinition
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.keys import SINGLE_KEY, KeyCodec
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Column, Schema, SqlType
from viewkeeper.zset.versions import first_layout

_DML = {model.Insert: dml.insert, model.Update: dml.update, model.Delete: dml.delete, model.Merge: merge}


@dataclass
class Store:
    """A store and what it is evaluated with."""

    context: EvaluationContext

    @staticmethod
    def new(base: Space | None = None, views: Space | None = None, **options: object) -> Store:
        spaces = (base or MemorySpace(), views or MemorySpace())
        return Store(EvaluationContext(*spaces, **options))  # type: ignore[arg-type]

    def with_options(self, **options: object) -> Store:
        return Store(replace(self.context, **options))  # type: ignore[arg-type]

    # ---- definitions ----

    def catalog(self) -> Catalog:
        with self.context.base.read() as txn:
            return read_catalog(txn)

    def _write(self, after: Catalog) -> None:
        with self.context.base.write() as txn:
            write_catalog(txn, read_catalog(txn), after, "DDL", ())

    def create(
        self,
        name: str,
        columns: Mapping[str, SqlType],
        key: Sequence[str],
        rows: Sequence[tuple[object, ...]] = (),
        not_null: Sequence[str] = (),
        defaults: Mapping[str, object] | None = None,
    ) -> Table:
        catalog, names = self.catalog(), list(columns)
        made = Table(
            catalog.next_id,
            name,
            Schema(tuple(Column(n, t, n not in key and n not in not_null) for n, t in columns.items())),
            tuple(names.index(n) for n in key),
            tuple((defaults or {}).get(n) for n in names),
            (first_layout(tuple(columns.values())),),
            (None,) * len(names),
            (None,) * len(names),
        )
        self._write(catalog.with_table(made))
        self.put(name, rows)
        return made

    def put(self, name: str, rows: Sequence[tuple[object, ...]]) -> None:
        table = self.catalog().table(name)
        TableStore(self.context.base).commit([PutRow(table, row) for row in rows])

    def create_view(
        self, name: str, sql: str, key: tuple[str, ...] | None = None, session: Session | None = None
    ) -> None:
        catalog = self.catalog()
        relations = self.context.planner.relations(catalog)
        from viewkeeper.plan.build import plan_view

        plan_view(sql, relations, session or Session())
        definition = ViewDefinition(
            catalog.next_id, name, sql, None, key, None, (), Refresh(), "AUTO", session or Session(),
            tuple(relations.read.items()), relations.columns_read(), (), "continuous", ACTIVE,
        )  # fmt: skip
        self._write(catalog.with_view(definition))
        self.fill(name)

    def fill(self, name: str, failures: int = 0) -> None:
        """Write the view's rows as publishing would, from the base tables as they are."""
        catalog = self.catalog()
        view = catalog.view(name)
        plan = self.context.planner.plan(catalog, view)
        compiled = self.context.planner.compile(catalog, (view,), "c")
        with self.context.base.read() as txn:
            inputs = {
                id_: Delta.concat(
                    [Delta.from_rows(b) for b in scan_batches(catalog.tables[id_], txn)],
                    catalog.tables[id_].schema.to_arrow(),
                )
                for id_ in catalog.base_tables_of(view)
            }
            position = head(txn)
        circuit: Circuit = compiled.circuit
        rows = circuit.whole(inputs)[compiled.views[view.id].root].rows
        state = compiled.views[view.id].state
        self.write_rows(state, rows, plan.root.schema, plan.key)
        with self.context.views.write() as txn:
            write_view(txn, ViewRecord(view.id, state, f"{state}p", position, 1, 0.0, (), failures, "local"))

    def write_rows(self, state: str, rows: pa.RecordBatch, schema: Schema, key: Sequence[int]) -> None:
        keys = KeyCodec([schema.types[i] for i in key]).encode([rows.column(i) for i in key]) if key else [SINGLE_KEY]
        with self.context.views.write() as txn:
            txn.drop(state)
            txn.multi_put(state, sorted(zip(keys, RowCodec(schema.types).encode(rows), strict=True)))

    # ---- statements ----

    def query(self, sql: str, **parameters: object) -> Result:
        return run_query(self.context, sql, parameters)

    def rows(self, sql: str, **parameters: object) -> list[tuple[object, ...]]:
        return list(self.query(sql, **parameters).tuples())

    def run(self, sql: str, **parameters: object) -> Result:
        statement = parse_statement(sql)
        return _DML[type(statement)](self.context, statement, parameters, sql)  # type: ignore[operator]

    def code(self, sql: str, **parameters: object) -> str:
        """Return the code of the error that a statement gives, ``none`` where it gives none."""
        try:
            statement = parse_statement(sql)
            if isinstance(statement, model.Query):
                run_query(self.context, statement.query, parameters, statement=sql)
            else:
                self.run(sql, **parameters)
        except ViewkeeperError as error:
            return error.code
        return "none"

    def table(self, name: str) -> list[tuple[object, ...]]:
        with self.context.base.read() as txn:
            return list(scan(self.catalog().table(name), txn))
