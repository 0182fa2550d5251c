"""Queries over a query: CTEs and subqueries in FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Query, Relation

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def wrapped(builder: QueryBuilder, depth: int) -> Query:
    """A query whose FROM has a subquery, or whose WITH names one that it may read twice."""
    inner = builder.query(depth)
    name = builder.name("q")
    over = builder.over(Relation(name, inner.fields, inner.in_duckdb)).query(depth=0)
    # Spark's equal of an extension may read it more often.
    named = builder.choices.chance(50) or over.for_spark.count(f" {name} ") > 1

    def around(outside: str, inside: str) -> str:
        if named:
            return f"WITH {name} AS ({inside}) {outside}"
        return outside.replace(f" {name} ", f" ({inside}) ", 1)

    scaled = around(over.scaled_sql, inner.for_spark) if over.scaled_sql else ""
    spark = around(over.for_spark, inner.for_spark) if over.spark_sql or inner.spark_sql else ""
    return Query(around(over.sql, inner.sql), over.fields, over.in_duckdb, scaled, over.scaled, spark)


FAMILY = Family(nested=(Production(wrapped, weight=2, size=4),))
