"""Spark SQL over a store's rows: the part of SELECT, DML and VERIFY that is Spark's.

Each query runs in a session of its own beside the given one, so names that it defines meet nobody else's. Names are
bound when a query is analysed, one query after the other: the same name may mean different things in two of them.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from viewkeeper.errors import UnsupportedSql
from viewkeeper.executors.spark.cargo import OpenSpaces, borrowed
from viewkeeper.executors.spark.functions import register
from viewkeeper.executors.spark.rows import RESULT_SCHEMA, ReadFiles, ReadTable, WriteFile
from viewkeeper.executors.spark.types import from_spark_schema, parameter_columns, to_spark_schema, translated
from viewkeeper.expressions.tree import Session
from viewkeeper.store.scans import split_table
from viewkeeper.store.tables import format_of
from viewkeeper.views.inputs import FilesInput, Input, SparkAnswer, SparkFunction, TableInput
from viewkeeper.zset.schema import Schema, SqlType

ROWS_PER_TASK = 500_000

_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.compression.codec": "none",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
_QUERY_LOG = "SQLQueryContextLogger"


class SparkQueryRunner:
    """Implements ``views.inputs.SparkQueries``.

    Args:
        session_factory: gives the SparkSession when it is first needed; it keeps its settings.
        open_spaces: opens the store's spaces, here and in Spark's workers; picklable.
    """

    def __init__(self, session_factory: Callable[[], SparkSession], open_spaces: OpenSpaces) -> None:
        self._session_factory = session_factory
        self._open_spaces = open_spaces
        self._analyst: tuple[SparkSession, Schema, Session, SparkSession] | None = None

    def sql(
        self,
        query: str,
        inputs: Mapping[str, Input],
        session: Session | None = None,
        parameters: Mapping[str, object] | None = None,
        functions: Mapping[str, SparkFunction] | None = None,
    ) -> SparkAnswer:
        """Run ``query``, in which names mean ``inputs``.

        Args:
            query: Spark SQL.
            inputs: tables, files of rows and other queries by name; names compare without regard to case.
            session: time zone and ANSI mode.
            parameters: the values of ``:name``.
            functions: users' functions by name.

        Returns:
            The rows, in the query's order; the job runs when the first is read.

        Raises:
            SqlError: what Spark's analyzer refuses.
            EvaluationError: an expression cannot be computed for some row.
        """
        spark = self._beside()
        with _translating():
            frame = self._frame(spark, query, inputs, session or Session(), parameters or {}, functions or {})
            schema = from_spark_schema(frame.schema)
        return SparkAnswer(schema, _rows(frame, schema))

    def analyze(self, expression: str, schema: Schema, session: Session | None = None) -> tuple[SqlType, bool, bool]:
        """Return type, nullability and determinism of an expression over the columns of ``schema``.

        Args:
            expression: Spark SQL over the names of the columns.
            schema: the columns.
            session: time zone and ANSI mode.

        Raises:
            SqlError: what Spark's analyzer refuses.
            UnsupportedSql: ``EXPRESSION_NOT_SCALAR`` for aggregates, windows and generators.
        """
        with _translating():
            spark = self._session_over(schema, session or Session())
            frame = spark.sql(f"SELECT (\n{expression}\n) AS value FROM input")
            field = from_spark_schema(frame.schema).columns[0]
            plan = frame._jdf.queryExecution().analyzed()
        below = plan.children().head()
        if below.nodeName() == "Generate" and expression.startswith("explode("):
            # The planner asks so for the nullability of elements, which types do not tell.
            below = below.children().head()
        if plan.nodeName() != "Project" or below.nodeName() != "SubqueryAlias":
            message = f"{expression} does not belong to one row: aggregates, windows and generators are refused here."
            raise UnsupportedSql("EXPRESSION_NOT_SCALAR", message)
        return field.type, field.nullable, bool(plan.expressions().head().deterministic())

    def _session_over(self, schema: Schema, session: Session) -> SparkSession:
        """Return a session in which ``input`` has the columns of ``schema``: the last one, where it has them."""
        given = self._session_factory()
        if self._analyst is not None and self._analyst[0] is given and self._analyst[1:3] == (schema, session):
            return self._analyst[3]
        spark = self._beside()
        _apply(spark, session)
        spark.createDataFrame([], to_spark_schema(schema)).createOrReplaceTempView("input")
        self._analyst = (given, schema, session, spark)
        return spark

    def _beside(self) -> SparkSession:
        logging.getLogger(_QUERY_LOG).setLevel(logging.CRITICAL)  # it prints what is raised anyway
        given = self._session_factory()
        spark = given.newSession()
        # A new session has Spark's 200 partitions whatever the given one says.
        for name, value in {**_SETTINGS, _PARTITIONS: str(given.conf.get(_PARTITIONS))}.items():
            spark.conf.set(name, value)
        return spark

    def _frame(
        self,
        spark: SparkSession,
        query: str,
        inputs: Mapping[str, Input],
        session: Session,
        parameters: Mapping[str, object],
        functions: Mapping[str, SparkFunction],
    ) -> DataFrame:
        frames = {name: self._input(spark, given) for name, given in inputs.items()}
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        register(spark, query, functions)
        _apply(spark, session)
        return spark.sql(query, args=parameter_columns(parameters, session)) if parameters else spark.sql(query)

    def _input(self, spark: SparkSession, given: Input) -> DataFrame:
        if isinstance(given, TableInput):
            return self._table(spark, given)
        if isinstance(given, FilesInput):
            count = len(given.paths)
            numbers = spark.range(0, count, 1, count)
            return numbers.mapInArrow(ReadFiles(given.paths), to_spark_schema(given.schema))
        frame = self._frame(spark, given.sql, given.inputs, given.session, {}, given.functions)
        return frame if given.columns is None else frame.toDF(*given.columns)

    def _table(self, spark: SparkSession, given: TableInput) -> DataFrame:
        table = given.table
        with borrowed(self._open_spaces) as (base, _), base.read() as txn:
            rows = txn.count(format_of(table).database)
            parts = min(max(spark.sparkContext.defaultParallelism, rows // ROWS_PER_TASK), rows // 1000 + 1)
            ranges = tuple(split_table(txn, table, parts))
        _, schema = table.seen(given.columns)
        read = ReadTable(self._open_spaces, table, ranges, given.position, given.columns)
        return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read, to_spark_schema(schema))


def _apply(spark: SparkSession, session: Session) -> None:
    """Let the session analyse as ``session`` says: zone and mode become part of what is analysed."""
    spark.conf.set("spark.sql.session.timeZone", session.time_zone)
    spark.conf.set("spark.sql.ansi.enabled", str(session.ansi).lower())


def _rows(frame: DataFrame, schema: Schema) -> Iterator[pa.RecordBatch]:
    arrow = schema.to_arrow()
    with tempfile.TemporaryDirectory(prefix="viewkeeper-result-") as folder:
        # Arrow structs, which rows are between Spark and Python, take no name twice.
        named = frame.toDF(*(f"c{i}" for i in range(len(schema))))
        with _translating():
            files = named.mapInArrow(WriteFile(folder), RESULT_SCHEMA).collect()
        for file in sorted(files, key=lambda row: int(row.partition)):
            with pa.OSFile(file.path) as source:
                for batch in pa.ipc.open_stream(source):
                    yield _typed(batch, arrow)
            Path(file.path).unlink()


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    pairs = zip(batch.columns, schema, strict=True)
    columns = [column if column.type == field.type else column.cast(field.type) for column, field in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise translated(error) from error
