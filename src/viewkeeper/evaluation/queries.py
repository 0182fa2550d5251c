"""SELECT at one moment of the store: in process where that is quick, else by Spark.

In process runs what the view grammar has, then ORDER BY, LIMIT and OFFSET: of any size where rows only pass through
(filters and projections), else up to a number of input rows. A filter that fixes the whole key is a look-up. All other
queries are Spark's: it reads base tables as of the moment's position, and views from files that hold their rows of
that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.errors import ConflictError, EvaluationError, SqlError, UnsupportedSql
from viewkeeper.evaluation.constants import WithOneRow, with_one_row
from viewkeeper.evaluation.local import LocalQuery
from viewkeeper.evaluation.moments import LOCAL, SPARK, EvaluationContext, Moment, open_moment
from viewkeeper.evaluation.result import Result
from viewkeeper.evaluation.sorting import sorted_indices
from viewkeeper.evaluation.spool import SpooledFiles
from viewkeeper.expressions.errors import TIME_WITHOUT_DATE, NotPortable
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.build import plan_query
from viewkeeper.plan.diagnosis import placed_by_spark
from viewkeeper.plan.place import Place
from viewkeeper.statements.lexer import tokenize
from viewkeeper.statements.model import SqlText
from viewkeeper.store.model import Table
from viewkeeper.views.inputs import FilesInput, Input, SparkAnswer, SparkFunction, TableInput
from viewkeeper.zset.schema import Schema

Parameters = Mapping[str, object]


@dataclass(frozen=True)
class Answer:
    """The rows of a query, to be read once while what it was asked of is open.

    Args:
        schema: the columns.
        batches: the rows, columns by position.
        executor: ``local`` or ``spark``.
        table_ids: the base tables that it reads directly.
    """

    schema: Schema
    batches: Iterator[pa.RecordBatch]
    executor: str
    table_ids: tuple[int, ...]


def run_query(
    context: EvaluationContext,
    text: SqlText | str,
    parameters: Parameters | None = None,
    moment: Moment | None = None,
    statement: str | None = None,
) -> Result:
    """Run a query.

    Args:
        context: the store.
        text: the query.
        parameters: the values of ``:name``.
        moment: when, as a snapshot has it; None: now.
        statement: the user's whole text, where ``text`` is a part of it, so that errors can point at the place.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: what needs Spark where there is none.
        EvaluationError: an expression cannot be computed for some row, as in Spark.
    """
    with ExitStack() as opened, nullcontext(moment) if moment is not None else open_moment(context) as at:
        found = answer(context, at, text, parameters, opened, statement)
        try:
            return Result(found.schema, list(found.batches), found.executor)
        except EvaluationError as error:
            if error.code != TIME_WITHOUT_DATE or context.spark is None or at.locked:
                raise
        # Only Spark completes a time of day by the current date.
        found = _answer_of_spark(context, at, text, parameters, opened, statement)
        return Result(found.schema, list(found.batches), found.executor)


def answer(
    context: EvaluationContext,
    moment: Moment,
    text: SqlText | str,
    parameters: Parameters | None,
    opened: ExitStack,
    statement: str | None = None,
) -> Answer:
    """Return the rows of a query, which come while they are read.

    Args:
        context: the store.
        moment: when; it stays open while the rows are read.
        text: the query.
        parameters: the values of ``:name``.
        opened: keeps files and holds for as long as the rows are read.
        statement: the user's whole text.
    """
    sql = str(text)
    relations = WithOneRow(context.planner.relations(moment.catalog))
    try:
        planned = with_one_row(sql) or sql
        query = plan_query(planned, relations, context.session, parameters, place=place_of(text, statement))
        local = LocalQuery(context, moment, query.view)
        local.check_readable()
    except (UnsupportedSql, NotPortable):
        if context.spark is None:
            raise
    except ConflictError:
        if context.spark is None or moment.locked:
            raise
    else:
        fits = local.is_streamed and not query.order
        if fits or context.spark is None or moment.locked or local.input_rows() <= context.rows_local:
            tables = tuple(r.id for r in plan.relations_of(query.view.root) if r.id in moment.catalog.tables)
            return Answer(query.view.schema, _ended(local, query), LOCAL, tables)
    return _answer_of_spark(context, moment, text, parameters, opened, statement)


def _answer_of_spark(
    context: EvaluationContext,
    moment: Moment,
    text: SqlText | str,
    parameters: Parameters | None,
    opened: ExitStack,
    statement: str | None,
) -> Answer:
    sql = str(text)
    inputs = inputs_of(context, moment, sql, opened)
    try:
        found = spark_answer(context, moment, sql, inputs, parameters, opened)
    except SqlError as error:
        raise placed_by_spark(error, sql, place_of(text, statement) or Place(sql)) from error
    read = tuple(i.table.id for i in inputs.values() if isinstance(i, TableInput))
    return Answer(found.schema, found.batches, SPARK, read)


def spark_answer(
    context: EvaluationContext,
    moment: Moment,
    sql: str,
    inputs: Mapping[str, Input],
    parameters: Parameters | None,
    opened: ExitStack,
) -> SparkAnswer:
    """Return the rows of a query by Spark; the log is held until ``opened`` closes."""
    assert context.spark is not None
    if moment.locked:
        message = "The statement needs Spark since tables or views have changed meanwhile: run it again."
        raise ConflictError("READ_ROWS_CHANGED", message)
    if any(isinstance(i, TableInput) for i in inputs.values()):
        opened.enter_context(moment.held(context))
    functions = {name: SparkFunction(function) for name, function in moment.catalog.functions_by_name.items()}
    return context.spark().sql(sql, inputs, context.session, parameters, functions)


def inputs_of(context: EvaluationContext, moment: Moment, sql: str, opened: ExitStack) -> dict[str, Input]:
    """Return what Spark must know of the names in ``sql``: every word that is a table or a view.

    A word may stand for a column only; then its relation is registered in vain, which costs little and changes nothing.
    """
    files = opened.enter_context(SpooledFiles())
    inputs: dict[str, Input] = {}
    for lexeme in tokenize(sql):
        name = lexeme.text.lower()
        found = moment.catalog.find(name) if lexeme.kind in ("word", "quoted") and name not in inputs else None
        if isinstance(found, Table):
            inputs[name] = TableInput(found, moment.position)
        elif found is not None:
            view = moment.stored_view(context, found)
            paths = files.write(view.batches(moment.views), view.visible_schema)
            inputs[name] = FilesInput(view.visible_schema, paths)
    return inputs


def place_of(text: SqlText | str, statement: str | None) -> Place | None:
    """Return where ``text`` stands, None where that is not known."""
    if isinstance(text, SqlText) and statement is not None:
        return Place(statement, text.place.offset)
    return None


def _ended(local: LocalQuery, query: plan.QueryPlan) -> Iterator[pa.RecordBatch]:
    """Yield the visible columns of the query's rows, ordered and limited."""
    visible = list(range(query.view.visible))
    batches = local.batches()
    if query.order:
        batches = _ordered(local, query, list(batches))
    skip, left = query.offset, query.limit
    for batch in batches:
        if left == 0:
            return
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        part = batch.slice(skip, left)
        skip = 0
        left = None if left is None else left - part.num_rows
        yield part.select(visible)


def _ordered(local: LocalQuery, query: plan.QueryPlan, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(local.schema))]
    rows = pa.RecordBatch.from_arrays(columns, schema=local.schema.to_arrow())
    yield rows.take(pa.array(sorted_indices(rows, local.schema, query.order, query.view.key)))
