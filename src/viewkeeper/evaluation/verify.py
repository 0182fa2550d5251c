"""VERIFY MATERIALIZED VIEW: a view's rows against its query over base rows, computed by Spark SQL.

Base tables are read as of the view's own position, and views that it reads are replaced by their queries, so that
nothing which our operators computed takes part in the answer. Then the state behind the rows is checked likewise, each
state table against the query that says what it must hold (states.py): wrong state is a wrong view of tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.errors import ConflictError, InputError, SqlError, StoreError
from viewkeeper.evaluation.comparison import ANY_DIFFERENCE, TOLERANCES, Row, compare
from viewkeeper.evaluation.freedom import has_many_answers
from viewkeeper.evaluation.moments import EvaluationContext, Moment, open_moment
from viewkeeper.evaluation.recomputation import FreshState, Recomputation
from viewkeeper.evaluation.spool import Spool, SpooledFiles
from viewkeeper.evaluation.states import StateReport, StoredStates, check_states, read_states
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.position import Position
from viewkeeper.log.retention import holding
from viewkeeper.operators.aggregate import Aggregate
from viewkeeper.pipeline.records import Failure, ViewRecord, read_cadence, read_view
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import NEEDS_REBUILD, SUSPENDED, ViewDefinition
from viewkeeper.views.inputs import Input, QueryInput, SparkFunction, TableInput
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema

ROWS_SHOWN = 20
_ATTEMPTS = 20
_NAMESPACE = "verify"
_UNREADABLE = "some of its rows cannot be read"
_LAST_GOOD_IS_PAST = "the view is FAILED, and the log behind the position of its last good rows is purged"


@dataclass(frozen=True)
class VerifyReport:
    """What VERIFY found.

    Args:
        view: the view's name.
        ok: whether its rows are those of its query, and the state behind them is right; false where neither could be
            compared.
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
        states: what was found in each state table that is kept for the view; none where only its rows were compared.
        unchecked: why the view's rows were not compared; None where they were.
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
    states: tuple[StateReport, ...] = ()
    unchecked: str | None = None

    @property
    def checks(self) -> tuple[StateReport, ...]:
        """All that was compared: the visible rows, then each state table."""
        visible = StateReport(
            "", "view", self.rows, self.missing, self.unexpected, self.different,
            self.missing_count, self.unexpected_count, self.different_count, self.unchecked,
        )  # fmt: skip
        return (visible, *self.states)

    @property
    def wrong_states(self) -> tuple[StateReport, ...]:
        """The state tables that are not what they must be."""
        return tuple(state for state in self.states if not state.ok)

    @property
    def is_failed(self) -> bool:
        """Whether the view is FAILED, and so behind what its base tables show."""
        return self.failure_count > 0

    @property
    def is_compared(self) -> bool:
        """Whether anything could be compared; ``unchecked`` says why not."""
        return self.unchecked is None or bool(self.states)

    @property
    def differs(self) -> bool:
        """Whether its rows are others than those of its query."""
        return bool(self.missing_count or self.unexpected_count or self.different_count)

    @property
    def is_wrong(self) -> bool:
        """Whether it was found wrong."""
        return self.is_compared and not self.ok

    def __str__(self) -> str:
        """Return one sentence for people."""
        if not self.is_compared:
            outcome = f"could not be compared: {self.unchecked}. It was left"
        elif self.unchecked is not None and self.ok:
            outcome = f"is kept right, its {self.rows} rows could not be compared ({self.unchecked})"
        elif self.ok:
            outcome = f"is right: {self.rows} rows"
        else:
            counts = f"{self.missing_count} missing, {self.unexpected_count} unexpected"
            parts = (*self.schema_differences, *map(str, self.wrong_states))
            outcome = f"is wrong: {counts}, {self.different_count} different rows{''.join(f'; {p}' for p in parts)}"
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
    states: StoredStates | None
    unchecked: str | None = None


def verify_view(
    context: EvaluationContext, name: str, limit: int = ROWS_SHOWN, with_state: bool = True
) -> VerifyReport:
    """Compare a view, and the state behind it, with queries over base rows, computed by Spark.

    Args:
        context: the store.
        name: the view.
        limit: how many rows of each kind are returned at most.
        with_state: whether to check the state too, and not only the rows.

    Raises:
        InputError: ``VIEW_NOT_FOUND``, ``VIEW_NOT_FILLED``, or ``VERIFY_NEEDS_SPARK`` where there is none.
        ConflictError: ``LOG_PURGED`` where the log is purged faster than it can be held.
        EvaluationError: the query cannot be computed at the view's position: the view is wrong to show rows.
    """
    if context.spark is None:
        message = "VERIFY computes the view by Spark, and there is no Spark here: open the store as a folder."
        raise InputError("VERIFY_NEEDS_SPARK", message)
    spark = context.spark()
    with ExitStack() as opened:
        stored = _stored(context, name, opened, with_state)
        query = query_of(stored.catalog, stored.definition, stored.record.position)
        states: tuple[StateReport, ...] = ()
        computed: Recomputation | None = None
        if stored.states is not None:
            files = opened.enter_context(SpooledFiles())
            tables = _tables(stored.catalog, stored.definition, stored.states)
            circuit, known = stored.states.compilation.circuit, stored.catalog.functions.values()
            computed = Recomputation(circuit, tables, spark, files, known)
            states = check_states(stored.states, computed, limit)
        if stored.unchecked is not None:
            return _report(stored, stored.view.visible_schema, (), limit, states)
        try:
            answer = spark.sql(query.sql, query.inputs, query.session, functions=query.functions)
        except SqlError:
            # Our SQL has more than Spark's (UNION in a recursion): Spark computes it part by part then.
            if computed is None:
                return verify_view(context, name, limit, with_state=True)
            return _report(stored, stored.view.visible_schema, _by_parts(stored, computed), limit, states)
        report = _report(stored, answer.schema, answer.batches, limit, states)
        if not report.differs or not has_many_answers(context.planner, stored.catalog, stored.definition):
            return report
        # Ours is one of the answers that Spark may give: that of the operators' rules, by which Spark computes it now.
        if computed is None:
            return verify_view(context, name, limit, with_state=True)
        return _report(stored, answer.schema, _by_parts(stored, computed), limit, states)


def _by_parts(stored: _Stored, computed: Recomputation) -> Iterator[pa.RecordBatch]:
    assert stored.states is not None
    compilation = stored.states.compilation
    root = compilation.circuit.nodes[compilation.views[stored.definition.id].root]
    visible = list(range(stored.view.visible))
    return (batch.select(visible) for batch in computed.rows(root))


def recompute_local(context: EvaluationContext, name: str, limit: int = ROWS_SHOWN) -> VerifyReport:
    """Compare a view with what our own operators compute in one go: for tests, since it proves less than VERIFY.

    Args:
        context: the store.
        name: the view.
        limit: how many rows of each kind are returned at most.
    """
    with ExitStack() as opened:
        stored = _stored(context, name, opened, with_state=True)
        catalog, definition = stored.catalog, stored.definition
        compiled = context.planner.compile(catalog, (definition,), _NAMESPACE)
        expected: list[pa.RecordBatch] = []
        if stored.unchecked is None:
            tables = _rows_as_of(context, stored, stored.record.position)
            output = compiled.circuit.whole(tables)[compiled.views[definition.id].root].consolidate()
            expected = [output.rows.select(list(range(stored.view.visible)))]
        states: tuple[StateReport, ...] = ()
        if stored.states is not None:
            there = _rows_as_of(context, stored, stored.states.position)
            states = check_states(stored.states, FreshState(stored.states.compilation.circuit, there), limit)
        return _report(stored, stored.view.visible_schema, expected, limit, states)


def _rows_as_of(context: EvaluationContext, stored: _Stored, position: int) -> dict[int, Delta]:
    """Return the rows of the view's base tables as of ``position``."""
    tables = {}
    for id_ in stored.catalog.base_tables_of(stored.definition):
        table = stored.catalog.tables[id_]
        batches = scan_as_of(context.base, table, position, register=False)
        tables[id_] = Delta.concat([Delta.from_rows(b) for b in batches], table.schema.to_arrow())
    return tables


def _tables(catalog: Catalog, view: ViewDefinition, states: StoredStates) -> dict[int, Input]:
    return {i: TableInput(catalog.tables[i], states.position) for i in catalog.base_tables_of(view)}


def query_of(catalog: Catalog, view: ViewDefinition, position: int) -> QueryInput:
    """Return a view's query over base tables as of ``position``, the views that it reads being queries themselves."""
    columns = dict(view.columns_read)
    inputs: dict[str, Input] = {}
    for name, id_ in view.reads:
        if id_ in catalog.tables:
            inputs[name] = TableInput(catalog.tables[id_], position, columns.get(id_))
        else:
            inputs[name] = query_of(catalog, catalog.views[id_], position)
    # Where the view shows rows, what fails is in branches that are not taken: Spark calls functions there, too.
    functions = {name: SparkFunction(catalog.functions[id_], "null") for name, id_ in view.functions}
    return QueryInput(view.sql, inputs, view.session, view.columns, functions)


def _stored(context: EvaluationContext, name: str, opened: ExitStack, with_state: bool) -> _Stored:
    """Return the view's rows and state at one moment; the log behind is held until ``opened`` closes."""
    held = _hold(context, name, opened)
    with open_moment(context) as moment:
        definition = moment.catalog.view(name)
        view = moment.stored_view(context, definition)
        record = _record(moment, definition)
        rows = opened.enter_context(Spool(view.visible_schema))
        why = held if isinstance(held, str) else None
        if isinstance(held, int) and record.position < held:
            why = _LAST_GOOD_IS_PAST
        try:
            for batch in view.batches(moment.views):
                rows.write(batch)
        except StoreError:
            # Damaged rows are named by the check of the state table that holds them.
            if not with_state:
                raise
            why = _UNREADABLE
        states = read_states(context, moment, definition, record, opened) if with_state else None
        return _Stored(moment.catalog, definition, view, record, rows, states, why)


def _hold(context: EvaluationContext, name: str, opened: ExitStack) -> int | str:
    """Hold the log behind the view's position, until ``opened`` closes: from then on it only moves forward.

    Of a FAILED view the log behind its last good state may be gone; the state behind it can be checked all the same.
    A view that stands still holds no log, and what it shows may be the state of a log that is not there at all.

    Returns:
        The position behind which the log is held; a text why the view stands at none.
    """
    for attempt in range(_ATTEMPTS):
        with open_moment(context) as moment:
            definition = moment.catalog.view(name)
            moment.stored_view(context, definition)
            record, cadence = _record(moment, definition), read_cadence(moment.views, definition.cadence)
        resume = f"ALTER MATERIALIZED VIEW {definition.name} RESUME fills it anew"
        if definition.state == NEEDS_REBUILD:
            return f"it is NEEDS_REBUILD ({definition.reason}): {resume}"
        positions = [record.position]
        if record.is_failed and cadence is not None:
            positions.append(cadence.position)
        for position in positions:
            try:
                return opened.enter_context(holding(context.base, "verify", position))
            except ConflictError:
                if definition.state == SUSPENDED:
                    return f"it is SUSPENDED, and the log behind its position is purged: {resume}"
                # The view moved on and the log behind it was purged between the two looks.
                if attempt == _ATTEMPTS - 1 and position == positions[-1]:
                    raise
    raise AssertionError("the last attempt returns or raises")


def _record(moment: Moment, definition: ViewDefinition) -> ViewRecord:
    record = read_view(moment.views, definition.id)
    if record is None:
        raise AssertionError("a view with stored rows has a record")
    return record


def _tolerances(stored: _Stored, states: tuple[StateReport, ...]) -> Mapping[str, float]:
    """Return how far floating numbers may be from Spark's.

    Spark's sum of doubles depends on the order of rows: of 1e300, 1 and -1e300 it is 0 or 1. Where such a view's rows,
    kept under their key, are what exact sums give, Spark's other digits prove nothing against them.
    """
    rows = next((s for s in states if s.state == stored.record.state), None)
    if stored.states is None or rows is None or rows.unchecked is not None or not rows.ok:
        return TOLERANCES
    operators = (node.operator for node in stored.states.compilation.circuit.nodes)
    calls = (call for operator in operators if isinstance(operator, Aggregate) for call in operator.calls)
    sums = any(c.argument_type is not None and c.argument_type.is_floating and c.function != "count" for c in calls)
    return ANY_DIFFERENCE if sums else TOLERANCES


def _report(
    stored: _Stored, schema: Schema, expected: Iterable[pa.RecordBatch], limit: int, states: tuple[StateReport, ...]
) -> VerifyReport:
    view, record = stored.view, stored.record
    columns = view.visible_schema.columns
    differences = tuple(
        f"column {ours.name!r} is {ours.type}, the query gives {theirs.type}"
        for ours, theirs in zip(columns, schema.columns, strict=True)
        if ours.type != theirs.type
    )
    key = view.key if all(i < view.visible for i in view.key) else None
    # Rows of other types cannot be compared; the types alone are enough to know.
    is_compared = not differences and stored.unchecked is None
    wanted = expected if is_compared else ()
    there = stored.rows if is_compared else ()
    found = compare(wanted, there, view.visible_schema, key, stored.rows.rows, limit, _tolerances(stored, states))
    is_right = not (differences or found.missing_count or found.unexpected_count or found.different_count)
    return VerifyReport(
        view.name,
        is_right and all(state.ok for state in states) and (stored.unchecked is None or bool(states)),
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
        states,
        stored.unchecked,
    )
