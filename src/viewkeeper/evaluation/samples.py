"""A range of a view's keys, compared with what the view's query gives for it, in small pieces of work.

    1. the log behind the view's position is held, and the stored rows of the range are read, in one short transaction;
    2. the query, restricted to the range, is planned over base tables alone: views that it reads are queries too;
    3. base tables are read as of that position, chunk after chunk, and only what the restricted query looks at is kept;
    4. that is computed in one go by the operators' plain twins, and compared with the stored rows.

Nothing that an epoch has kept takes part. The operators are ours, so that ties and sums come out as they are stored:
this finds wrong rows, while VERIFY, by Spark, also finds wrong operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

from viewkeeper.errors import EvaluationError
from viewkeeper.evaluation.comparison import Row, compare
from viewkeeper.evaluation.key_ranges import Wanted, key_range, wanted_of
from viewkeeper.evaluation.moments import EvaluationContext, Moment, open_moment
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.tree import ColumnRef
from viewkeeper.log.as_of import scan_as_of
from viewkeeper.log.retention import holding
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.records import ViewRecord, read_view
from viewkeeper.plan.compile import compile_views
from viewkeeper.plan.nodes import Filter, ViewPlan
from viewkeeper.plan.rules.push_down_filters import push_down_filters
from viewkeeper.store.model import Table
from viewkeeper.views.definition import ACTIVE
from viewkeeper.views.reads import Part, StoredView
from viewkeeper.zset.delta import Delta

CHUNK_ROWS = 8_192
"""Base rows that one piece of work reads."""

_NAMESPACE = "scrub"
_ROWS_SHOWN = 3
_EXACT: Mapping[str, float] = {"DOUBLE": 0.0, "FLOAT": 0.0}


class NotSampled(Exception):
    """A range cannot be compared here; the text says why."""


class TooManyRows(NotSampled):
    """A range needs more base rows than are kept: a smaller one may not."""


class Sample:
    """One range, while it is compared; made by ``open_sample``.

    Args:
        view: the view.
        position: the log position at which it is.
        part: the stored rows of the range.
        circuit: the query restricted to it, over base tables.
        root: the node of its rows.
        tables: what is read of the base tables, by id; filled while ``chunks`` are read.
        chunks: reads a chunk each time.
    """

    def __init__(
        self,
        view: StoredView,
        position: int,
        part: Part,
        circuit: Circuit,
        root: int,
        tables: Mapping[int, Delta],
        chunks: Iterator[None],
    ) -> None:
        self.position = position
        self._view = view
        self._part = part
        self._circuit = circuit
        self._root = root
        self._tables = tables
        self._chunks = chunks

    @property
    def rows(self) -> int:
        """How many rows are stored in it."""
        count: int = self._part.rows.num_rows
        return count

    @property
    def behind(self) -> bytes | None:
        """The stored row at whose key the next range begins; None at the view's end."""
        return self._part.behind

    def advance(self) -> bool:
        """Read one chunk of a base table; return whether there was one.

        Raises:
            TooManyRows: more is wanted than is kept.
            ConflictError: ``LOG_PURGED``, ``TABLE_CHANGED``.
        """
        return any(True for _ in self._chunks)

    def finding(self) -> str:
        """Return how the stored rows differ from what the query gives, once all is read; empty where they do not."""
        schema, visible = self._view.visible_schema, list(range(self._view.visible))
        if self._part.misplaced.num_rows:
            rows = Result(schema, [self._part.misplaced.select(visible)]).rows()
            return f"rows stand under keys that are not theirs: {_shown(rows[:_ROWS_SHOWN])}"
        try:
            output = self._circuit.whole(self._tables)[self._root].consolidate()
        except EvaluationError as error:
            return f"its query cannot be computed there: {error.message}"
        key = self._view.key if all(i < self._view.visible for i in self._view.key) else None
        expected, shown = output.rows.select(visible), self._part.rows.select(visible)
        found = compare([expected], [shown], schema, key, self.rows, _ROWS_SHOWN, _EXACT)
        parts = (
            (found.missing_count, "missing", _shown(found.missing)),
            (found.unexpected_count, "unexpected", _shown(found.unexpected)),
            (found.different_count, "different", _shown([stored for _, stored in found.different])),
        )
        return "; ".join(f"{count} {kind}: {rows}" for count, kind, rows in parts if count)


def open_sample(
    context: EvaluationContext, view: int, start: bytes | None, rows_max: int, base_rows_max: int, opened: ExitStack
) -> Sample:
    """Begin to compare a range of a view's rows.

    Args:
        context: the store.
        view: its id.
        start: a stored row, at whose key the range begins; None: the first.
        rows_max: how many stored rows it has at most.
        base_rows_max: how many base rows may be kept for it.
        opened: the log is held until it closes.

    Raises:
        NotSampled: it cannot be compared here, or now.
        StoreError: a stored row cannot be read.
        ConflictError: ``LOG_PURGED``.
    """
    with open_moment(context) as moment:
        held = opened.enter_context(holding(context.base, "scrub", _record(moment, view).position))
    # From here on the log is there, and the view only moves forward.
    with open_moment(context) as moment:
        record = _record(moment, view)
        definition = moment.catalog.views[view]
        if record.position < held:
            raise NotSampled("it was filled anew meanwhile")
        if context.planner.needs_spark(moment.catalog, definition):
            raise NotSampled("it has expressions that only Spark computes")
        stored = moment.stored_view(context, definition)
        if not stored.is_as_planned:
            raise NotSampled("another version of Viewkeeper wrote its rows")
        plans = context.planner.plans_for(moment.catalog, (definition,))
        part, restricted = _restricted(moment, stored, plans[view], start, rows_max)
        schemas = {table.id: table.schema for table in moment.catalog.tables.values()}
        compilation = compile_views({**plans, view: restricted}, (view,), schemas, _NAMESPACE)
        roots = [restricted.root, *(plan.root for id_, plan in plans.items() if id_ != view)]
        tables = [moment.catalog.tables[id_] for id_ in compilation.circuit.tables]
        wanted = {table.id: wanted_of(roots, table.id, table.schema.types) for table in tables}
        if sum(moment.table_rows(table) for table in tables if wanted[table.id] is None) > base_rows_max:
            raise _too_many(base_rows_max)
    read: dict[int, Delta] = {}
    chunks = _chunks(context, tables, wanted, record.position, base_rows_max, read)
    root = compilation.views[view].root
    return Sample(stored, record.position, part, compilation.circuit, root, read, chunks)


def _record(moment: Moment, view: int) -> ViewRecord:
    definition, record = moment.catalog.views.get(view), read_view(moment.views, view)
    if definition is None or record is None or record.position < 0:
        raise NotSampled("it holds no rows")
    if definition.state != ACTIVE or record.is_failed:
        raise NotSampled(f"it is {'FAILED' if record.is_failed else definition.state}")
    return record


def _restricted(
    moment: Moment, stored: StoredView, plan: ViewPlan, start: bytes | None, rows_max: int
) -> tuple[Part, ViewPlan]:
    """Return the range's stored rows, and the plan of the query restricted to it."""
    columns = [ColumnRef(i, plan.root.schema.columns[i].type, plan.root.schema.columns[i].nullable) for i in plan.key]
    if any(column.type.is_nested for column in columns):
        # Such keys are not compared by conditions: all of the view or nothing.
        if stored.count(moment.views) > rows_max:
            raise NotSampled("its key holds arrays or structs, and it has many rows")
        start = None
    part = stored.part(moment.views, start, rows_max)
    ends = (None if row is None else stored.key_of(row) for row in (start, part.behind))
    condition = key_range(columns, *ends)
    if condition is None:
        return part, plan
    root = plan.root
    return part, replace(plan, root=push_down_filters(Filter(root, condition, root.schema, root.key)))


def _chunks(
    context: EvaluationContext,
    tables: list[Table],
    wanted: Mapping[int, Wanted | None],
    position: int,
    base_rows_max: int,
    found: dict[int, Delta],
) -> Iterator[None]:
    """Read the tables into ``found``, a chunk each time."""
    kept = 0
    for table in tables:
        rows, batches = wanted[table.id], []
        for batch in scan_as_of(context.base, table, position, batch_rows=CHUNK_ROWS, register=False):
            some = batch if rows is None else rows.of(batch)
            kept += some.num_rows
            if kept > base_rows_max:
                raise _too_many(base_rows_max)
            batches.append(Delta.from_rows(some))
            yield
        found[table.id] = Delta.concat(batches, table.schema.to_arrow())


def _too_many(base_rows_max: int) -> TooManyRows:
    return TooManyRows(f"a part of it needs more than {base_rows_max} base rows at once")


def _shown(rows: list[Row]) -> str:
    return ", ".join(map(str, rows))
