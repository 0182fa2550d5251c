"""DISTINCT, and UNION, INTERSECT and EXCEPT of selections whose columns agree in class, not in type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Query

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

OPERATIONS = ("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
_DIRECTIONS = ("", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")


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


def chained(builder: QueryBuilder, depth: int) -> Query:
    """Rows of three selections or more, some in parentheses: INTERSECT binds tighter, the others go from the left."""
    choices = builder.choices
    first = builder.rows()
    operands = [first]
    for _ in range(choices.pick((2, 2, 3))):
        # The same rows again: they meet, and their numbers count.
        operands.append(choices.pick(operands) if choices.chance(35) else builder.rows(like=first.fields))
    operations = [choices.pick((*OPERATIONS, "UNION ALL")) for _ in operands[1:]]
    texts = [operand.sql for operand in operands]
    if choices.chance(50):
        start = choices.pick(range(len(texts) - 1))
        texts[start], texts[start + 1] = f"({texts[start]}", f"{texts[start + 1]})"
    sql = texts[0] + "".join(f" {word} {text}" for word, text in zip(operations, texts[1:], strict=True))
    in_duckdb = all(operand.in_duckdb for operand in operands)
    if all(field.exact for field in first.fields) and choices.chance(40):
        in_duckdb = in_duckdb and all(field.kind in IN_DUCKDB for field in first.fields)
        sql += _first_rows(builder, [field.name for field in first.fields])
    return Query(sql, first.fields, in_duckdb)


def _first_rows(builder: QueryBuilder, columns: list[str]) -> str:
    """Return ORDER BY all columns, so that what ties is equal, and LIMIT."""
    choices = builder.choices
    start = choices.pick(range(len(columns)))
    order = ", ".join(f"{name}{choices.pick(_DIRECTIONS)}" for name in columns[start:] + columns[:start])
    return f" ORDER BY {order} LIMIT {choices.pick((3, 1, 5))}{choices.pick(('', '', ' OFFSET 1'))}"


FAMILY = Family(
    queries=(Production(distinct),),
    nested=(Production(compared, weight=2, size=3), Production(chained, weight=2, size=5)),
)
