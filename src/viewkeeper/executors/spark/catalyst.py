"""Expressions that only Spark computes, inside the fused job.

    level n-1 --> parcels --> unpack: rows for Spark as typed columns, other parcels as they are
              --> select: Spark evaluates each expression, on the rows that are for it
              --> pack: parcels again --> repartition by owner --> level n

Neither a job nor a stage is added: Spark pipelines the three steps behind the stage that sends the rows. An expression
that fails under ANSI rules would end the job, so each stands inside Catalyst's own ``TryEval`` around a structure: the
structure is NULL exactly where the expression could not be computed, and its field is the value (also where that is
NULL) otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from viewkeeper.executors.spark.packing import SCHEMA, Parcel, to_batches
from viewkeeper.executors.spark.payload import from_payload, to_payload
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import Node
from viewkeeper.zset.delta import Delta

Batches = Iterator[pa.RecordBatch]
Ways = Sequence[tuple[int, Catalyst]]

_WEIGHT = "__weight"


def with_catalyst(session: SparkSession, frame: DataFrame, nodes: tuple[Node, ...], level: int) -> DataFrame:
    """Return ``frame`` with what Spark computes for the operators of ``level``.

    Args:
        session: whose analyzer resolves the expressions; its time zone and ANSI mode are set for each.
        frame: parcels that leave the level before.
        nodes: the circuit.
        level: the level that the rows are for.
    """
    ways = [(n.id, n.operator) for n in nodes if n.level == level and isinstance(n.operator, Catalyst)]
    if not ways:
        return frame
    typed = frame.mapInArrow(_unpacker(ways), from_arrow_schema(_typed_schema(ways)))
    for target, operator in ways:
        typed = _evaluated(session, typed, target, operator)
    return typed.mapInArrow(_packer(ways), from_arrow_schema(SCHEMA))


def computed(session: SparkSession, operator: Catalyst, delta: Delta) -> Delta:
    """Return the few rows of ``delta`` as they come back from Spark: with what it computes of them.

    Args:
        session: whose analyzer resolves the expressions; its time zone and ANSI mode are set.
        operator: the expressions.
        delta: its input.
    """
    ways = [(0, operator)]
    schema = _typed_schema(ways)
    rows = _unpacker(ways)(to_batches([Parcel(0, 0, 0, to_payload(delta))]))
    typed = session.createDataFrame(pa.Table.from_batches(rows, schema), from_arrow_schema(schema))
    # Packed: toArrow() refuses some of Spark's own types, as that of array(), whose elements have none.
    packed = _evaluated(session, typed, 0, operator).mapInArrow(_packer(ways), from_arrow_schema(SCHEMA)).toArrow()
    arrives = operator.arrives.to_arrow()
    return Delta.concat([from_payload(one.as_buffer(), arrives) for one in packed.column("payload")], arrives)


def _evaluated(session: SparkSession, typed: DataFrame, target: int, operator: Catalyst) -> DataFrame:
    """Add a column per expression: a structure with the value, NULL where it failed or the row is for others."""
    session.conf.set("spark.sql.session.timeZone", operator.session.time_zone)
    session.conf.set("spark.sql.ansi.enabled", str(operator.session.ansi).lower())
    columns = {}
    for number, expression in enumerate(operator.expressions):
        text = expression.sql
        for position in expression.inputs:
            text = text.replace(f"`_c{position}`", f"`{_input(target)}`.`_c{position}`")
        tried = _try(session, F.struct(F.expr(text).alias("value")))
        columns[_output(target, number)] = F.when(F.col("target") == target, tried)
    return typed.withColumns(columns)


def _try(session: SparkSession, column: Column) -> Column:
    """Return ``column`` as Catalyst's TryEval computes it: NULL instead of an error."""
    jvm: Any = session._jvm
    utilities = jvm.org.apache.spark.sql.classic.ExpressionUtils
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(utilities.expression(column._jc))
    return type(column)(utilities.column(tried))


def _input(target: int) -> str:
    return f"in_{target}"


def _output(target: int, number: int) -> str:
    return f"out_{target}_{number}"


def _struct_type(operator: Catalyst) -> pa.StructType:
    types = operator.input_schema.to_arrow().types
    return pa.struct([pa.field(f"_c{i}", t) for i, t in enumerate(types)])


def _typed_schema(ways: Ways) -> pa.Schema:
    inputs = [pa.field(_input(target), _struct_type(operator)) for target, operator in ways]
    return pa.schema([*SCHEMA, pa.field(_WEIGHT, pa.int64()), *inputs])


def _unpacker(ways: Ways) -> Callable[[Batches], Batches]:
    operators = dict(ways)

    def unpack(batches: Batches) -> Batches:
        schema = _typed_schema(ways)
        for batch in batches:
            targets = batch.column("target").to_numpy()
            mine = np.isin(targets, list(operators))
            others = batch.filter(pa.array(~mine))
            if others.num_rows:
                rest = [pa.nulls(others.num_rows, f.type) for f in list(schema)[len(SCHEMA) :]]
                yield pa.RecordBatch.from_arrays([*others.columns, *rest], schema=schema)
            for row in np.flatnonzero(mine).tolist():
                yield _typed_rows(schema, batch, row, operators)

    return unpack


def _typed_rows(schema: pa.Schema, batch: pa.RecordBatch, row: int, operators: dict[int, Catalyst]) -> pa.RecordBatch:
    """Return the rows of one parcel as typed columns."""
    target = batch.column("target")[row].as_py()
    operator = operators[target]
    delta = from_payload(batch.column("payload")[row].as_buffer(), operator.input_schema.to_arrow())
    count = delta.num_rows
    head = [pa.array(np.full(count, batch.column(n)[row].as_py()), pa.int32()) for n in ("owner", "level", "target")]
    columns = [*head, pa.nulls(count, pa.binary()), pa.array(delta.weights)]
    for field in list(schema)[len(SCHEMA) + 1 :]:
        if field.name == _input(target):
            columns.append(pa.StructArray.from_arrays(delta.rows.columns, fields=list(field.type)))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _packer(ways: Ways) -> Callable[[Batches], Batches]:
    operators = dict(ways)

    def pack(batches: Batches) -> Batches:
        for batch in batches:
            targets = batch.column("target").to_numpy()
            mine = np.isin(targets, list(operators))
            others = batch.filter(pa.array(~mine))
            if others.num_rows:
                yield pa.RecordBatch.from_arrays([others.column(f.name) for f in SCHEMA], schema=SCHEMA)
            for target, operator in operators.items():
                rows = batch.filter(pa.array(targets == target))
                if rows.num_rows:
                    yield from to_batches(_parcels(rows, target, operator))

    return pack


def _parcels(rows: pa.RecordBatch, target: int, operator: Catalyst) -> Iterator[Parcel]:
    """Yield the evaluated rows of one operator as parcels, by owner."""
    outputs = [rows.column(_output(target, i)) for i in range(len(operator.expressions))]
    failed = np.zeros(rows.num_rows, dtype=bool)
    for output in () if operator.captures else outputs:
        failed |= output.is_null().to_numpy(zero_copy_only=False)
    schema = operator.arrives.to_arrow()
    given = rows.column(_input(target)).flatten()
    columns = outputs if operator.captures else [output.field(0) for output in outputs]
    computed = [column.cast(schema.field(len(given) + i).type) for i, column in enumerate(columns)]
    batch = pa.RecordBatch.from_arrays([*given, *computed, pa.array(failed)], schema=schema)
    delta = Delta(batch, rows.column(_WEIGHT).to_numpy())
    owners = rows.column("owner").to_numpy()
    level = rows.column("level")[0].as_py()
    for owner in np.unique(owners).tolist():
        yield Parcel(owner, level, target, to_payload(delta.filter(owners == owner)))
