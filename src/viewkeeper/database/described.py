"""SHOW, DESCRIBE and EXPLAIN: what the catalog and the plans say, as results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.coordinator.borrowing import loan_of
from viewkeeper.coordinator.cadences import members_of
from viewkeeper.coordinator.pieces import rows_to_read
from viewkeeper.database.maintenance import Refreshed
from viewkeeper.database.status import hint, status
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.tree import is_portable
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.records import Build, CadenceRecord
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.compile import compile_views, states_of_operator
from viewkeeper.plan.explain import explain
from viewkeeper.plan.limits import recomputed
from viewkeeper.plan.nodes import ViewPlan, expressions_of, walk
from viewkeeper.plan.place import Place
from viewkeeper.plan.refusals import anew
from viewkeeper.statements import model as st
from viewkeeper.statements import render
from viewkeeper.store.model import Table
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import Refresh, ViewDefinition
from viewkeeper.zset.schema import BIGINT, BOOLEAN, DOUBLE, STRING, Column, Schema, SqlType, to_arrow_type

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine
    from viewkeeper.evaluation.verify import VerifyReport


def result_of(columns: Sequence[tuple[str, SqlType]], rows: Sequence[Sequence[object]]) -> Result:
    """Return ``rows`` as a result."""
    schema = Schema(tuple(Column(name, sql_type) for name, sql_type in columns))
    arrays = [pa.array([row[i] for row in rows], to_arrow_type(t)) for i, (_, t) in enumerate(columns)]
    return Result(schema, [pa.RecordBatch.from_arrays(arrays, schema=schema.to_arrow())])


def text_result(name: str, text: str) -> Result:
    """Return lines of text as a result of one column."""
    return result_of([(name, STRING)], [(line,) for line in text.splitlines()])


def refreshed(done: Refreshed) -> Result:
    """Return what REFRESH did."""
    columns = [("epochs", BIGINT), ("rows", BIGINT), ("seconds", DOUBLE), ("executor", STRING)]
    return result_of(columns, [(done.epochs, done.rows, done.seconds, done.executor)])


def verified(report: VerifyReport, repaired: bool) -> Result:
    """Return what VERIFY found: a row for the view's rows, then one for each state table behind them."""
    columns = [
        ("view", STRING), ("checked", STRING), ("ok", BOOLEAN), ("rows", BIGINT), ("missing", BIGINT),
        ("unexpected", BIGINT), ("different", BIGINT), ("repaired", BOOLEAN), ("note", STRING),
    ]  # fmt: skip
    rows = [
        (
            report.view, c.name, c.ok and report.is_compared, c.rows,
            c.missing_count, c.unexpected_count, c.different_count, repaired and report.is_wrong, c.note,
        )
        for c in report.checks
    ]  # fmt: skip
    return result_of(columns, rows)


def show_tables(engine: Engine) -> Result:
    """SHOW TABLES."""
    with engine.store.base.read() as base:
        tables = engine.coordinator.catalog().tables.values()
        rows = sorted((table.name, base.count(f"t{table.id}")) for table in tables)
    return result_of([("name", STRING), ("rows", BIGINT)], rows)


def show_views(engine: Engine) -> Result:
    """SHOW MATERIALIZED VIEWS."""
    columns = [
        ("name", STRING), ("state", STRING), ("refresh", STRING), ("rows", BIGINT), ("rows_behind", BIGINT),
        ("policy", STRING), ("decision", STRING),
    ]  # fmt: skip
    found = status(engine)
    rows = [tuple(v[name] for name, _ in columns) for v in sorted(found["views"], key=lambda v: v["name"])]
    return _with_hint(columns, rows, found["hint"])


def _with_hint(columns: Sequence[tuple[str, SqlType]], rows: Sequence[tuple[object, ...]], hint: str | None) -> Result:
    """Return the rows, each with what to run where nobody maintains the views that wait."""
    return result_of([*columns, ("hint", STRING)], [(*row, hint) for row in rows])


def show_create(engine: Engine, name: str) -> Result:
    """SHOW CREATE."""
    catalog = engine.coordinator.catalog()
    found = catalog.find(name)
    if isinstance(found, Table):
        return text_result("statement", table_sql(found))
    view = catalog.view(name)
    return text_result("statement", view_sql(view) + "".join(f"\n-- {line}" for line in _renamed(catalog, view)))


def _renamed(catalog: Catalog, view: ViewDefinition) -> list[str]:
    """Return what is called otherwise by now than in the view's query, which stands as it was written."""
    read = ((old, catalog.views[id_].name) for old, id_ in view.reads if id_ in catalog.views)
    lines = [f"{old} is called {new} by now" for old, new in read if old.lower() != new.lower()]
    for id_, columns in view.columns_read:
        table = catalog.tables[id_]
        names = dict(zip(table.numbers, table.schema.names, strict=True))
        for column in columns:
            now = names.get(column.number, column.name)
            if now.lower() != column.name.lower():
                lines.append(f"column {column.name} of {table.name} is called {now} by now")
    return lines


def table_sql(table: Table) -> str:
    """Return the CREATE TABLE statement of ``table``."""
    nowhere = st.Place(1, 1, 0)
    columns: list[st.ColumnDefinition] = []
    for position, column in enumerate(table.schema.columns):
        written = table.default_texts[position] if table.default_texts else None
        text = None if written is None else st.SqlText(written, nowhere)
        comment = table.comments[position] if table.comments else None
        columns.append(st.ColumnDefinition(column.name, column.type, column.nullable, text, comment))
    return render.create_table_sql(table.name, tuple(columns), tuple(c.name for c in table.key_columns))


def view_sql(view: ViewDefinition) -> str:
    """Return the CREATE MATERIALIZED VIEW statement of ``view``."""
    comments = view.column_comments or (None,) * len(view.columns or ())
    return render.create_view_sql(
        view.name,
        view.sql,
        columns=tuple(zip(view.columns or (), comments, strict=True)),
        primary_key=view.declared_key or (),
        comment=view.comment,
        refresh=st.Refresh(view.refresh.kind, view.refresh.every_seconds),
        policy=view.policy,
    )


def describe(engine: Engine, name: str, extended: bool) -> Result:
    """DESCRIBE a table or view: its columns; of a view also what to run where nobody maintains it.

    EXTENDED adds how a view is kept, below its columns.
    """
    catalog = engine.coordinator.catalog()
    found = catalog.relation(name)
    columns = [("col_name", STRING), ("data_type", STRING), ("nullable", BOOLEAN), ("key", BIGINT), ("comment", STRING)]
    if isinstance(found, Table):
        comments = found.comments or (None,) * len(found.schema)
        rows = _columns(found.schema, found.key, comments)
        return result_of(columns, rows)
    plan = engine.coordinator.planner.plan(catalog, found)
    comments = found.column_comments or (None,) * plan.visible
    rows = _columns(plan.schema, plan.visible_key or (), comments)
    if extended:
        return result_of(columns, rows + _extended(engine, found))
    # Beside the columns, as SHOW has it, for programs take each row of a plain DESCRIBE for a column of the view.
    return _with_hint(columns, rows, hint(engine))


def _columns(schema: Schema, key: tuple[int, ...], comments: Sequence[str | None]) -> list[tuple[object, ...]]:
    return [
        (c.name, str(c.type), c.nullable, key.index(i) + 1 if i in key else None, comments[i])
        for i, c in enumerate(schema.columns)
    ]


def _extended(engine: Engine, view: ViewDefinition) -> list[tuple[object, ...]]:
    found = status(engine)
    record = next(v for v in found["views"] if v["name"] == view.name)
    names = (
        "state", "refresh", "cadence", "position", "rows_behind", "executor", "policy", "decision", "recomputed",
        "reason",
    )  # fmt: skip
    shown = {name: record[name] for name in names}
    shown["hint"] = found["hint"]
    return [(f"# {name}", None if value is None else str(value), None, None, None) for name, value in shown.items()]


def explain_view(engine: Engine, name: str) -> str:
    """EXPLAIN MATERIALIZED VIEW."""
    coordinator = engine.coordinator
    catalog = coordinator.catalog()
    view = catalog.view(name)
    compilation = coordinator.planner.compile(catalog, (view,), view.cadence)
    shared = _kept_by_others(engine, catalog, view.cadence, view.cadence, view)
    record = coordinator.record(view.cadence)
    borrowed: set[str] = set()
    if record is not None and record.loan is not None:
        borrowed = {f"{view.cadence}/{state}" for state in record.loan.states}
        shared |= _kept_by_others(engine, catalog, record.loan.lender, view.cadence, view)
    needs_spark = coordinator.planner.needs_spark(catalog, view)
    return _explained(coordinator.planner.plan(catalog, view), compilation.circuit, needs_spark, shared, borrowed)


def explain_query(engine: Engine, sql: str, place: Place, create: st.CreateView | None = None) -> str:
    """EXPLAIN a query that is no view yet, or the statement that makes it one."""
    planner, catalog = engine.coordinator.planner, engine.coordinator.catalog()
    relations = planner.relations(catalog)
    is_strict = create is not None and create.policy == "INCREMENTAL"
    plan = plan_view(sql, relations, engine.session, place, spark_types=engine.spark_types, is_strict=is_strict)
    below = tuple(catalog.views[i] for i in relations.read.values() if i in catalog.views)
    plans = {**planner.plans_for(catalog, below), 0: plan}
    needs_spark = not all(is_portable(e) for p in plans.values() for n in walk(p.root) for e in expressions_of(n))
    called = {*relations.called.values(), *(id_ for view in below for id_ in planner.functions(catalog, view))}
    refresh = Refresh() if create is None else Refresh(create.refresh.kind, create.refresh.every_seconds)
    cadence = refresh.cadence(catalog.next_id, needs_spark, called)
    tables = {t.id: t.schema for t in catalog.tables.values()}
    lineages = {id_: catalog.views[id_].lineage for id_ in plans if id_ in catalog.views}
    compile_ = partial(compile_views, plans, (0,), tables, "new", lineages)
    compilation = compile_()
    shared = _kept_by_others(engine, catalog, cadence, "new")
    loan = None
    with engine.store.base.read() as base, engine.store.views.read() as views:
        if create is None or not create.or_replace:
            kept = {f"{cadence}/{state.removeprefix('new/')}" for state in shared}
            loan = loan_of(views, compile_, "new", cadence, kept)
        record = CadenceRecord("new", 0, -1, Build.not_begun(), loan)
        rows, kept_rows = rows_to_read(base, views, catalog, record, compile_)
    borrowed = set() if loan is None else {f"new/{state}" for state in loan.states}
    others = f", rows of state that others keep: {kept_rows:,}" if kept_rows else ""
    cost = f"base rows: {rows:,}{others}, read once to fill it; what its epochs cost is measured when they are run"
    return f"{_explained(plan, compilation.circuit, needs_spark, shared, borrowed)}\n{cost}"


def _kept_by_others(
    engine: Engine, catalog: Catalog, cadence: str, namespace: str, view: ViewDefinition | None = None
) -> dict[str, list[str]]:
    """Return for the state tables of ``cadence``, under names of ``namespace``, the views that keep them."""
    found: dict[str, list[str]] = {}
    for other in members_of(catalog, cadence):
        if view is None or other.id != view.id:
            for state in engine.coordinator.planner.compile(catalog, (other,), namespace).states_of(other.id):
                found.setdefault(state, []).append(other.name)
    return found


def _explained(
    plan: ViewPlan, circuit: Circuit, needs_spark: bool, shared: Mapping[str, list[str]], borrowed: Collection[str]
) -> str:
    lines = [explain(plan), "", f"stages: {circuit.levels}"]
    lines.append("executor: Spark (an expression is not portable)" if needs_spark else "executor: local or Spark")
    code = recomputed(plan.root)
    if code is not None:
        lines.append(f"recomputed: {anew(code)}")
    lines.append("state:")
    for node in circuit.nodes:
        for state in states_of_operator(node.operator):
            with_whom = f"  shared with {', '.join(shared[state])}" if state in shared else ""
            loan = ", borrowed while the view is filled" if state in borrowed else ""
            lines.append(f"  {state}  {type(node.operator).__name__}{with_whom}{loan}")
    return "\n".join(lines)
