"""Spark as the oracle: types, nullability, values and errors of expressions over one table of edge values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.evaluate import Evaluated, can_raise, evaluate
from viewkeeper.expressions.tree import Expression, Session
from viewkeeper.zset.schema import Column

_BATCH = 60
_ERRORS_TRIED = 3


@dataclass(frozen=True)
class Case:
    """An expression in both forms: Spark's SQL and what our resolver made of it, or the error that it raised."""

    sql: str
    expression: Expression | Exception
    strict: Expression | Exception
    """The same over columns that are never NULL."""


class Oracle:
    """One Spark session with the edge table.

    Args:
        batch: the rows.
        columns: their columns.
        session: zone and ANSI mode, set in Spark too.
    """

    def __init__(self, spark: SparkSession, batch: pa.RecordBatch, columns: Sequence[Column], session: Session) -> None:
        self.spark, self.batch, self.session = spark, batch, session
        spark.conf.set("spark.sql.session.timeZone", session.time_zone)
        spark.conf.set("spark.sql.ansi.enabled", str(session.ansi).lower())
        table = pa.Table.from_batches([batch])
        # Without types Spark takes times without a zone for instants.
        self.types = ", ".join(f"{column.name} {column.type}" for column in columns)
        frame = spark.createDataFrame(table, self.types).coalesce(1)
        frame.createOrReplaceTempView("edges")
        schema = frame.schema
        for field in schema.fields:
            field.nullable = False
        spark.createDataFrame([], schema).createOrReplaceTempView("strict_edges")
        self.rows = frame._jdf.queryExecution().executedPlan().executeCollect()

    def analyze(self, sql: str, table: str) -> tuple[str, bool] | str:
        """Return type and nullability, or the condition by which the analyzer refuses."""
        try:
            field = self.spark.sql(f"SELECT {sql} AS r FROM {table}").schema.fields[0]
        except AnalysisException as error:
            return error.getCondition() or "UNKNOWN"
        return field.dataType.simpleString(), field.nullable

    def problems(self, cases: Sequence[Case]) -> list[str]:
        """Return in words every difference between Spark and us."""
        portable = [case for case in cases if not isinstance(case.expression, NotPortable)]
        refused = [case for case in portable if isinstance(case.expression, Exception)]
        found = [complaint for case in refused if (complaint := self._typing(case))]
        resolved = [case for case in portable if not isinstance(case.expression, Exception)]
        accepted: list[tuple[Case, Evaluated]] = []
        for start in range(0, len(resolved), _BATCH):
            for case, complaint in self._typings(resolved[start : start + _BATCH]):
                if complaint:
                    found.append(complaint)
                else:
                    assert not isinstance(case.expression, Exception)
                    accepted.append((case, evaluate(case.expression, self.batch, self.session)))
        for start in range(0, len(accepted), _BATCH):
            found += self._values(accepted[start : start + _BATCH])
        for case, outcome in accepted:
            found += self._failures(case, outcome)
        return found

    def _typings(self, cases: Sequence[Case]) -> list[tuple[Case, str | None]]:
        """Return what is wrong with the type of each case: all analyzed at once, one by one where that fails."""
        columns = ", ".join(f"{case.sql} AS r{index}" for index, case in enumerate(cases))
        try:
            loose, strict = (self.spark.sql(f"SELECT {columns} FROM {t}").schema for t in ("edges", "strict_edges"))
        except AnalysisException:
            return [(case, self._typing(case)) for case in cases]
        result: list[tuple[Case, str | None]] = []
        for case, one, other in zip(cases, loose.fields, strict.fields, strict=True):
            assert not isinstance(case.expression, Exception)
            assert not isinstance(case.strict, Exception)
            ours = [(str(e.type), e.nullable) for e in (case.expression, case.strict)]
            theirs = [(f.dataType.simpleString(), f.nullable) for f in (one, other)]
            result.append((case, None if ours == theirs else f"{case.sql}: types {ours}, Spark {theirs}"))
        return result

    def _typing(self, case: Case) -> str | None:
        theirs = self.analyze(case.sql, "edges")
        if isinstance(case.expression, Exception):
            return (
                None if isinstance(theirs, str) else f"{case.sql}: we refuse ({case.expression}), Spark says {theirs}"
            )
        if isinstance(theirs, str):
            return f"{case.sql}: Spark refuses with {theirs}, we say {case.expression.type}"
        ours = (str(case.expression.type), case.expression.nullable)
        return None if ours == theirs else f"{case.sql}: type {ours}, Spark {theirs}"

    def _values(self, accepted: Sequence[tuple[Case, Evaluated]]) -> list[str]:
        length = self.batch.num_rows
        masks = {
            f"ok{index}": pa.array(~outcome.errors.rows if outcome.errors else np.ones(length, dtype=bool))
            for index, (_, outcome) in enumerate(accepted)
        }
        table = pa.table({**dict(zip(self.batch.schema.names, self.batch.columns, strict=True)), **masks})
        types = ", ".join([self.types, *(f"{name} BOOLEAN" for name in masks)])
        self.spark.createDataFrame(table, types).coalesce(1).createOrReplaceTempView("masked_edges")
        columns = [f"CASE WHEN ok{index} THEN {case.sql} END AS r{index}" for index, (case, _) in enumerate(accepted)]
        try:
            result = self.spark.sql(f"SELECT {', '.join(columns)} FROM masked_edges").toArrow()
        except Exception as error:
            if len(accepted) == 1:
                return [f"{accepted[0][0].sql}: Spark fails where we do not: {str(error)[:160]}"]
            middle = len(accepted) // 2
            return self._values(accepted[:middle]) + self._values(accepted[middle:])
        found = []
        for index, (case, outcome) in enumerate(accepted):
            theirs, ours = plain(pa.concat_arrays(result.column(index).chunks)), plain(outcome.values)
            assert len(ours) == len(theirs) == length, (case.sql, len(ours), len(theirs))
            wrong = [row for row in range(length) if not same(ours[row], theirs[row])]
            if wrong:
                row = wrong[0]
                answers = f"{ours[row]!r}, Spark {theirs[row]!r}; {self._inputs(case, row)}"
                found.append(f"{case.sql}: {len(wrong)} rows, first {row}: {answers}")
        return found

    def _inputs(self, case: Case, row: int) -> dict[str, object]:
        names = [n for n in self.batch.schema.names if n in case.sql]
        return {n: plain(self.batch.column(n).slice(row, 1))[0] for n in names}

    def _failures(self, case: Case, outcome: Evaluated) -> list[str]:
        if outcome.errors is None:
            return []
        assert not isinstance(case.expression, Exception)
        if not can_raise(case.expression):
            return [f"{case.sql}: fails although it cannot"]
        expression, rows = self._bound(case.sql)
        failing = np.flatnonzero(outcome.errors.rows)
        chosen = failing[np.linspace(0, len(failing) - 1, min(_ERRORS_TRIED, len(failing))).astype(int)]
        found = []
        for row in chosen:
            reason = outcome.errors.reasons[row]
            condition = self._condition(expression, rows[int(row)], case.sql, int(row))
            if condition != reason:
                found.append(
                    f"{case.sql}: row {row} fails with {reason}, Spark: {condition}; {self._inputs(case, row)}"
                )
        return found

    def _bound(self, sql: str) -> tuple[Any, Any]:
        plan = self.spark.sql(f"SELECT {sql} AS r FROM edges")._jdf.queryExecution().analyzed()
        jvm = self.spark._jvm
        package = jvm.org.apache.spark.sql.catalyst
        plan = package.optimizer.ReplaceExpressions.apply(plan)
        inputs = getattr(package.expressions, "package$AttributeSeq")(plan.child().output())
        return package.expressions.BindReferences.bindReference(
            plan.projectList().head().child(), inputs, False
        ), self.rows

    def _condition(self, expression: Any, row: Any, sql: str, index: int) -> str:
        try:
            value = expression.eval(row)
        except PySparkException as error:
            return (error.getCondition() or str(error)).split(".")[0]
        except Py4JJavaError:
            return self._condition_by_job(sql, index)
        return f"the value {value}"

    def _condition_by_job(self, sql: str, index: int) -> str:
        """Run a job over one row: for expressions that only the optimizer makes executable."""
        row = pa.Table.from_batches([self.batch.slice(index, 1)])
        self.spark.createDataFrame(row, self.types).createOrReplaceTempView("one_edge")
        try:
            value = self.spark.sql(f"SELECT {sql} AS r FROM one_edge").collect()
        except PySparkException as error:
            return (error.getCondition() or str(error)).split(".")[0]
        return f"the value {value}"


def plain(values: pa.Array) -> list[object]:
    """Return ``values`` as Python objects that exist for every date."""
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        return values.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    return values.to_pylist()  # type: ignore[no-any-return]


def same(one: object, other: object) -> bool:
    """Return whether two values are equal as SQL groups them: NaN equals NaN."""
    return one == other or (one != one and other != other)
