"""Our types and Spark's, both ways, and Spark's errors as ours."""

from __future__ import annotations

import datetime
import difflib
import re
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions
from pyspark.sql import types as spark_types

from viewkeeper.errors import (
    ConflictError,
    EvaluationError,
    FunctionUnavailable,
    SqlError,
    StoreError,
    UnsupportedSql,
    ViewkeeperError,
)
from viewkeeper.expressions.function import RULES
from viewkeeper.expressions.tree import Session
from viewkeeper.expressions.user_calls import RAISED, UNFIT
from viewkeeper.plan.function_names import AGGREGATES, GENERATORS, OTHER_AGGREGATES, WINDOW_ONLY
from viewkeeper.plan.parameters import parameter_literal
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema, SqlType

_TO_SPARK: Mapping[str, Callable[[], spark_types.DataType]] = {
    "BOOLEAN": spark_types.BooleanType,
    "TINYINT": spark_types.ByteType,
    "SMALLINT": spark_types.ShortType,
    "INT": spark_types.IntegerType,
    "BIGINT": spark_types.LongType,
    "FLOAT": spark_types.FloatType,
    "DOUBLE": spark_types.DoubleType,
    "STRING": spark_types.StringType,
    "BINARY": spark_types.BinaryType,
    "DATE": spark_types.DateType,
    "TIMESTAMP": spark_types.TimestampType,
    "TIMESTAMP_NTZ": spark_types.TimestampNTZType,
    "INTERVAL_DAY_TIME": spark_types.DayTimeIntervalType,
    "INTERVAL_YEAR_MONTH": spark_types.YearMonthIntervalType,
    "VOID": spark_types.NullType,
}
# Spark gives no intervals of months to Arrow, so none comes back from it.
_FROM_SPARK: Mapping[type, str] = {
    made: name for name, made in _TO_SPARK.items() if isinstance(made, type) and name != "INTERVAL_YEAR_MONTH"
}
_CODE = re.compile(r"\[([A-Z][A-Z0-9_]*)(?:\.[A-Z0-9_]+)*\]\s*")
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_OTHER_PYTHON = re.compile(r"in worker has different version: (\d+\.\d+)")
# What our code raises in Spark's workers, by its code; it comes back as a text in the worker's trace.
_OURS: Mapping[str, type[ViewkeeperError]] = {
    RAISED: EvaluationError,
    UNFIT: EvaluationError,
    "FUNCTION_NOT_LOADABLE": FunctionUnavailable,
    "FUNCTION_CHANGED": FunctionUnavailable,
    "STORE_NOT_SHARED": StoreError,
    "TABLE_CHANGED": ConflictError,
}
_OF_OURS = re.compile(rf"\[({'|'.join(_OURS)})\] ([^\n]*)")
_TOO_MANY_ROWS = "More than one row returned by a subquery"
_DATA_ERRORS = ("21", "22")  # SQLSTATE classes: cardinality violation, data exception


def to_spark_type(sql_type: SqlType) -> spark_types.DataType:
    """Return Spark's type of that name.

    Example:
        >>> to_spark_type(types.decimal(12, 2)).simpleString()
        'decimal(12,2)'
    """
    if sql_type.name == "DECIMAL":
        return spark_types.DecimalType(sql_type.precision, sql_type.scale)
    if sql_type.name == "ARRAY":
        return spark_types.ArrayType(to_spark_type(sql_type.children[0]))
    if sql_type.name == "MAP":
        return spark_types.MapType(to_spark_type(sql_type.children[0]), to_spark_type(sql_type.children[1]))
    if sql_type.name == "STRUCT":
        pairs = zip(sql_type.field_names, sql_type.children, strict=True)
        return spark_types.StructType([spark_types.StructField(name, to_spark_type(t)) for name, t in pairs])
    return _TO_SPARK[sql_type.name]()


def from_spark_type(spark_type: spark_types.DataType) -> SqlType:
    """Return our type for one of Spark's.

    Raises:
        UnsupportedSql: ``TYPE_NOT_SUPPORTED``.
    """
    if isinstance(spark_type, spark_types.DecimalType):
        return types.decimal(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, spark_types.ArrayType):
        return types.array(from_spark_type(spark_type.elementType))
    if isinstance(spark_type, spark_types.MapType):
        return types.map_of(from_spark_type(spark_type.keyType), from_spark_type(spark_type.valueType))
    if isinstance(spark_type, spark_types.StructType):
        children = tuple(from_spark_type(field.dataType) for field in spark_type.fields)
        return SqlType("STRUCT", children=children, field_names=tuple(spark_type.names))
    for kind, name in _FROM_SPARK.items():
        # A collated STRING compares otherwise than ours.
        if isinstance(spark_type, kind) and (name != "STRING" or spark_type.simpleString() == "string"):
            return SqlType(name)
    message = f"There are no columns of type {spark_type.simpleString().upper()}: cast to STRING or another type."
    raise UnsupportedSql("TYPE_NOT_SUPPORTED", message)


def to_spark_schema(schema: Schema) -> spark_types.StructType:
    """Return Spark's schema of the columns, with their nullability."""
    fields = [spark_types.StructField(c.name, to_spark_type(c.type), c.nullable) for c in schema.columns]
    return spark_types.StructType(fields)


def from_spark_schema(schema: spark_types.StructType) -> Schema:
    """Return our schema for one of Spark's."""
    return Schema(tuple(Column(f.name, from_spark_type(f.dataType), f.nullable) for f in schema.fields))


def parameter_columns(parameters: Mapping[str, object], session: Session) -> dict[str, SparkColumn]:
    """Return the values of ``:name`` as literals of the types that they have in process.

    Args:
        parameters: the values.
        session: the zone in which naive datetimes are read.

    Raises:
        InputError: ``INVALID_PARAMETER``.
    """
    return {name: _literal(name, value, session) for name, value in parameters.items()}


def _literal(name: str, value: object, session: Session) -> SparkColumn:
    parameter_literal(name, value, session)  # refuses what is no parameter
    if isinstance(value, Decimal):
        return functions.expr(f"{value:f}BD")
    if isinstance(value, datetime.datetime):
        text = value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ") + "Z" if value.tzinfo else str(value)
        return functions.expr(f"TIMESTAMP'{text}'")
    if isinstance(value, datetime.date):
        return functions.expr(f"DATE'{value.isoformat()}'")
    if isinstance(value, int) and not isinstance(value, bool):
        return functions.expr(f"{value}L")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return functions.lit(bytearray(value))
    return functions.lit(value)


def translated(error: Exception) -> ViewkeeperError:
    """Return what Spark's exception is to our users: wrong SQL, a row that cannot be computed, or a broken job."""
    text = str(error)
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    state = (error.getSqlState() if isinstance(error, PySparkException) else None) or ""
    code = condition.split(".")[0] if condition else ""
    if isinstance(error, (AnalysisException, ParseException)):
        return SqlError(code or "SYNTAX_ERROR", _said(error), {"condition": condition, "spark_place": _place(error)})
    if state[:2] in _DATA_ERRORS or code == "USER_RAISED_EXCEPTION":
        return EvaluationError(code, _message(text), {"condition": condition})
    if _TOO_MANY_ROWS in text:
        # Spark 4.3 throws this one without its condition.
        return EvaluationError("SCALAR_SUBQUERY_TOO_MANY_ROWS", f"{_TOO_MANY_ROWS} used as an expression.")
    ours = _OF_OURS.search(text)
    if ours is not None:
        return _OURS[ours[1]](ours[1], ours[2])
    other = _OTHER_PYTHON.search(text)
    if other is not None:
        return other_python(other[1])
    cause = next((line for line in reversed(text.splitlines()) if "Error: [" in line), "")
    message = f"Spark could not run the query: {cause.strip() or _message(text)}. Run it again, or look at Spark's log."
    return StoreError("SPARK_JOB_FAILED", message, {"condition": condition})


def other_python(workers: str) -> StoreError:
    """Return the error of workers whose Python, ``workers``, is not of this process's version."""
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    message = (
        f"Spark's workers run Python {workers}, this process {ours}, and what goes between them needs one version. "
        f"Before the session starts set PYSPARK_PYTHON, or spark.pyspark.python, to a Python {ours} "
        f"with viewkeeper installed: {sys.executable} is one on this machine."
    )
    return StoreError("PYTHON_VERSION_MISMATCH", message, {"workers": workers, "process": ours})


_NO_FUNCTION = "Spark's documentation lists its functions; one of your own is made known by db.register_function."


def _said(error: AnalysisException | ParseException) -> str:
    """Return what the analyzer says, with the nearest function where it knows none of a name."""
    if error.getCondition() != "UNRESOLVED_ROUTINE":
        return _message(str(error))
    name = str((error.getMessageParameters() or {}).get("routineName", "")).strip("`")
    known = sorted({*AGGREGATES, *OTHER_AGGREGATES, *GENERATORS, *WINDOW_ONLY, *RULES})
    near = difflib.get_close_matches(name.lower(), known, n=2)
    hint = f"Did you mean {' or '.join(near)}?" if near else _NO_FUNCTION
    return f"Spark SQL has no function {name}(). {hint}"


def _place(error: AnalysisException | ParseException) -> tuple[int, int] | None:
    """Return the line and the column, both from 0, where Spark places the error in the query's text."""
    found = _PLACE.search(str(error))
    return (int(found[1]) - 1, int(found[2])) if found else None


def _message(text: str) -> str:
    """Return the sentence of an error, without its code in front and without plans and traces behind."""
    return _CODE.sub("", text.split(" SQLSTATE:", maxsplit=1)[0], count=1).split("\n\n")[0].strip()
