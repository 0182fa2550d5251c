"""MERGE: source rows meet target rows, and clauses say what becomes of the pairs and of those left over.

    1. the source is evaluated and kept in memory;
    2. the target comes batch by batch, or only the rows at the source's keys where ON fixes the whole primary key and
       nothing is said of rows that the source lacks;
    3. pairs for which ON is true take the first WHEN MATCHED whose condition is true; target rows without a pair the
       first WHEN NOT MATCHED BY SOURCE; at the end source rows without one the first WHEN NOT MATCHED.

A target row with two pairs is an error, as in Spark, unless all that is done to it is an unconditional DELETE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from viewkeeper.errors import EvaluationError, SqlError
from viewkeeper.evaluation.assignment import check_types, raise_first
from viewkeeper.evaluation.changes import Changes, commit
from viewkeeper.evaluation.constants import with_one_row
from viewkeeper.evaluation.dml import (
    is_default,
    is_true,
    planned_condition,
    positions_of,
    put_aside,
    updated_rows,
    whole_rows,
)
from viewkeeper.evaluation.foreign import spark_column, spark_types_of
from viewkeeper.evaluation.moments import EvaluationContext, Moment
from viewkeeper.evaluation.pairs import all_pairs, conjunct_texts, equal_pairs, equalities
from viewkeeper.evaluation.queries import Parameters, answer, place_of
from viewkeeper.evaluation.result import Result
from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import ColumnRef, Expression, is_portable
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.build import plan_scoped_expression
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.scopes import NamedColumn
from viewkeeper.statements.model import Merge, MergeClause, SqlText
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.zset.buffers import Int64Array
from viewkeeper.zset.schema import Schema, SqlType

_SELECT = "SELECT * FROM "
_KEYS_PER_READ = 65_536
_EVERYTHING_MATCHED, _BY_SOURCE, _NOT_MATCHED = "MATCHED", "NOT_MATCHED_BY_SOURCE", "NOT_MATCHED"


def merge(
    context: EvaluationContext, statement: Merge, parameters: Parameters | None = None, text: str | None = None
) -> Result:
    """Run MERGE INTO.

    Args:
        context: the store.
        statement: the statement.
        parameters: the values of ``:name``.
        text: the user's whole text, so that errors can point at the place.

    Raises:
        EvaluationError: ``MERGE_CARDINALITY_VIOLATION``, or a value that cannot be computed or does not fit.
        InputError: ``TABLE_NOT_FOUND``, ``DUPLICATE_KEY``, ``NULL_IN_NOT_NULL_COLUMN``, ``UNKNOWN_COLUMN``.
        SqlError: wrong SQL, at its place.
        UnsupportedSql: what only Spark can evaluate, where there is none, and subqueries in ON and in the clauses.
    """
    return commit(context, lambda moment: _merged(context, moment, statement, parameters, text))


@dataclass(frozen=True)
class _Clause:
    """A planned WHEN … THEN …; ``given`` maps the columns that it sets to their values, others take the DEFAULT."""

    action: str
    condition: Expression | None
    positions: tuple[int, ...]
    given: Mapping[int, Expression]


@dataclass(frozen=True)
class _Sides:
    """The target table and the source rows, and how SQL calls their columns."""

    table: Table
    source: Schema
    target_name: str
    source_name: str | None
    functions: Mapping[str, UserFunction]

    @property
    def pair(self) -> Schema:
        return Schema(self.table.schema.columns + self.source.columns)

    @property
    def target_columns(self) -> list[NamedColumn]:
        return [NamedColumn(self.target_name, c.name, i) for i, c in enumerate(self.table.schema.columns)]

    def source_columns(self, offset: int = 0) -> list[NamedColumn]:
        return [NamedColumn(self.source_name, c.name, i + offset) for i, c in enumerate(self.source.columns)]


def _merged(
    context: EvaluationContext, moment: Moment, statement: Merge, parameters: Parameters | None, text: str | None
) -> Changes:
    table = moment.catalog.table(statement.target)
    with ExitStack() as opened:
        found = answer(context, moment, _source_query(statement.source), parameters, opened, text)
        source = _one_batch(list(found.batches), found.schema)
    written = statement.source.text
    source_name = statement.source_alias or (None if written.startswith("(") else written.strip("`"))
    target_name, functions = statement.target_alias or table.name, moment.catalog.functions_by_name
    sides = _Sides(table, found.schema, target_name, source_name, functions)
    planner = _ClausePlanner(context, sides, parameters, text)
    on = planner.condition(statement.on, "ON", _EVERYTHING_MATCHED)
    clauses: dict[str, list[_Clause]] = {_EVERYTHING_MATCHED: [], _BY_SOURCE: [], _NOT_MATCHED: []}
    for clause in statement.clauses:
        clauses[clause.kind].append(planner.clause(clause))
    changes = Changes(table, found.executor)
    changes.read_ids = (table.id, *found.table_ids)
    _Merge(context, moment, sides, source, on, planner.equalities(statement.on, on), clauses, changes).run()
    return changes


def _source_query(written: SqlText) -> SqlText:
    """Return the query of a source: a name or a query in parentheses."""
    inner = written.text[1:-1]
    if written.text.startswith("(") and with_one_row(inner) is not None:
        # Constants, the row of an upsert: they need no table, and no Spark.
        return SqlText(inner, replace(written.place, offset=written.place.offset + 1))
    return SqlText(_SELECT + written.text, replace(written.place, offset=written.place.offset - len(_SELECT)))


def _one_batch(batches: Sequence[pa.RecordBatch], schema: Schema) -> pa.RecordBatch:
    arrow = schema.to_arrow()
    if not batches:
        return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in arrow], schema=arrow)
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


class _ClausePlanner:
    """Plans the expressions of the clauses, each over the rows that it can see."""

    def __init__(
        self, context: EvaluationContext, sides: _Sides, parameters: Parameters | None, text: str | None
    ) -> None:
        self._context = context
        self._session = context.session
        self._sides = sides
        self._parameters = parameters
        self._text = text

    def _expression(self, sql: SqlText, kind: str) -> Expression:
        sides = self._sides
        columns, schema = sides.target_columns, sides.table.schema
        if kind == _EVERYTHING_MATCHED:
            columns, schema = columns + sides.source_columns(len(schema)), sides.pair
        elif kind == _NOT_MATCHED:
            columns, schema = sides.source_columns(), sides.source
        place = place_of(sql, self._text)
        types = spark_types_of(self._context)
        return plan_scoped_expression(
            str(sql), columns, schema, self._session, self._parameters, place, None, types, sides.functions
        )

    def condition(self, sql: SqlText, where: str, kind: str) -> Expression:
        """Return a planned condition."""
        return planned_condition(self._expression(sql, kind), where)

    def equalities(self, sql: SqlText, on: Expression) -> list[tuple[Expression, Expression]]:
        """Return the equalities between the sides that ON demands, by which rows find each other."""
        width = len(self._sides.table.schema)
        if is_portable(on):
            return equalities(on, width)
        # As a whole it is Spark's; parts of it may yet be ours.
        parts = [self._expression(SqlText(text, sql.place), _EVERYTHING_MATCHED) for text in conjunct_texts(str(sql))]
        return [pair for part in parts if is_portable(part) for pair in equalities(part, width)]

    def clause(self, clause: MergeClause) -> _Clause:
        """Return a planned clause, its types checked."""
        table, kind = self._sides.table, clause.kind
        condition = None if clause.condition is None else self.condition(clause.condition, "WHEN", kind)
        if clause.action == "DELETE":
            return _Clause("DELETE", condition, (), {})
        if clause.star:
            positions = list(range(len(table.schema)))
            given = {i: self._same_column(table.schema.names[i], kind) for i in positions}
        else:
            pairs = clause.assignments or tuple(zip(clause.columns, clause.values, strict=True))
            positions = positions_of(table, [name for name, _ in pairs])
            written = zip(positions, (sql for _, sql in pairs), strict=True)
            given = {i: self._expression(sql, kind) for i, sql in written if not is_default(sql)}
        check_types(self._context, table, [table.schema.columns[i] for i in given], [e.type for e in given.values()])
        return _Clause(clause.action, condition, tuple(positions), given)

    def _same_column(self, name: str, kind: str) -> Expression:
        source = self._sides.source
        position = source.index(name)
        if position < 0:
            message = f"'*' needs a column '{name}' in the source. {suggestion(name, source.names)}"
            raise SqlError("UNRESOLVED_COLUMN", message, {"column": name})
        offset = len(self._sides.table.schema) if kind == _EVERYTHING_MATCHED else 0
        column = source.columns[position]
        return ColumnRef(position + offset, column.type, column.nullable)


class _Merge:
    """One run of MERGE; ``_met`` tells which source rows have found a target row so far."""

    def __init__(
        self,
        context: EvaluationContext,
        moment: Moment,
        sides: _Sides,
        source: pa.RecordBatch,
        on: Expression,
        equal: Sequence[tuple[Expression, Expression]],
        clauses: Mapping[str, Sequence[_Clause]],
        changes: Changes,
    ) -> None:
        self._context = context
        self._session = context.session
        self._moment = moment
        self._sides = sides
        self._table = sides.table
        self._source = source
        self._on = on
        self._clauses = clauses
        self._changes = changes
        self._equal = equal
        self._source_keys = [self._computed(right, source, sides.source) for _, right in self._equal]
        self._met = np.zeros(source.num_rows, dtype=bool)
        matched = clauses[_EVERYTHING_MATCHED]
        only_delete = len(matched) == 1 and matched[0].action == "DELETE" and matched[0].condition is None
        self._one_pair_only = bool(matched) and not only_delete

    def run(self) -> None:
        """Put aside all that changes."""
        for target in self._targets():
            self._batch(target)
        left = self._source.filter(pa.array(~self._met))
        for clause, chosen in self._chosen(self._clauses[_NOT_MATCHED], left, self._sides.source):
            rows = left.take(pa.array(chosen))
            given = self._given(clause, rows, self._sides.source)
            new = whole_rows(self._context, self._table, given, rows.num_rows)
            self._changes.inserted.write(new)
            self._changes.rows_affected += new.num_rows

    def _targets(self) -> Iterator[pa.RecordBatch]:
        """Yield the target rows that may matter."""
        by_column = {
            left.index: keys
            for (left, _), keys in zip(self._equal, self._source_keys, strict=True)
            if isinstance(left, ColumnRef)
        }
        if self._clauses[_BY_SOURCE] or not all(i in by_column for i in self._table.key):
            yield from self._moment.table_batches(self._context, self._table)
            return
        columns = [by_column[i] for i in self._table.key]
        usable = np.ones(self._source.num_rows, dtype=bool)
        for column in columns:
            usable &= column.is_valid().to_numpy(zero_copy_only=False)
        format_ = format_of(self._table)
        keys = sorted(set(format_.key_codec.encode([column.filter(pa.array(usable)) for column in columns])))
        for start in range(0, len(keys), _KEYS_PER_READ):
            found = self._moment.base.multi_get(format_.database, keys[start : start + _KEYS_PER_READ])
            rows = [row for row in found if row is not None]
            if rows:
                yield format_.decode(rows)

    def _batch(self, target: pa.RecordBatch) -> None:
        paired = np.zeros(target.num_rows, dtype=bool)
        for lefts, rights in self._candidates(target):
            pairs = self._pairs(target, lefts, rights)
            true = self._is_true(self._on, pairs, self._sides.pair)
            lefts, rights, pairs = lefts[true], rights[true], pairs.filter(pa.array(true))
            if self._one_pair_only and len(np.unique(lefts)) < len(lefts):
                raise self._two_pairs(target, lefts)
            paired[lefts] = True
            self._met[rights] = True
            self._matched(target, lefts, pairs)
        left = target.filter(pa.array(~paired))
        for clause, chosen in self._chosen(self._clauses[_BY_SOURCE], left, self._table.schema):
            self._apply(clause, left.take(pa.array(chosen)), left.take(pa.array(chosen)), self._table.schema)

    def _candidates(self, target: pa.RecordBatch) -> Iterator[tuple[Int64Array, Int64Array]]:
        if not self._equal:
            yield from all_pairs(target.num_rows, self._source.num_rows)
            return
        keys = [self._computed(left, target, self._table.schema) for left, _ in self._equal]
        yield equal_pairs(keys, self._source_keys)

    def _pairs(self, target: pa.RecordBatch, lefts: Int64Array, rights: Int64Array) -> pa.RecordBatch:
        columns = [*target.take(pa.array(lefts)).columns, *self._source.take(pa.array(rights)).columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._sides.pair.to_arrow())

    def _matched(self, target: pa.RecordBatch, lefts: Int64Array, pairs: pa.RecordBatch) -> None:
        if not self._one_pair_only:
            _, first = np.unique(lefts, return_index=True)
            lefts, pairs = lefts[first], pairs.take(pa.array(first))
        for clause, chosen in self._chosen(self._clauses[_EVERYTHING_MATCHED], pairs, self._sides.pair):
            old = target.take(pa.array(lefts[chosen]))
            self._apply(clause, old, pairs.take(pa.array(chosen)), self._sides.pair)

    def _apply(self, clause: _Clause, old: pa.RecordBatch, rows: pa.RecordBatch, schema: Schema) -> None:
        """Delete or update the target rows ``old``; ``rows`` are what the clause's expressions read."""
        if clause.action == "DELETE":
            self._changes.deleted.write(old.select(list(self._table.key)))
            self._changes.rows_affected += old.num_rows
            return
        given = self._given(clause, rows, schema)
        put_aside(self._changes, old, updated_rows(self._context, self._table, old, clause.positions, given))

    def _chosen(
        self, clauses: Sequence[_Clause], rows: pa.RecordBatch, schema: Schema
    ) -> Iterator[tuple[_Clause, Int64Array]]:
        """Yield for each clause the rows that it is the first to take."""
        left = np.arange(rows.num_rows)
        for clause in clauses:
            if not len(left):
                return
            taken = np.ones(len(left), dtype=bool)
            if clause.condition is not None:
                taken = self._is_true(clause.condition, rows.take(pa.array(left)), schema)
            if taken.any():
                yield clause, left[taken]
            left = left[~taken]

    def _given(self, clause: _Clause, rows: pa.RecordBatch, schema: Schema) -> dict[int, tuple[pa.Array, SqlType]]:
        return {i: (self._computed(e, rows, schema), e.type) for i, e in clause.given.items()}

    def _is_true(self, condition: Expression, rows: pa.RecordBatch, schema: Schema) -> np.ndarray:
        if is_portable(condition):
            return is_true(condition, rows, self._session, schema.names)
        values = spark_column(self._context, condition, rows, schema, self._session)
        mask: np.ndarray = values.fill_null(False).to_numpy(zero_copy_only=False)
        return mask

    def _computed(self, expression: Expression, rows: pa.RecordBatch, schema: Schema) -> pa.Array:
        if not is_portable(expression):
            return spark_column(self._context, expression, rows, schema, self._session)
        computed = evaluate(expression, rows, self._session)
        raise_first(computed.errors, rows, schema.names, "A value of MERGE")
        return computed.values

    def _two_pairs(self, target: pa.RecordBatch, lefts: Int64Array) -> EvaluationError:
        row = int(lefts[np.flatnonzero(np.bincount(lefts)[lefts] > 1)[0]])
        key = format_of(self._table).show_key(tuple(column[row].as_py() for column in target.columns))
        message = (
            f"Several source rows match the row of table {self._table.name!r} with {key}: make the source have one row"
            " for each target row, by GROUP BY for example. Nothing was changed."
        )
        return EvaluationError("MERGE_CARDINALITY_VIOLATION", message, {"table": self._table.name})
