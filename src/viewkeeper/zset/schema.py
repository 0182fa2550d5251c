"""Columns and types: Spark's SQL types, and the Arrow type that holds each.

A column is found by its position inside the engine and by its name at the edges, because user columns may carry any
name, even twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
FIXED_WIDTH = frozenset({*INTEGER_BITS, "BOOLEAN", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})
MAX_PRECISION = 38


@dataclass(frozen=True)
class SqlType:
    """A Spark SQL type.

    Args:
        name: one of BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP,
            TIMESTAMP_NTZ, INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH, ARRAY, MAP, STRUCT, VOID (the type of a bare NULL).
        precision: digits of a DECIMAL.
        scale: digits of a DECIMAL behind the point.
        children: ARRAY: the element; MAP: key and value; STRUCT: the fields in order.
        field_names: names of a STRUCT's fields.
    """

    name: str
    precision: int = 0
    scale: int = 0
    children: tuple[SqlType, ...] = ()
    field_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the type as Spark's ``simpleString`` writes it, for example ``decimal(12,2)`` or ``array<int>``."""
        if self.name == "DECIMAL":
            return f"decimal({self.precision},{self.scale})"
        if self.name in ("ARRAY", "MAP"):
            return f"{self.name.lower()}<{','.join(map(str, self.children))}>"
        if self.name == "STRUCT":
            inner = ",".join(f"{n}:{t}" for n, t in zip(self.field_names, self.children, strict=True))
            return f"struct<{inner}>"
        if self.name == "INTERVAL_DAY_TIME":
            return "interval day to second"
        if self.name == "INTERVAL_YEAR_MONTH":
            return "interval year to month"
        return self.name.lower()

    @property
    def is_integer(self) -> bool:
        """Whether the type is TINYINT, SMALLINT, INT or BIGINT."""
        return self.name in INTEGER_BITS

    @property
    def is_floating(self) -> bool:
        """Whether the type is FLOAT or DOUBLE."""
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_numeric(self) -> bool:
        """Whether the type is an integer, a decimal or floating."""
        return self.is_integer or self.is_floating or self.name == "DECIMAL"

    @property
    def is_nested(self) -> bool:
        """Whether the type is ARRAY, MAP or STRUCT."""
        return self.name in ("ARRAY", "MAP", "STRUCT")

    @property
    def contains_map(self) -> bool:
        """Whether a MAP occurs in the type: such values can be neither grouped nor ordered."""
        return self.name == "MAP" or any(child.contains_map for child in self.children)


BOOLEAN = SqlType("BOOLEAN")
TINYINT = SqlType("TINYINT")
SMALLINT = SqlType("SMALLINT")
INT = SqlType("INT")
BIGINT = SqlType("BIGINT")
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
STRING = SqlType("STRING")
BINARY = SqlType("BINARY")
DATE = SqlType("DATE")
TIMESTAMP = SqlType("TIMESTAMP")
TIMESTAMP_NTZ = SqlType("TIMESTAMP_NTZ")
INTERVAL_DAY_TIME = SqlType("INTERVAL_DAY_TIME")
INTERVAL_YEAR_MONTH = SqlType("INTERVAL_YEAR_MONTH")
VOID = SqlType("VOID")


def decimal(precision: int, scale: int) -> SqlType:
    """Return the DECIMAL type with ``precision`` digits, ``scale`` of them behind the point."""
    return SqlType("DECIMAL", precision, scale)


def array(element: SqlType) -> SqlType:
    """Return the ARRAY type of ``element``."""
    return SqlType("ARRAY", children=(element,))


def map_of(key: SqlType, value: SqlType) -> SqlType:
    """Return the MAP type from ``key`` to ``value``."""
    return SqlType("MAP", children=(key, value))


def struct(**fields: SqlType) -> SqlType:
    """Return the STRUCT type with ``fields`` in order."""
    return SqlType("STRUCT", children=tuple(fields.values()), field_names=tuple(fields))


_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "INTERVAL_DAY_TIME": pa.duration("us"),
    "INTERVAL_YEAR_MONTH": pa.int32(),
    "VOID": pa.null(),
}


def to_arrow_type(sql_type: SqlType) -> pa.DataType:
    """Return the Arrow type that holds values of ``sql_type``.

    Example:
        >>> to_arrow_type(decimal(12, 2))
        Decimal128Type(decimal128(12, 2))
    """
    if sql_type.name == "DECIMAL":
        return pa.decimal128(sql_type.precision, sql_type.scale)
    if sql_type.name == "ARRAY":
        return pa.list_(to_arrow_type(sql_type.children[0]))
    if sql_type.name == "MAP":
        key, value = sql_type.children
        # The type of map() has no keys, and Arrow none without a type.
        return pa.map_(pa.bool_() if key.name == "VOID" else to_arrow_type(key), to_arrow_type(value))
    if sql_type.name == "STRUCT":
        pairs = zip(sql_type.field_names, sql_type.children, strict=True)
        return pa.struct([pa.field(name, to_arrow_type(child)) for name, child in pairs])
    return _ARROW[sql_type.name]


@dataclass(frozen=True)
class Column:
    """A named, typed column of a table, a view or an intermediate result."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """Columns in order; names need not differ inside the engine."""

    columns: tuple[Column, ...]

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types in order."""
        return tuple(column.type for column in self.columns)

    def index(self, name: str) -> int:
        """Return the position of ``name``, compared as Spark does, without regard to case; -1 where it is absent."""
        folded = name.lower()
        return next((i for i, column in enumerate(self.columns) if column.name.lower() == folded), -1)

    def select(self, indices: tuple[int, ...]) -> Schema:
        """Return the schema of the columns at ``indices``."""
        return Schema(tuple(self.columns[i] for i in indices))

    def renamed(self, names: tuple[str, ...]) -> Schema:
        """Return the schema under other ``names``."""
        return Schema(tuple(replace(c, name=n) for c, n in zip(self.columns, names, strict=True)))

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema, all fields nullable: the engine keeps nullability beside the data."""
        return self._arrow

    @cached_property
    def _arrow(self) -> pa.Schema:
        # Epochs of a few rows ask for it so often that making it anew took a thirtieth of their time.
        return pa.schema([pa.field(c.name, to_arrow_type(c.type)) for c in self.columns])

    def __reduce__(self) -> tuple[type[Schema], tuple[tuple[Column, ...]]]:
        """Let a pickle hold the columns only."""
        return Schema, (self.columns,)
