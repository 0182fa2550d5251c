"""INSERT, UPDATE and DELETE: which rows of a table they change, and how.

Expressions that are portable are evaluated here, batch after batch of the table, or on the one row that WHERE fixes by
its key; the rest is asked of Spark as a query over the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.evaluation.assignment import check_types, default_values, raise_first, stored
from viewkeeper.evaluation.changes import Changes, commit
from viewkeeper.evaluation.inline import InlineColumn, column_of, read_values
from viewkeeper.evaluation.local import rows_at
from viewkeeper.evaluation.moments import SPARK, EvaluationContext, Moment
from viewkeeper.evaluation.pinned import pinned_keys
from viewkeeper.evaluation.queries import Parameters, answer, inputs_of, place_of, spark_answer
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.build import plan_expression
from viewkeeper.statements.model import Delete, Insert, SqlText, Update
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.store.values import place_of as name_of
from viewkeeper.store.values import unknown_column
from viewkeeper.views.inputs import TableInput
from viewkeeper.views.planning import table_relation
from viewkeeper.zset.schema import BOOLEAN, VOID, Column, SqlType

_DEFAULT = "DEFAULT"


def insert(
    context: EvaluationContext, statement: Insert, parameters: Parameters | None = None, text: str | None = None
) -> Result:
    """Run INSERT INTO.

    Args:
        context: the store.
        statement: the statement.
        parameters: the values of ``:name``.
        text: the user's whole text, so that errors can point at the place.

    Raises:
        InputError: ``TABLE_NOT_FOUND``, ``DUPLICATE_KEY``, ``NULL_IN_NOT_NULL_COLUMN``, ``UNKNOWN_COLUMN``.
        SqlError: ``INSERT_COLUMN_ARITY_MISMATCH``, ``INCOMPATIBLE_DATA_FOR_TABLE`` and wrong SQL.
        EvaluationError: a value that cannot be computed or does not fit.
    """
    return commit(context, lambda moment: _inserted(context, moment, statement, parameters, text))


def update(
    context: EvaluationContext, statement: Update, parameters: Parameters | None = None, text: str | None = None
) -> Result:
    """Run UPDATE; a changed key is a deleted and an inserted row. Arguments and errors as of ``insert``."""
    return commit(context, lambda moment: _updated(context, moment, statement, parameters, text))


def delete(
    context: EvaluationContext, statement: Delete, parameters: Parameters | None = None, text: str | None = None
) -> Result:
    """Run DELETE FROM. Arguments and errors as of ``insert``."""
    return commit(context, lambda moment: _deleted(context, moment, statement, parameters, text))


# ---- INSERT ----


def _inserted(
    context: EvaluationContext, moment: Moment, statement: Insert, parameters: Parameters | None, text: str | None
) -> Changes:
    table = moment.catalog.table(statement.table)
    positions = positions_of(table, statement.columns)
    try:
        place = place_of(statement.query, text)
        rows = read_values(str(statement.query), context.session, parameters, place, moment.catalog.functions_by_name)
        columns = None if rows is None else [column_of(list(c), context.session) for c in zip(*rows, strict=True)]
        if columns is not None:
            _check_width(table, positions, len(columns))
            check_types(context, table, [table.schema.columns[i] for i in positions], [c.type for c in columns])
    except (UnsupportedSql, NotPortable):
        if context.spark is None:
            raise
        columns = None
    changes = Changes(table)
    if columns is not None:
        changes.inserted.write(_inline_batch(context, table, positions, columns))
        changes.rows_affected = changes.inserted.rows
        return changes
    with ExitStack() as opened:
        found = answer(context, moment, statement.query, parameters, opened, text)
        _check_width(table, positions, len(found.schema))
        check_types(context, table, [table.schema.columns[i] for i in positions], found.schema.types)
        for batch in found.batches:
            given = dict(zip(positions, zip(batch.columns, found.schema.types, strict=True), strict=True))
            changes.inserted.write(whole_rows(context, table, given, batch.num_rows))
    changes.executor, changes.read_ids = found.executor, found.table_ids
    changes.rows_affected = changes.inserted.rows
    return changes


def positions_of(table: Table, names: Sequence[str] | None) -> list[int]:
    """Return the positions of the named columns, of all where none is named.

    Raises:
        InputError: ``UNKNOWN_COLUMN``.
    """
    if names is None:
        return list(range(len(table.schema)))
    positions = []
    for name in names:
        position = table.schema.index(name)
        if position < 0:
            raise unknown_column(name, table.schema.names, name_of(table))
        positions.append(position)
    return positions


def whole_rows(
    context: EvaluationContext, table: Table, given: Mapping[int, tuple[pa.Array, SqlType]], count: int
) -> pa.RecordBatch:
    """Return rows of ``table`` from some columns' values; the others take their DEFAULT, else NULL."""
    arrays = []
    for i, column in enumerate(table.schema.columns):
        if i in given:
            arrays.append(stored(context, table, column, *given[i]))
        else:
            arrays.append(default_values(table, i, count))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema.to_arrow())


def _inline_batch(
    context: EvaluationContext, table: Table, positions: Sequence[int], columns: Sequence[InlineColumn]
) -> pa.RecordBatch:
    count = len(columns[0].values) if columns else 0
    given: dict[int, tuple[pa.Array, SqlType]] = {}
    for position, column in zip(positions, columns, strict=True):
        if not column.defaults.any():
            given[position] = (column.values, column.type)
            continue
        target = table.schema.columns[position]
        written = np.flatnonzero(~column.defaults)
        values = stored(context, table, target, column.values.take(pa.array(written)), column.type)
        missing = default_values(table, position, count - len(written))
        order = np.argsort(np.concatenate([written, np.flatnonzero(column.defaults)]))
        given[position] = (pa.concat_arrays([values, missing]).take(pa.array(order)), target.type)
    return whole_rows(context, table, given, count)


def _check_width(table: Table, positions: Sequence[int], width: int) -> None:
    if len(positions) != width:
        message = (
            f"INSERT INTO {table.name} takes {len(positions)} values a row"
            f" ({', '.join(table.schema.names[i] for i in positions)}), {width} are given: name the columns."
        )
        raise SqlError("INSERT_COLUMN_ARITY_MISMATCH", message, {"table": table.name})


# ---- UPDATE and DELETE ----


@dataclass(frozen=True)
class RowExpressions:
    """What a statement evaluates on each row of its table: WHERE, and the values that it sets."""

    where: Expression | None
    values: tuple[Expression, ...]


def planned_condition(expression: Expression, where: str) -> Expression:
    """Return a condition, which must be BOOLEAN.

    Raises:
        SqlError: ``DATATYPE_MISMATCH``.
    """
    if expression.type not in (BOOLEAN, VOID):
        message = f"The condition of {where} must be BOOLEAN, not {str(expression.type).upper()}: compare its value."
        raise SqlError("DATATYPE_MISMATCH", message, {"clause": where.split(maxsplit=1)[0]})
    return expression


def is_true(expression: Expression, batch: pa.RecordBatch, session: Session, names: Sequence[str]) -> np.ndarray:
    """Return where a condition is true.

    Raises:
        EvaluationError: it cannot be computed for some row.
    """
    if expression.type == VOID:
        return np.zeros(batch.num_rows, dtype=bool)
    computed = evaluate(expression, batch, session)
    raise_first(computed.errors, batch, names, "The condition")
    mask: np.ndarray = pc.fill_null(computed.values, False).to_numpy(zero_copy_only=False)
    return mask


def is_default(sql: SqlText) -> bool:
    """Return whether a value is the keyword DEFAULT."""
    return str(sql).strip().upper() == _DEFAULT


def _updated(
    context: EvaluationContext, moment: Moment, statement: Update, parameters: Parameters | None, text: str | None
) -> Changes:
    table = moment.catalog.table(statement.table)
    positions = positions_of(table, [name for name, _ in statement.assignments])
    assigned = [(i, sql) for i, (_, sql) in zip(positions, statement.assignments, strict=True) if not is_default(sql)]
    targets = [table.schema.columns[i] for i, _ in assigned]
    values = [sql for _, sql in assigned]
    changes = Changes(table)
    changes.read_ids = (table.id,)
    with ExitStack() as opened:
        found = _rows_of(context, moment, table, statement, values, parameters, text, opened, changes)
        check_types(context, table, targets, found.types)
        for old, computed in found.batches:
            given = {i: (v, t) for (i, _), v, t in zip(assigned, computed, found.types, strict=True)}
            put_aside(changes, old, updated_rows(context, table, old, positions, given))
    return changes


def updated_rows(
    context: EvaluationContext,
    table: Table,
    old: pa.RecordBatch,
    positions: Sequence[int],
    given: Mapping[int, tuple[pa.Array, SqlType]],
) -> pa.RecordBatch:
    """Return ``old`` with new values at ``positions``: those given, else the DEFAULT."""
    arrays = list(old.columns)
    for i in positions:
        if i in given:
            arrays[i] = stored(context, table, table.schema.columns[i], *given[i])
        else:
            arrays[i] = default_values(table, i, old.num_rows)
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema.to_arrow())


def put_aside(changes: Changes, old: pa.RecordBatch, new: pa.RecordBatch) -> None:
    """Note that rows become others; one whose key changes is deleted and inserted."""
    table = changes.table
    changes.rows_affected += old.num_rows
    codec = format_of(table).key_codec
    if all(old.column(i).equals(new.column(i)) for i in table.key):
        changes.put.write(new)
        return
    before, after = (codec.encode([batch.column(i) for i in table.key]) for batch in (old, new))
    moved = np.fromiter((b != a for b, a in zip(before, after, strict=True)), bool, old.num_rows)
    changes.put.write(new.filter(pa.array(~moved)))
    changes.inserted.write(new.filter(pa.array(moved)))
    changes.deleted.write(old.filter(pa.array(moved)).select(list(table.key)))


def _deleted(
    context: EvaluationContext, moment: Moment, statement: Delete, parameters: Parameters | None, text: str | None
) -> Changes:
    table = moment.catalog.table(statement.table)
    changes = Changes(table)
    changes.read_ids = (table.id,)
    with ExitStack() as opened:
        found = _rows_of(context, moment, table, statement, (), parameters, text, opened, changes)
        for old, _ in found.batches:
            changes.deleted.write(old.select(list(table.key)))
    changes.rows_affected = changes.deleted.rows
    return changes


@dataclass(frozen=True)
class _Found:
    """The rows that a statement is about, and the values that it computed on each."""

    types: tuple[SqlType, ...]
    batches: Iterator[tuple[pa.RecordBatch, Sequence[pa.Array]]]


def _rows_of(
    context: EvaluationContext,
    moment: Moment,
    table: Table,
    statement: Update | Delete,
    values: Sequence[SqlText],
    parameters: Parameters | None,
    text: str | None,
    opened: ExitStack,
    changes: Changes,
) -> _Found:
    def planned(sql: SqlText) -> Expression:
        qualifier = statement.alias or table.name
        place = place_of(sql, text)
        known = moment.catalog.functions_by_name
        return plan_expression(str(sql), table.schema, context.session, qualifier, parameters, place, functions=known)

    try:
        where = None if statement.where is None else planned_condition(planned(statement.where), "WHERE")
        expressions = RowExpressions(where, tuple(map(planned, values)))
        types = tuple(e.type for e in expressions.values)
        check_types(context, table, _targets(table, statement), types)
        return _Found(types, _local_rows(context, moment, table, expressions))
    except (UnsupportedSql, NotPortable):
        if context.spark is None:
            raise
    changes.executor = SPARK
    return _spark_rows(context, moment, table, statement, values, parameters, opened, changes)


def _targets(table: Table, statement: Update | Delete) -> list[Column]:
    if isinstance(statement, Delete):
        return []
    names = [name for name, sql in statement.assignments if not is_default(sql)]
    return [table.schema.columns[i] for i in positions_of(table, names)]


def _local_rows(
    context: EvaluationContext, moment: Moment, table: Table, expressions: RowExpressions
) -> Iterator[tuple[pa.RecordBatch, Sequence[pa.Array]]]:
    session, names = context.session, table.schema.names
    for batch in _candidates(context, moment, table, expressions.where):
        if expressions.where is not None:
            batch = batch.filter(pa.array(is_true(expressions.where, batch, session, names)))
        if not batch.num_rows:
            continue
        values = []
        for expression in expressions.values:
            computed = evaluate(expression, batch, session)
            raise_first(computed.errors, batch, names, "A value of SET")
            values.append(computed.values)
        yield batch, values


def _candidates(
    context: EvaluationContext, moment: Moment, table: Table, where: Expression | None
) -> Iterator[pa.RecordBatch]:
    if where is not None:
        scan = plan.Scan(table_relation(table), tuple(range(len(table.schema))), table.schema, table.key)
        keys = pinned_keys(plan.Filter(scan, where, table.schema, table.key)).get(table.id)
        if keys is not None:
            return iter((rows_at(moment, table, keys),))
    return moment.table_batches(context, table)


def _spark_rows(
    context: EvaluationContext,
    moment: Moment,
    table: Table,
    statement: Update | Delete,
    values: Sequence[SqlText],
    parameters: Parameters | None,
    opened: ExitStack,
    changes: Changes,
) -> _Found:
    """Ask Spark for the rows of WHERE with the values of SET behind them; line ends keep comments apart."""
    alias = f"`{(statement.alias or table.name).replace('`', '``')}`"
    items = ", ".join([f"{alias}.*", *(f"(\n{sql}\n) AS `__value_{i}`" for i, sql in enumerate(values))])
    where = "" if statement.where is None else f" WHERE {statement.where}\n"
    sql = f"SELECT {items} FROM `{table.name.replace('`', '``')}` AS {alias}{where}"
    inputs = inputs_of(context, moment, sql, opened)
    found = spark_answer(context, moment, sql, inputs, parameters, opened)
    width = len(table.schema)
    changes.read_ids = _tables_in(inputs)

    def batches() -> Iterator[tuple[pa.RecordBatch, Sequence[pa.Array]]]:
        arrow = table.schema.to_arrow()
        for batch in found.batches:
            yield pa.RecordBatch.from_arrays(batch.columns[:width], schema=arrow), batch.columns[width:]

    return _Found(found.schema.types[width:], batches())


def _tables_in(inputs: Mapping[str, object]) -> tuple[int, ...]:
    return tuple(i.table.id for i in inputs.values() if isinstance(i, TableInput))
