"""What drawn queries are made of: classes of types, columns, relations, and what is in scope of an expression.

Expressions are drawn by class (all integers are one class, all decimals one), so that Spark's coercions are met on the
way: a join or a UNION ALL of INT and BIGINT, a CASE over DECIMALs of two scales.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

NUMERIC = ("integer", "decimal", "floating")
CLASSES = (*NUMERIC, "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz")
# A list of whatever class: shown, but nothing is computed from it.
LIST = "list"
# A sum or an average of intervals: shown, too.
INTERVAL = "interval"
# Arrays that tables have: shown, and read by what asks for their class.
NESTED = ("integers", "strings")
# A table's map is read at this key, as if that were a column.
AT_KEY = "['a']"
IN_DUCKDB = frozenset(("integer", "string", "date", "boolean"))
LITERALS = {
    "integer": ("0", "1", "2", "-3", "7"),
    "decimal": ("0.5", "1.25", "-2.00", "10.0"),
    "floating": ("CAST(0.5 AS DOUBLE)", "CAST(-1 AS DOUBLE)", "CAST(2 AS FLOAT)"),
    "string": ("''", "'a'", "'b'", "'é'", "'12'"),
    "binary": ("X''", "X'00'", "X'61'"),
    "boolean": ("TRUE", "FALSE"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
    "timestamp": ("TIMESTAMP '2024-02-29 12:00:00'",),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2024-02-29 12:00:00'",),
}
# What is moved lies within two centuries, so that it stays within the years that Python has.
_MOMENT = "CASE WHEN {0} BETWEEN TIMESTAMP '1900-01-01 00:00:00' AND TIMESTAMP '2100-01-01 00:00:00' THEN {0} END"
MOVED = {
    "date": "CASE WHEN {0} BETWEEN DATE '1900-01-01' AND DATE '2100-01-01' THEN {0} END",
    "timestamp": _MOMENT,
    "timestamp_ntz": _MOMENT.replace("TIMESTAMP", "TIMESTAMP_NTZ"),
}
NULLS = {
    "integer": "CAST(NULL AS INT)",
    "decimal": "CAST(NULL AS DECIMAL(10,2))",
    "floating": "CAST(NULL AS DOUBLE)",
    "string": "CAST(NULL AS STRING)",
    "binary": "CAST(NULL AS BINARY)",
    "boolean": "CAST(NULL AS BOOLEAN)",
    "date": "CAST(NULL AS DATE)",
    "timestamp": "CAST(NULL AS TIMESTAMP)",
    "timestamp_ntz": "CAST(NULL AS TIMESTAMP_NTZ)",
}


@dataclass(frozen=True)
class Field:
    """A column that a query can read or returns.

    Args:
        name: how it is written.
        kind: its class of type.
        exact: False for sums of floating values: Spark's answer depends on row order, so nothing is computed from it.
        settled: whether Spark's answer is compared though nothing is computed from it: of lists with a fixed order.
    """

    name: str
    kind: str
    exact: bool = True
    settled: bool = False

    def called(self, name: str) -> Field:
        """Return the same column under another name."""
        return replace(self, name=name)


def nested_fields(name: str, kind: str) -> tuple[Field, ...]:
    """Return as what queries know a table's column of a class that holds values.

    Example:
        >>> [field.name for field in nested_fields("v0", "structure")]
        ['v0.a', 'v0.b']
    """
    if kind == "mapping":
        return (Field(name + AT_KEY, "integer"),)
    if kind == "structure":
        return Field(f"{name}.a", "integer"), Field(f"{name}.b", "string")
    return (Field(name, kind, exact=False, settled=True),)


@dataclass(frozen=True)
class Relation:
    """A table, a view or a named subquery that queries can read."""

    name: str
    fields: tuple[Field, ...]
    in_duckdb: bool

    def qualified(self, alias: str) -> list[Field]:
        """Return its columns as they are written under ``alias``."""
        return [f.called(f"{alias}.{f.name}") for f in self.fields]


@dataclass(frozen=True)
class Query:
    """A drawn query: its text, its columns, and how far inexact ones may be off (``ScriptView.scaled_sql``).

    Where Spark refuses what it has, ``spark_sql`` is an equal one that Spark takes.
    """

    sql: str
    fields: tuple[Field, ...]
    in_duckdb: bool
    scaled_sql: str = ""
    scaled: tuple[str, ...] = ()
    spark_sql: str = ""

    @property
    def for_spark(self) -> str:
        """Return the query as Spark takes it."""
        return self.spark_sql or self.sql


@dataclass(frozen=True)
class Item:
    """A column of a SELECT list.

    Args:
        sql: its expression.
        field: what it returns.
        scale: of an inexact column, the expression by which Spark's answer may be off; empty where it is unknown.
    """

    sql: str
    field: Field
    scale: str = ""

    @property
    def listed(self) -> str:
        """Return it as the SELECT list has it."""
        return f"{self.sql} AS {self.field.name}"


@dataclass
class Scope:
    """What expressions may read, and what drawing them has found out.

    Args:
        fields: the columns.
        risky: whether expressions may fail on some rows.
        in_duckdb: whether all that was drawn so far means the same in DuckDB.
    """

    fields: list[Field]
    risky: bool
    in_duckdb: bool = True

    def beside(self, relation: Relation, theirs: Sequence[Field]) -> Scope:
        """Return the scope of a condition that joins ``relation``, whose columns ``theirs`` are."""
        return Scope([*self.fields, *theirs], self.risky, self.in_duckdb and relation.in_duckdb)

    def joined(self, both: Scope, theirs: Sequence[Field], kind: str) -> None:
        """Take over what drawing the condition of a join found out in ``both``, and the columns that it adds."""
        self.in_duckdb = both.in_duckdb
        if kind not in ("SEMI", "ANTI"):
            self.fields += theirs

    def of(self, kind: str) -> list[str]:
        """Return the columns of a class from which something may be computed."""
        return [f.name for f in self.fields if f.kind == kind and f.exact]

    def nested(self, kind: str) -> list[str]:
        """Return the columns of a class of arrays."""
        return [f.name for f in self.fields if f.kind == kind]

    def qualified(self) -> list[Field]:
        """Return the columns that have an alias: in a subquery, or beside another join, their names mean no other."""
        return [f for f in self.fields if "." in f.name]

    def kinds(self) -> list[str]:
        """Return the classes of those columns, each as often as it occurs."""
        return [f.kind for f in self.fields if f.exact] or ["integer"]


def comparable(fields: Iterable[Field], others: Sequence[Field]) -> list[tuple[Field, Field]]:
    """Return the pairs of fields, one of each side, that a condition can compare."""
    return [(a, b) for a in fields for b in others if a.kind == b.kind and a.exact and b.exact]
