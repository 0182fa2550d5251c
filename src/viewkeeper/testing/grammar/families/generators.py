"""Rows made of rows: explode of sequences and arrays, STACK, VALUES, range(), UNPIVOT and PIVOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def exploded(builder: QueryBuilder, scope: Scope) -> str:
    """LATERAL VIEW over a short array or sequence; nothing may follow it in FROM, so it is drawn last of all."""
    scope.in_duckdb = False
    kind = builder.choices.pick(("integer", "string"))
    alias, name = builder.name("e"), builder.name("x")
    first, second = builder.expression(scope, kind, 0), builder.expression(scope, kind, 0)
    collection = f"array({first}, {second})"
    if kind == "integer" and builder.choices.chance(50):
        collection = f"sequence({first} % 3, {second} % 4)"
    outer = builder.choices.pick(("", "_outer"))
    scope.fields.append(Field(f"{alias}.{name}", kind))
    return f", LATERAL explode{outer}({collection}) AS {alias}({name})"


def constant_rows(builder: QueryBuilder, scope: Scope) -> str:
    """A join with VALUES, or with range()."""
    alias, name = builder.name("e"), builder.name("x")
    if builder.choices.chance(30):
        scope.in_duckdb = False
        scope.fields.append(Field(f"{alias}.{name}", "integer"))
        return f", range({builder.choices.pick(('2', '0', '1, 3', '3, 0, -2'))}) AS {alias}({name})"
    kind = builder.choices.pick(("integer", "string", "date"))
    rows = ", ".join(f"({builder.literal(kind)})" for _ in range(builder.choices.pick((1, 2, 3))))
    join = f" JOIN (VALUES {rows}) AS {alias}({name})"
    columns = scope.of(kind)
    scope.fields.append(Field(f"{alias}.{name}", kind))
    return f"{join} ON {builder.choices.pick(columns)} = {alias}.{name}" if columns else f" CROSS{join}"


def unpivoted(builder: QueryBuilder, depth: int) -> Query:
    """UNPIVOT of two columns of one class."""
    source, scope = builder.source()
    scope.in_duckdb = False
    kind = builder.choices.pick(scope.kinds())
    first, second, other = (builder.expression(scope, k, 0) for k in (kind, kind, "integer"))
    nulls = builder.choices.pick(("", " INCLUDE NULLS"))
    where = builder.where(scope, 30)
    inner = f"SELECT {first} AS u0, {second} AS u1, {other} AS u2 FROM {source}{where}"
    sql = f"SELECT n AS c0, v AS c1, u2 AS c2 FROM ({inner}) UNPIVOT{nulls} (v FOR n IN (u0, u1))"
    return Query(sql, (Field("c0", "string"), Field("c1", kind), Field("c2", "integer")), False)


def pivoted(builder: QueryBuilder, depth: int) -> Query:
    """PIVOT of a count and an extreme by integers or strings."""
    source, scope = builder.source()
    kind = builder.choices.pick(("integer", "string"))
    group, pivot, value = (builder.expression(scope, k, 0) for k in ("integer", kind, "integer"))
    first, second = ("1", "7") if kind == "integer" else ("'a'", "'12'")
    where = builder.where(scope, 30)
    inner = f"SELECT {group} AS p0, {pivot} AS p1, {value} AS p2 FROM {source}{where}"
    clause = f"PIVOT (COUNT(p2) AS n, MAX(p2) AS m FOR p1 IN ({first} AS a, {second} AS b))"
    sql = f"SELECT p0 AS c0, a_n AS c1, b_m AS c2 FROM ({inner}) {clause}"
    return Query(sql, tuple(Field(f"c{i}", "integer") for i in range(3)), False)


FAMILY = Family(
    queries=(Production(unpivoted, size=3), Production(pivoted, size=3)),
    joins=(Production(exploded, size=2), Production(constant_rows, size=2)),
)
