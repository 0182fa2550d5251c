"""WITH RECURSIVE … UNION ALL, two rounds deep, and a query over its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Field, Query, Relation, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

# A few rows of one key derive each other's number of rows in each round: more rounds would be slow, not different.
_ROUNDS = 2


def recursive(builder: QueryBuilder, depth: int) -> Query:
    """Rows that a relation, or nothing but the rows of the round before, leads on from."""
    name = builder.name("r")
    source, scope = builder.source()
    scope.risky = False
    first = f"{_values(builder, scope)}, 0 AS n FROM {source}{builder.where(scope, 50)}"
    own = [Field(f"{name}.a", "integer"), Field(f"{name}.b", "string")]
    inner = Scope(own, risky=False)
    joined = builder.choices.pick((" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT SEMI JOIN ", ""))
    rows = f"{name}{_partner(builder, inner, joined) if joined else ''}"
    more = f" AND {builder.condition(inner, 0)}" if builder.choices.chance(30) else ""
    following = f"{_values(builder, inner)}, {name}.n + 1 FROM {rows} WHERE {name}.n < {_ROUNDS}{more}"
    fields = (Field("a", "integer"), Field("b", "string"), Field("n", "integer"))
    in_duckdb = scope.in_duckdb and inner.in_duckdb and joined != " LEFT SEMI JOIN "
    over = builder.over(Relation(name, fields, in_duckdb)).query(depth=0)
    common = f"WITH RECURSIVE {name}(a, b, n) AS (SELECT {first} UNION ALL SELECT {following})"
    scaled = f"{common} {over.scaled_sql}" if over.scaled_sql else ""
    return Query(f"{common} {over.sql}", over.fields, over.in_duckdb, scaled, over.scaled)


def _values(builder: QueryBuilder, scope: Scope) -> str:
    return f"CAST({builder.expression(scope, 'integer', 1)} AS BIGINT), {builder.expression(scope, 'string', 1)}"


def _partner(builder: QueryBuilder, scope: Scope, words: str) -> str:
    """Return a join with a relation by a column of its own where one compares, and let ``scope`` read it."""
    relation, alias, theirs, pairs = builder.partner(scope)
    scope.in_duckdb = scope.in_duckdb and relation.in_duckdb
    condition = " = ".join(f.name for f in builder.choices.pick(pairs)) if pairs else f"{scope.fields[0].name} > 0"
    if words != " LEFT SEMI JOIN ":
        scope.fields += theirs
    return f"{words}{relation.name} {alias} ON {condition}"


FAMILY = Family(nested=(Production(recursive, size=5),))
