"""VERIFY MATERIALIZED VIEW: a view's rows against its query over base rows, computed by Spark SQL.

Base tables are read as of the view's own position, and views that it reads are replaced by their queries, so that
nothing which our operators computed takes part in the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.errors import ConflictError, InputError
from viewkeeper.evaluation.comparison import Row, compare
from viewkeeper.evaluation.moments import EvaluationContext, Moment, open_moment
from viewkeeper.evaluation.spool import Spool
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.position import Position
from viewkeeper.log.retention import holding
from viewkeeper.pipeline.records import Failure, ViewRecord, read_view
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.inputs import Input, QueryInput, TableInput
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

ROWS_SHOWN = 20
_ATTEMPTS = 3
_NAMESPACE = "verify"


@dataclass(frozen=True)
class VerifyReport:
    """What VERIFY found.

    Args:
        view: the view's name.
        ok: whether its rows are those of its query.
        position: the log position at which both were compared.
        rows: how many rows the view has.
        missing: some of the rows that it lacks.
        unexpected: some of the rows that it should not have.
        different: some of the rows that differ under one key, as (expected, stored).
        missing_count: how many it lacks.
        unexpected_count: how many it should not have.
        different_count: how many differ.
        failures: for a FAILED view, some of the rows that cannot be computed: what was compared is its last good state.
        failure_count: how many there are.
        schema_differences: columns whose types are not those of the query.
    """

    view: str
    ok: bool
    position: Position
    rows: int
    missing: list[Row]
    unexpected: list[Row]
    different: list[tuple[Row, Row]]
    missing_count: int = 0
    unexpected_count: int = 0
    different_count: int = 0
    failures: tuple[Failure, ...] = ()
    failure_count: int = 0
    schema_differences: tuple[str, ...] = ()

    @property
    def is_failed(self) -> bool:
        """Whether the view is FAILED, and so behind what its base tables show."""
        return self.failure_count > 0

    def __str__(self) -> str:
        """Return one sentence for people."""
        if self.ok:
            outcome = f"is right: {self.rows} rows"
        else:
            counts = f"{self.missing_count} missing, {self.unexpected_count} unexpected"
            types = "".join(f"; {difference}" for difference in self.schema_differences)
            outcome = f"is wrong: {counts}, {self.different_count} different rows{types}"
        failed = f"; it is FAILED ({self.failure_count} rows cannot be computed) and shows its last good state"
        return f"View {self.view!r} {outcome} at position {self.position}{failed if self.is_failed else ''}."


@dataclass(frozen=True)
class _Stored:
    """A view's rows and what is needed to compute them again."""

    catalog: Catalog
    definition: ViewDefinition
    view: StoredView
    record: ViewRecord
    rows: Spool


def verify_view(context: EvaluationContext, name: str, limit: int = ROWS_SHOWN) -> VerifyReport:
    """Compare a view with its query over base rows at the view's own position, computed by Spark.

    Args:
        context: the store.
        name: the view.
        limit: how many rows of each kind are returned at most.

    Raises:
        InputError: ``VIEW_NOT_FOUND``, ``VIEW_NOT_FILLED``, or ``VERIFY_NEEDS_SPARK`` where there is none.
        ConflictError: ``LOG_PURGED`` where the view's position is no longer in the log.
        EvaluationError: the query cannot be computed at the view's position: the view is wrong to show rows.
    """
    if context.spark is None:
        message = "VERIFY computes the view by Spark, and there is no Spark here: open the store as a folder."
        raise InputError("VERIFY_NEEDS_SPARK", message)
    spark = context.spark()
    for attempt in range(_ATTEMPTS):
        with ExitStack() as opened:
            try:
                stored = _stored(context, name, opened)
                query = query_of(stored.catalog, stored.definition, stored.record.position)
                answer = spark.sql(query.sql, query.inputs, query.session)
                return _report(stored, answer.schema, answer.batches, limit)
            except ConflictError:
                # The view moved on and its log was purged between two looks.
                if attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError("the last attempt returns or raises")


def recompute_local(context: EvaluationContext, name: str, limit: int = ROWS_SHOWN) -> VerifyReport:
    """Compare a view with what our own operators compute in one go: for tests, since it proves less than VERIFY.

    Args:
        context: the store.
        name: the view.
        limit: how many rows of each kind are returned at most.
    """
    with ExitStack() as opened:
        stored = _stored(context, name, opened)
        catalog, definition = stored.catalog, stored.definition
        compiled = context.planner.compile(catalog, (definition,), _NAMESPACE)
        tables = {}
        for id_ in catalog.base_tables_of(definition):
            table = catalog.tables[id_]
            batches = scan_as_of(context.base, table, stored.record.position, register=False)
            tables[id_] = Delta.concat([Delta.from_rows(b) for b in batches], table.schema.to_arrow())
        output = compiled.circuit.whole(tables)[compiled.views[definition.id].root].consolidate()
        visible = list(range(stored.view.visible))
        return _report(stored, stored.view.visible_schema, [output.rows.select(visible)], limit)


def query_of(catalog: Catalog, view: ViewDefinition, position: int) -> QueryInput:
    """Return a view's query over base tables as of ``position``, the views that it reads being queries themselves."""
    widths = dict(view.widths)
    inputs: dict[str, Input] = {}
    for name, id_ in view.reads:
        if id_ in catalog.tables:
            inputs[name] = TableInput(catalog.tables[id_], position, widths.get(id_))
        else:
            inputs[name] = query_of(catalog, catalog.views[id_], position)
    return QueryInput(view.sql, inputs, view.session, view.columns)


def _stored(context: EvaluationContext, name: str, opened: ExitStack) -> _Stored:
    """Return the view's rows at one moment; the log behind its position is held until ``opened`` closes."""
    with open_moment(context) as moment:
        definition = moment.catalog.view(name)
        view = moment.stored_view(context, definition)
        record = _record(moment, definition)
        opened.enter_context(holding(context.base, "verify", record.position))
        rows = opened.enter_context(Spool(view.visible_schema))
        for batch in view.batches(moment.views):
            rows.write(batch)
        return _Stored(moment.catalog, definition, view, record, rows)


def _record(moment: Moment, definition: ViewDefinition) -> ViewRecord:
    record = read_view(moment.views, definition.id)
    if record is None:
        raise AssertionError("a view with stored rows has a record")
    return record


def _report(stored: _Stored, schema: Schema, expected: Iterable[pa.RecordBatch], limit: int) -> VerifyReport:
    view, record = stored.view, stored.record
    columns = view.visible_schema.columns
    differences = tuple(
        f"column {ours.name!r} is {ours.type}, the query gives {theirs.type}"
        for ours, theirs in zip(columns, schema.columns, strict=True)
        if ours.type != theirs.type
    )
    key = view.key if all(i < view.visible for i in view.key) else None
    # Rows of other types cannot be compared; the types alone are enough to know.
    wanted = () if differences else expected
    there = () if differences else stored.rows
    found = compare(wanted, there, view.visible_schema, key, stored.rows.rows, limit)
    return VerifyReport(
        view.name,
        not (differences or found.missing_count or found.unexpected_count or found.different_count),
        Position(record.position),
        stored.rows.rows,
        found.missing,
        found.unexpected,
        found.different,
        found.missing_count,
        found.unexpected_count,
        found.different_count,
        record.failures,
        record.failure_count,
        differences,
    )
