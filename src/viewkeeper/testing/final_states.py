"""Final states: what views show at a script's end, compared with the full query in Spark, many in one session.

Names, types, nullability and rows are compared. Sums of DOUBLE depend on row order in Spark: they may differ by
1e-12 of the sum of the group's absolute values.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewkeeper.testing.oracle import Run
from viewkeeper.testing.scripts import ScriptView, comparable
from viewkeeper.zset.schema import Schema

TOLERANCE = 1e-12
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
# Spark adds in 64 bits, or a decimal's precision, on the way; we look at the total only.
_OVERFLOWS = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


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
        tables: name, columns as DDL, rows.
        views: all views in order.
        good: those that show the tables' rows.
    """

    label: str
    tables: tuple[tuple[str, str, pa.RecordBatch], ...]
    views: tuple[ScriptView, ...]
    good: tuple[FinalView, ...]

    @staticmethod
    def of(label: str, run: Run) -> FinalState:
        """Return the state of a script that has run."""
        tables = []
        for table in run.script.tables:
            columns = [f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in table.columns]
            tables.append((table.name, ", ".join(columns), run.current(table.name)))
        good = []
        for view in run.good_views():
            result = run.database.sql(f"SELECT * FROM {view.name}")
            rows = tuple(zip(*(column.to_pylist() for column in result.to_arrow().columns), strict=True))
            good.append(FinalView(view, result.schema, rows))
        return FinalState(label, tuple(tables), run.script.views, tuple(good))


def problems_by_spark(spark: Any, states: Iterable[FinalState]) -> tuple[int, list[str]]:
    """Compare views with Spark's answers.

    Args:
        spark: a SparkSession; a session beside it is used.
        states: what to compare.

    Returns:
        How many views were compared, and every difference in words.
    """
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    count = 0
    problems: list[str] = []
    for state in states:
        for name, columns, batch in state.tables:
            session.createDataFrame(pa.Table.from_batches([batch]), columns).createOrReplaceTempView(name)
        for view in state.views:
            session.sql(view.sql).toDF(*view.columns).createOrReplaceTempView(view.name)
        for final in state.good:
            count += 1
            problem = _problem(session, final)
            if problem is not None:
                problems.append(f"{state.label}, {final.view.name}: {problem}; {final.view.sql}")
    return count, problems


def _problem(session: Any, final: FinalView) -> str | None:
    view = final.view
    answer = session.sql(view.sql)
    theirs = [(field.dataType.simpleString(), field.nullable) for field in answer.schema.fields]
    mine = [(str(column.type), column.nullable) for column in final.schema.columns]
    if theirs != mine:
        return f"columns {mine}, Spark {theirs}"
    try:
        table = (session.sql(view.scaled_sql) if view.scaled_sql else answer).toArrow()
    except Exception as error:
        return None if _is_overflow_on_the_way(view, str(error)) else f"Spark fails: {str(error)[:200]}"
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return _difference(view, final.rows, rows)


def _is_overflow_on_the_way(view: ScriptView, message: str) -> bool:
    return any(code in message for code in _OVERFLOWS) and (
        "SUM(" in view.sql or "AVG(" in view.sql or "view" in view.sql
    )


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
