"""Final states: what views show at a script's end, compared with the full query in Spark, many in one job.

Types, nullability and rows are compared. A job for each view would take many times as long as what it computes, so the
rows of many come as arrays of texts through one UNION ALL; what fails there is asked again in halves. Sums of DOUBLE
depend on row order in Spark: they may differ by 1e-12 of the sum of the group's absolute values.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from viewkeeper.operators.functions.sum import wide_sql
from viewkeeper.testing.oracle import Run
from viewkeeper.testing.scripts import Script, ScriptTable, ScriptView, comparable
from viewkeeper.testing.user_functions import register_with_spark
from viewkeeper.zset.schema import DOUBLE, INTERVAL_DAY_TIME, Schema, SqlType

TOLERANCE = 1e-12
_VIEWS_A_JOB = 40
# Tiny queries: compiling code for each would take longer than running it, and in one partition nothing is shuffled.
_SETTINGS = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
# Of a table, as ``TableModel.known_names`` has them.
Names = tuple[tuple[str, str], ...]
# SQL's class of errors that a value causes: a bad cast, an overflow, a division by zero.
_DATA_EXCEPTION = "SQLSTATE: 22"
# An error within Spark: it loses columns of a LATERAL join that stands below a temporary view and another join.
_INTERNAL_ERROR = "SQLSTATE: XX000"
# What Spark 4.3 dies of by itself, planning or shipping a query: LISTAGG(DISTINCT …) beside other DISTINCT aggregates,
# EXISTS as a value within a query that is compared with IN, IN as a value where a filter makes a column constant.
_DEFECTS = (
    "java.lang.ClassCastException",
    "java.io.InvalidClassException",
    "java.util.NoSuchElementException: key not found",
)


@dataclass(frozen=True)
class FinalView:
    """What one view shows."""

    view: ScriptView
    schema: Schema
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class FinalState:
    """What a script's tables and views hold at its end.

    Args:
        label: for messages: where the script is from.
        tables: the base tables.
        rows: theirs, in the same order.
        views: all views in order.
        names: for each view and table, the columns that it knows, as they are called now and by the view.
        good: those that show the tables' rows.
        time_zone: of the session.
    """

    label: str
    tables: tuple[ScriptTable, ...]
    rows: tuple[pa.RecordBatch, ...]
    views: tuple[ScriptView, ...]
    names: tuple[tuple[Names, ...], ...]
    good: tuple[FinalView, ...]
    time_zone: str = "UTC"

    @staticmethod
    def of(label: str, run: Run) -> FinalState:
        """Return the state of a script that has run."""
        tables, views = tuple(run.model.tables.values()), tuple(run.model.views.values())
        good = []
        for view in run.good_views():
            result = run.database.sql(f"SELECT * FROM {view.name}")
            rows = tuple(zip(*(column.to_pylist() for column in result.to_arrow().columns), strict=True))
            good.append(FinalView(view, result.schema, rows))
        rows_of = tuple(run.current(table.name) for table in tables)
        names = tuple(tuple(run.model.known_names(view.name, table.name) for table in tables) for view in views)
        return FinalState(label, tables, rows_of, views, names, tuple(good), run.script.time_zone)


@dataclass(frozen=True)
class _Question:
    """A view of which Spark knows the query as the temporary view ``name``."""

    label: str
    name: str
    final: FinalView
    types: tuple[SqlType, ...]

    @property
    def sql(self) -> str:
        """Return a query for its rows as texts, without its place in the batch."""
        columns = (*self.final.view.columns, *(f"scale_{name}" for name in self.final.view.scaled))
        return f"array({', '.join(map(_as_text, columns, self.types))}) AS texts FROM {self.name}"


@dataclass(frozen=True)
class Judgement:
    """What Spark said of views.

    Args:
        compared: how many views were compared.
        failing: those, in words, for which Spark itself fails: it evaluates some conditions on rows that the query has
            not got (pushed below a join, or constant), and overflows on the way to a sum whose total fits.
        problems: every difference, in words.
    """

    compared: int
    failing: tuple[str, ...]
    problems: tuple[str, ...]


def judged_by_spark(spark: Any, states: Sequence[FinalState]) -> Judgement:
    """Compare views with Spark's answers.

    Args:
        spark: a SparkSession; a session beside it is used.
        states: what to compare.
    """
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    register_with_spark(session)
    problems: list[str] = []
    failing: list[str] = []
    questions: list[_Question] = []
    for number, state in enumerate(states):
        # Spark keeps with a query the zone in which it was asked.
        with _zone(session, state.time_zone):
            questions += _questions(session, f"s{number}_", state, problems, failing)
    for first in range(0, len(questions), _VIEWS_A_JOB):
        problems += _ask(session, questions[first : first + _VIEWS_A_JOB], failing)
    compared = sum(len(state.good) for state in states) - len(failing)
    return Judgement(compared, tuple(failing), tuple(problems))


@contextmanager
def _zone(session: Any, time_zone: str) -> Iterator[None]:
    session.conf.set("spark.sql.session.timeZone", time_zone)
    try:
        yield
    finally:
        session.conf.set("spark.sql.session.timeZone", _SETTINGS["spark.sql.session.timeZone"])


def _questions(
    session: Any, prefix: str, state: FinalState, problems: list[str], failing: list[str]
) -> Iterator[_Question]:
    """Let Spark know a state's tables and queries; compare types and nullability."""
    script = Script(state.tables, state.views, ()).prefixed(prefix)
    frames = [
        session.createDataFrame(pa.Table.from_batches([batch]), table.columns_sql)
        for table, batch in zip(script.tables, state.rows, strict=True)
    ]
    good = {prefix + final.view.name: final for final in state.good}
    present: tuple[Names, ...] | None = None
    for number, view in enumerate(script.views):
        if state.names[number] != present:
            present = state.names[number]
            for table, frame, names in zip(script.tables, frames, present, strict=True):
                known = frame.select(*(now for now, _ in names)).toDF(*(name for _, name in names))
                known.createOrReplaceTempView(table.name)
        try:
            answer = session.sql(view.for_spark)
        except Exception as error:
            said = f"{state.label}, {view.name}: Spark refuses it: {str(error)[:200]}; {view.for_spark}"
            if _is_defect(error):
                # What reads it cannot be asked either.
                failing += [said for later in script.views[number:] if later.name in good]
            else:
                problems.append(said)
            return
        answer.toDF(*view.columns).createOrReplaceTempView(view.name)
        if view.name not in good:
            continue
        final, name = good[view.name], view.name
        theirs = [(field.dataType.simpleString(), field.nullable) for field in answer.schema.fields]
        mine = [(str(column.type), column.nullable) for column in final.schema.columns]
        if theirs != mine:
            problems.append(f"{state.label}, {final.view.name}: columns {mine}, Spark {theirs}; {final.view.sql}")
            continue
        if view.scaled_sql:
            name += "_scaled"
            columns = (*view.columns, *(f"scale_{column}" for column in view.scaled))
            session.sql(view.scaled_sql).toDF(*columns).createOrReplaceTempView(name)
        types = (*final.schema.types, *(DOUBLE for _ in view.scaled))
        yield _Question(state.label, name, final, types)


def _ask(session: Any, questions: Sequence[_Question], failing: list[str]) -> list[str]:
    """Return what Spark answers differently; put what it fails on for a value into ``failing``."""
    parts = (f"SELECT {number} AS number, {question.sql}" for number, question in enumerate(questions))
    try:
        answer = session.sql(" UNION ALL ".join(parts)).toArrow()
    except Exception as error:
        if len(questions) > 1:
            half = len(questions) // 2
            return _ask(session, questions[:half], failing) + _ask(session, questions[half:], failing)
        final, message = questions[0].final, str(error)
        said = f"{questions[0].label}, {final.view.name}: Spark fails: {message[:200]}; {final.view.sql}"
        if _DATA_EXCEPTION not in message and not _is_defect(error):
            return [said]
        failing.append(said)
        return []
    rows: list[list[tuple[Any, ...]]] = [[] for _ in questions]
    for number, texts in zip(answer["number"].to_pylist(), answer["texts"].to_pylist(), strict=True):
        rows[number].append(tuple(map(_value, texts, questions[number].types)))
    problems = []
    for question, found in zip(questions, rows, strict=True):
        problem = _difference(question.final.view, question.final.rows, found)
        if problem is not None:
            problems.append(f"{question.label}, {question.final.view.name}: {problem}; {question.final.view.sql}")
    return problems


def _is_defect(error: Exception) -> bool:
    """Return whether Spark fails by a defect of its own."""
    return _INTERNAL_ERROR in str(error) or any(cause.startswith(_DEFECTS) for cause in _causes(error))


def _causes(error: Exception) -> Iterator[str]:
    """Yield what Java says of an error and of its causes."""
    cause = getattr(error, "java_exception", None)
    while cause is not None:
        yield str(cause)
        cause = cause.getCause()


def _as_text(column: str, kind: SqlType) -> str:
    """Return an expression for a column as a text of which ``_value`` makes the value; a list is JSON of texts."""
    if kind.name == "ARRAY":
        item = f"{column}_item" if column.isidentifier() else "item"
        return f"to_json(transform({column}, {item} -> {_as_text(item, kind.children[0])}))"
    forms = {
        "FLOAT": "CAST(CAST({} AS DOUBLE) AS STRING)",
        "BINARY": "hex({})",
        "INTERVAL_DAY_TIME": f"CAST({wide_sql('{0}', INTERVAL_DAY_TIME)} AS STRING)",
        "DATE": "CAST(unix_date({}) AS STRING)",
        "TIMESTAMP": "CAST(unix_micros({}) AS STRING)",
        "TIMESTAMP_NTZ": "CAST(unix_micros(CAST({} AS TIMESTAMP)) AS STRING)",
    }
    return forms.get(kind.name, "CAST({} AS STRING)").format(column)


def _value(text: str | None, kind: SqlType) -> Any:
    if text is None:
        return None
    if kind.name == "ARRAY":
        return [_value(item, kind.children[0]) for item in json.loads(text)]
    return _READERS.get(kind.name, int)(text)


_EPOCH = datetime.fromisoformat("1970-01-01")
_READERS: dict[str, Callable[[str], Any]] = {
    "BOOLEAN": "true".__eq__,
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "STRING": str,
    "BINARY": bytes.fromhex,
    "INTERVAL_DAY_TIME": lambda text: timedelta(microseconds=int(text)),
    "DATE": lambda text: (_EPOCH + timedelta(days=int(text))).date(),
    "TIMESTAMP": lambda text: (_EPOCH + timedelta(microseconds=int(text))).replace(tzinfo=UTC),
    "TIMESTAMP_NTZ": lambda text: _EPOCH + timedelta(microseconds=int(text)),
}


def _difference(view: ScriptView, mine: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]]) -> str | None:
    """Match rows by their exact columns, then the inexact ones within their scale."""
    width = len(view.columns)
    loose = [view.columns.index(name) for name in view.inexact]
    exact = [i for i in range(width) if i not in loose]
    scale_of = {view.columns.index(name): width + i for i, name in enumerate(view.scaled)}
    left, right = _by_columns(mine, exact), _by_columns(theirs, exact)
    counts = {key: (len(left.get(key, ())), len(right.get(key, ()))) for key in {*left, *right}}
    wrong = {key: pair for key, pair in counts.items() if pair[0] != pair[1]}
    if wrong:
        key, (ours, spark) = next(iter(wrong.items()))
        return f"row {key}: {ours} times, by Spark {spark} times; {len(wrong)} rows differ"
    for key, rows in left.items():
        for position in loose:
            if position not in scale_of:
                continue
            mine_sorted = sorted(map(_order, (row[position] for row in rows)))
            there = sorted((*_order(row[position]), row[scale_of[position]]) for row in right[key])
            for a, (kind, value, scale) in zip(mine_sorted, there, strict=True):
                if a != (kind, value) and not (a[0] == kind and _within(a[1], value, scale)):
                    return f"row {key}, {view.columns[position]}: {a[1]}, Spark {value}, scale {scale}"
    return None


def _by_columns(
    rows: Sequence[tuple[Any, ...]], columns: Sequence[int]
) -> Mapping[tuple[Any, ...], list[tuple[Any, ...]]]:
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        found[tuple(comparable(row[i]) for i in columns)].append(row)
    return found


def _order(value: float | None) -> tuple[int, float]:
    if value is None:
        return 0, 0.0
    return (2, 0.0) if math.isnan(value) else (1, value)


def _within(mine: float, theirs: float, scale: float | None) -> bool:
    if scale is None or not math.isfinite(scale):
        # Infinite on the way in Spark, or not: what is left depends on the order.
        return True
    return abs(mine - theirs) <= TOLERANCE * scale
