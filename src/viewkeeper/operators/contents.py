"""What an operator's rows and state must be, said as relational queries: the ground on which VERIFY stands.

Beside ``step`` each operator says in Spark SQL what its output is over its inputs (``query``), and what each of its
state tables must hold over its output or its inputs (``contents``). VERIFY lets Spark compute both from base rows; no
step and no plain twin takes part, so a mistake in them shows.

In the SQL the inputs are the relations ``i0``, ``i1``, ... and columns are `` `_c0` ``, `` `_c1` ``, ... by position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from viewkeeper.expressions.spark_sql import cast_sql, column_name
from viewkeeper.expressions.tree import Session
from viewkeeper.zset.schema import Column, Schema, SqlType

Finish = Callable[[pa.RecordBatch], list[pa.Array]]


@dataclass(frozen=True)
class Rounds:
    """A query that goes on from its own rows, until none are new.

    Args:
        sql: Spark SQL for the next rows, over ``newest`` beside the inputs.
        distinct: whether only rows are new that were not there before.
        limit: how many rounds there may be where ``distinct`` does not end them.
    """

    sql: str
    distinct: bool
    limit: int


@dataclass(frozen=True)
class Query:
    """Rows as a query over an operator's inputs.

    Args:
        sql: Spark SQL over ``i0``, ``i1``, ...
        schema: the rows.
        session: time zone and ANSI mode in force.
        finish: makes columns of ``schema`` from the columns that ``sql`` gives, batch by batch; None where those are
            the rows. For what SQL cannot say exactly: sums of doubles.
        rounds: how ``sql`` goes on; None where its rows are all.
    """

    sql: str
    schema: Schema
    session: Session = field(default_factory=Session)
    finish: Finish | None = None
    rounds: Rounds | None = None


@dataclass(frozen=True)
class Contents:
    """What a state table must hold.

    Args:
        state: the state table.
        kind: what it is, for people: ``arrangement``, ``groups``, ``values``, ``rows``, ``candidates``.
        query: the rows that it stands for, in a form that shows what they mean.
        key: positions of the columns that tell them apart.
        decode: from stored keys and values to columns of those rows.
        keys_of: from rows to the keys under which they must stand.
    """

    state: str
    kind: str
    query: Query
    key: tuple[int, ...]
    decode: Callable[[Sequence[bytes], Sequence[bytes]], Sequence[pa.Array]]
    keys_of: Callable[[Sequence[pa.Array]], Sequence[bytes]]


def columns_sql(positions: Sequence[int], relation: str = "") -> list[str]:
    """Return the columns at ``positions``, each under the name of its place in the list.

    Example:
        >>> columns_sql((2, 0), "l")
        ['l.`_c2` AS `_c0`', 'l.`_c0` AS `_c1`']
    """
    return [named(f"{relation}.{column_name(p)}" if relation else column_name(p), i) for i, p in enumerate(positions)]


def named(sql: str, position: int) -> str:
    """Return an item of a SELECT list as the column at ``position``."""
    return f"{sql} AS {column_name(position)}"


def cast_named(sql: str, sql_type: SqlType, position: int) -> str:
    """Return an item of a SELECT list, cast to ``sql_type``, as the column at ``position``."""
    return named(cast_sql(sql, sql_type), position)


def distinct_names(schema: Schema) -> Schema:
    """Return ``schema`` with a number behind each name that stands in it before, so that rows can be shown by name."""
    names: list[str] = []
    for name in schema.names:
        count = 1
        found = name
        while found in names:
            count += 1
            found = f"{name}_{count}"
        names.append(found)
    return Schema(tuple(Column(n, c.type, c.nullable) for n, c in zip(names, schema.columns, strict=True)))
