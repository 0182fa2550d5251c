"""Types as CAST writes them → SqlType."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.plan.context import Context
from viewkeeper.plan.dialect import VerbatimSpark
from viewkeeper.zset import schema
from viewkeeper.zset.schema import MAX_PRECISION, SqlType

DEFAULT_PRECISION = 10

_SIMPLE = {
    "BOOLEAN": schema.BOOLEAN,
    "TINYINT": schema.TINYINT,
    "SMALLINT": schema.SMALLINT,
    "INT": schema.INT,
    "BIGINT": schema.BIGINT,
    "FLOAT": schema.FLOAT,
    "DOUBLE": schema.DOUBLE,
    "TEXT": schema.STRING,
    "BINARY": schema.BINARY,
    "DATE": schema.DATE,
    # sqlglot's names: Spark's TIMESTAMP is an instant, hence "with time zone".
    "TIMESTAMPTZ": schema.TIMESTAMP,
    "TIMESTAMPLTZ": schema.TIMESTAMP,
    "TIMESTAMPNTZ": schema.TIMESTAMP_NTZ,
    "NULL": schema.VOID,
}


_SPARK_ONLY = frozenset(("TIME", "VARIANT", "CHAR", "VARCHAR", "NCHAR", "NVARCHAR"))


def is_spark_only(node: exp.DataType) -> bool:
    """Return whether Spark has this type and columns cannot: it may occur inside an expression that Spark evaluates."""
    kinds = [part.this for part in node.find_all(exp.DataType)]
    return any(isinstance(k, exp.Interval) or (isinstance(k, exp.DType) and k.name in _SPARK_ONLY) for k in kinds)


def sql_type_of(node: exp.DataType, context: Context) -> SqlType:
    """Return the type that ``node`` writes.

    Raises:
        SqlError: ``UNSUPPORTED_TYPE``, ``INVALID_TYPE``.
    """
    name = node.this.name if isinstance(node.this, exp.DType) else ""
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "DECIMAL":
        return _decimal(node, context)
    children = node.expressions
    if name == "ARRAY" and len(children) == 1:
        return schema.array(sql_type_of(children[0], context))
    if name == "MAP" and len(children) == 2:
        return schema.map_of(sql_type_of(children[0], context), sql_type_of(children[1], context))
    if name == "STRUCT" and children and all(isinstance(child, exp.ColumnDef) for child in children):
        types = tuple(sql_type_of(child.args["kind"], context) for child in children)
        return SqlType("STRUCT", children=types, field_names=tuple(child.name for child in children))
    raise context.error(
        "UNSUPPORTED_TYPE", f"The type {node.sql(dialect=VerbatimSpark)} is not supported: cast to another.", node
    )


def _decimal(node: exp.DataType, context: Context) -> SqlType:
    digits = [int(parameter.name) for parameter in node.expressions]
    precision = digits[0] if digits else DEFAULT_PRECISION
    scale = digits[1] if len(digits) > 1 else 0
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        message = (
            f"DECIMAL({precision},{scale}) needs 1 to {MAX_PRECISION} digits, and no more of them behind the point."
        )
        raise context.error("INVALID_TYPE", message, node)
    return schema.decimal(precision, scale)
