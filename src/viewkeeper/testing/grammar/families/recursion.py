"""WITH RECURSIVE and a query over its rows: with UNION ALL two rounds deep, with UNION until nothing is new."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import NULLS, Field, Query, Relation, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

# A few rows of one key derive each other's number of rows in each round: more rounds would be slow, not different.
_ROUNDS = 2
# Of what ``_number`` draws: NULL and −2 to 2.
_NUMBERS = 6


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
    return _query(over, common, common if over.spark_sql else "")


def closed(builder: QueryBuilder, depth: int) -> Query:
    """Where walks over few numbers get to, mostly in circles; Spark has no UNION here and is asked step by step."""
    name = builder.name("r")
    source, scope = builder.source()
    scope.risky = False
    first = f"{_number(builder, scope)} AS a, {builder.expression(scope, 'string', 0)} AS b FROM {source}"
    first += builder.where(scope, 25)
    inner = Scope([Field(f"{name}.a", "integer"), Field(f"{name}.b", "string")], risky=False)
    joined = builder.choices.pick((" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT SEMI JOIN ", ""))
    rows = f"{name}{_partner(builder, inner, joined, ' % 3') if joined else ''}"
    number = _number(builder, inner)
    step = builder.choices.pick((number, f"({name}.a + 1) % 3", f"({name}.a + {number}) % 3"))
    following = f"{step}, {name}.b FROM {rows}{builder.where(inner, 25)}"
    fields = (Field("a", "integer"), Field("b", "string"))
    in_duckdb = scope.in_duckdb and inner.in_duckdb and joined != " LEFT SEMI JOIN "
    over = builder.over(Relation(name, fields, in_duckdb)).query(depth=0)
    common = f"WITH RECURSIVE {name}(a, b) AS (SELECT {first} UNION SELECT {following})"
    return _query(over, common, _step_by_step(name, first, following))


def _query(over: Query, common: str, common_for_spark: str) -> Query:
    """Return a query over a recursion's rows; where Spark takes both as they are, it is not told of another one."""
    spark = f"{common_for_spark} {over.for_spark}" if common_for_spark else ""
    scaled = f"{common_for_spark or common} {over.scaled_sql}" if over.scaled_sql else ""
    return Query(f"{common} {over.sql}", over.fields, over.in_duckdb, scaled, over.scaled, spark)


def _step_by_step(name: str, first: str, following: str) -> str:
    """Return as many tables, each the rows from which the one before it leads on, as a walk has steps at most."""
    # What a recursion reads of itself may be NULL.
    nullable = f"SELECT {NULLS['integer']}, {NULLS['string']} WHERE FALSE"
    tables = [f"{name}_0 AS (SELECT {first} UNION ALL {nullable})"]
    for step in range(1, _NUMBERS):
        own = name if step == _NUMBERS - 1 else f"{name}_{step}"
        before = re.sub(rf"\b{name}\b", f"{name}_{step - 1}", following)
        tables.append(f"{own}(a, b) AS (SELECT {first} UNION SELECT {before})")
    return f"WITH {', '.join(tables)}"


def _number(builder: QueryBuilder, scope: Scope) -> str:
    return f"CAST({builder.expression(scope, 'integer', int(builder.choices.chance(30)))} AS BIGINT) % 3"


def _values(builder: QueryBuilder, scope: Scope) -> str:
    return f"CAST({builder.expression(scope, 'integer', 1)} AS BIGINT), {builder.expression(scope, 'string', 1)}"


def _partner(builder: QueryBuilder, scope: Scope, words: str, remainder: str = "") -> str:
    """Return a join with a relation by a column of its own where one compares, and let ``scope`` read it.

    Of a number that is compared the ``remainder`` is taken.
    """
    relation, alias, theirs, pairs = builder.partner(scope)
    scope.in_duckdb = scope.in_duckdb and relation.in_duckdb
    condition = f"{scope.fields[0].name} > 0"
    if pairs:
        own, their = builder.choices.pick(pairs)
        condition = f"{own.name} = {their.name}{remainder if their.kind == 'integer' else ''}"
    if words != " LEFT SEMI JOIN ":
        scope.fields += theirs
    return f"{words}{relation.name} {alias} ON {condition}"


FAMILY = Family(nested=(Production(recursive, size=5), Production(closed, size=5)))
