"""What a query by Spark reads, and what it answers: the words of the port between evaluation and the Spark executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import pyarrow as pa

from viewkeeper.expressions.tree import Session
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.store.model import ColumnRead, Table
from viewkeeper.zset.schema import Schema, SqlType


@dataclass(frozen=True)
class TableInput:
    """A base table as it was at a position of the log, which the caller holds.

    Args:
        table: the table.
        position: a sequence number.
        columns: those of its columns that are seen, as a view knows them; None for all.
    """

    table: Table
    position: int
    columns: tuple[ColumnRead, ...] | None = None


@dataclass(frozen=True)
class FilesInput:
    """Rows that the caller wrote to Arrow IPC files, each a stream of batches.

    Args:
        schema: their columns.
        paths: the files; tasks read them side by side.
    """

    schema: Schema
    paths: tuple[str, ...]


@dataclass(frozen=True)
class SparkFunction:
    """What a name means that a query calls.

    Args:
        function: the user's function.
        fails: what a row gives for which it fails: the query ``raises``, it is ``null``, or the result is ``captured``
            (expressions/user_calls.py). Spark calls functions in branches that are not taken, too.
    """

    function: UserFunction
    fails: Literal["raises", "null", "captured"] = "raises"


def spark_functions(functions: Iterable[UserFunction]) -> dict[str, SparkFunction]:
    """Return ``functions`` as the text of typed expressions calls them (expressions/spark_sql.py)."""
    return {function.spark_name: SparkFunction(function, "captured") for function in functions}


@dataclass(frozen=True)
class QueryInput:
    """The rows of another query.

    Args:
        sql: the query.
        inputs: what its names mean.
        session: time zone and ANSI mode under which it is analysed.
        columns: other names for its columns; None to keep them.
        functions: users' functions that it may call, by name.
    """

    sql: str
    inputs: Mapping[str, Input] = field(hash=False)
    session: Session
    columns: tuple[str, ...] | None = None
    functions: Mapping[str, SparkFunction] = field(default_factory=dict, hash=False)


Input: TypeAlias = TableInput | FilesInput | QueryInput


@dataclass(frozen=True)
class SparkAnswer:
    """The rows of a query by Spark, read once; the batches hold columns by position."""

    schema: Schema
    batches: Iterator[pa.RecordBatch]


class SparkQueries(Protocol):
    """Spark SQL over a store's rows."""

    def sql(
        self,
        query: str,
        inputs: Mapping[str, Input],
        session: Session | None = None,
        parameters: Mapping[str, object] | None = None,
        functions: Mapping[str, SparkFunction] | None = None,
    ) -> SparkAnswer:
        """Run ``query``, in which names mean ``inputs``, and those that are called ``functions``.

        Raises:
            SqlError: what Spark's analyzer refuses.
            EvaluationError: an expression cannot be computed for some row.
        """

    def analyze(self, expression: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        """Return type, nullability and determinism of an expression over columns of ``schema``.

        Raises:
            SqlError: what Spark's analyzer refuses.
        """
