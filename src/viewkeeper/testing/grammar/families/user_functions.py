"""Python functions of the user, in SELECT lists, WHERE, GROUP BY, aggregates and HAVING; in ON Spark has them hardly.

What they are is in ``testing.user_functions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def applied(builder: QueryBuilder, depth: int) -> Query:
    """Rows with results of calls, those whose call passes a condition."""
    source, scope = builder.source()
    number, text = _number(builder, scope), _text(builder, scope)
    items = [Item(number, Field(builder.name("n"), "integer")), Item(text, Field(builder.name("x"), "string"))]
    listed = ", ".join(item.listed for item in items)
    condition = builder.choices.pick((f"{number} > 1", f"{number} IS NULL", f"{text} <> ''", f"LENGTH({text}) > 1"))
    where = f" WHERE {condition}" if builder.choices.chance(60) else ""
    return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in items), in_duckdb=False)


def grouped(builder: QueryBuilder, depth: int) -> Query:
    """Groups by the result of a call, with aggregates of calls."""
    source, scope = builder.source()
    group, total, last = builder.name("n"), builder.name("total"), builder.name("x")
    number, text = _number(builder, scope), _text(builder, scope)
    having = f" HAVING drawn_number(COUNT(*)) < 3 OR MAX({text}) IS NULL" if builder.choices.chance(40) else ""
    items = f"{number} AS {group}, SUM({_number(builder, scope)}) AS {total}, MAX({text}) AS {last}"
    fields = (Field(group, "integer"), Field(total, "integer"), Field(last, "string"))
    return Query(f"SELECT {items} FROM {source} GROUP BY {number}{having}", fields, in_duckdb=False)


def _number(builder: QueryBuilder, scope: Scope) -> str:
    return f"drawn_number({builder.expression(scope, 'integer', 0)})"


def _text(builder: QueryBuilder, scope: Scope) -> str:
    return f"drawn_text({builder.expression(scope, 'string', 0)}, {builder.expression(scope, 'integer', 0)})"


FAMILY = Family(queries=(Production(applied, size=2), Production(grouped, size=3)))
