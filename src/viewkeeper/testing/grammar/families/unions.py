"""UNION ALL of two selections whose columns agree in class, not in type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Query

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def union_all(builder: QueryBuilder, depth: int) -> Query:
    """Rows of two selections."""
    first = builder.rows()
    second = builder.rows(like=first.fields)
    return Query(f"{first.sql} UNION ALL {second.sql}", first.fields, first.in_duckdb and second.in_duckdb)


FAMILY = Family(nested=(Production(union_all, size=3),))
