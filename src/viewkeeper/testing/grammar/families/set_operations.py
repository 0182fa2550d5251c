"""DISTINCT, and UNION, INTERSECT and EXCEPT of two selections whose columns agree in class, not in type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Query

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

OPERATIONS = ("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")


def distinct(builder: QueryBuilder, depth: int) -> Query:
    """The distinct rows of a selection."""
    rows = builder.rows(joins=int(builder.choices.chance(30)))
    return Query(rows.sql.replace("SELECT ", "SELECT DISTINCT ", 1), rows.fields, rows.in_duckdb)


def compared(builder: QueryBuilder, depth: int) -> Query:
    """Rows of two selections, compared as wholes."""
    first = builder.rows()
    second = builder.rows(like=first.fields)
    operation = builder.choices.pick(OPERATIONS)
    return Query(f"{first.sql} {operation} {second.sql}", first.fields, first.in_duckdb and second.in_duckdb)


FAMILY = Family(
    queries=(Production(distinct),),
    nested=(Production(compared, weight=2, size=3),),
)
