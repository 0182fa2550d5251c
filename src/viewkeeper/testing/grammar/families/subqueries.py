"""IN, EXISTS and scalar subqueries, correlated and not, in WHERE (also under OR and NOT), in SELECT and in HAVING."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def chosen(builder: QueryBuilder, depth: int) -> Query:
    """Rows chosen by subqueries, with subqueries among their columns."""
    choices = builder.choices
    source, scope = builder.source(joins=int(choices.chance(20)))
    # Spark is free to evaluate a condition before or after a join with a subquery.
    scope.risky = False
    items = choices.many(lambda number: builder.item(scope, f"c{number}"), 1, 2)
    if choices.chance(40):
        kind = choices.pick(scope.kinds())
        items.append(Item(_scalar(builder, scope, kind), Field("value", kind)))
    if choices.chance(30):
        test = _test(builder, scope, depth)
        # An IN that is unknown is NULL in DuckDB, FALSE in Spark.
        scope.in_duckdb = scope.in_duckdb and " IN (SELECT" not in test
        items.append(Item(test, Field("test", "boolean")))
    where = f" WHERE {_condition(builder, scope, depth)}" if choices.chance(80) else ""
    listed = ", ".join(item.listed for item in items)
    return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in items), scope.in_duckdb)


def chosen_groups(builder: QueryBuilder, depth: int) -> Query:
    """Groups chosen by subqueries in HAVING."""
    choices = builder.choices
    source, scope = builder.source()
    scope.risky = False
    kind = choices.pick(scope.kinds())
    columns = scope.of(kind)
    # A number would be read as a position.
    column = choices.pick(columns) if columns else f"MIN({builder.literal(kind)})"
    group = f" GROUP BY {column}" if columns else ""
    inner, inner_scope = _inside(builder, scope)
    value = choices.pick(inner_scope.of("integer") or ["1"])
    sign = choices.pick((">", "<=", "IN", "NOT IN"))
    if sign.endswith("IN"):
        having = f"COUNT(*) {sign} (SELECT {value} FROM {inner})"
    else:
        having = f"COUNT(*) {sign} (SELECT MAX({value}) FROM {inner})"
    fields = (Field("g0", kind), Field("n", "integer"))
    return Query(f"SELECT {column} AS g0, COUNT(*) AS n FROM {source}{group} HAVING {having}", fields, scope.in_duckdb)


def _condition(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    choices = builder.choices
    test = _test(builder, scope, depth)
    form = choices.pick(("plain", "plain", "and", "or", "not", "compared"))
    if form == "and":
        return f"{test} AND {builder.condition(scope)}"
    if form == "or":
        return f"({test} OR {builder.condition(scope)})"
    if form == "not":
        return f"NOT ({test} AND {builder.condition(scope)})"
    if form == "compared":
        kind = choices.pick(scope.kinds())
        return f"{builder.expression(scope, kind, 0)} {choices.pick(('=', '<', '>='))} {_scalar(builder, scope, kind)}"
    return test


def _test(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """EXISTS, IN, or their negation."""
    choices = builder.choices
    negation = choices.pick(("", "NOT "))
    inner, inner_scope = _inside(builder, scope)
    where = _where(builder, scope, inner_scope, depth)
    if choices.chance(50):
        return f"{negation}EXISTS (SELECT 1 FROM {inner}{where})"
    kinds = [kind for kind in scope.kinds() if scope.of(kind) and inner_scope.of(kind)]
    if not kinds:
        return f"{negation}EXISTS (SELECT 1 FROM {inner}{where})"
    compared = [choices.pick(kinds) for _ in range(choices.pick((1, 1, 2, 3)))]
    scope.in_duckdb = scope.in_duckdb and IN_DUCKDB.issuperset(compared)
    values, columns = (
        ", ".join(_with_nulls(builder, choices.pick(s.of(kind)), kind) for kind in compared)
        for s in (scope, inner_scope)
    )
    value = f"({values})" if len(compared) > 1 else values
    return f"{value} {negation}IN (SELECT {columns} FROM {inner}{where})"


def _with_nulls(builder: QueryBuilder, column: str, kind: str) -> str:
    """A column, now and then NULL where it is some literal."""
    return f"NULLIF({column}, {builder.literal(kind)})" if builder.choices.chance(30) else column


def _scalar(builder: QueryBuilder, scope: Scope, kind: str) -> str:
    """An aggregate of a subquery, of class ``kind``."""
    choices = builder.choices
    inner, inner_scope = _inside(builder, scope)
    where = _where(builder, scope, inner_scope, 0, only_equalities=True)
    if kind == "integer" and choices.chance(40):
        return f"(SELECT COUNT(*) FROM {inner}{where})"
    scope.in_duckdb = scope.in_duckdb and kind in IN_DUCKDB
    column = choices.pick(inner_scope.of(kind) or [builder.literal(kind)])
    return f"(SELECT {choices.pick(('MAX', 'MIN'))}({column}) FROM {inner}{where})"


def _inside(builder: QueryBuilder, scope: Scope) -> tuple[str, Scope]:
    inner, inner_scope = builder.source()
    inner_scope.risky = False
    scope.in_duckdb = scope.in_duckdb and inner_scope.in_duckdb
    return inner, inner_scope


def _where(builder: QueryBuilder, scope: Scope, inner: Scope, depth: int, only_equalities: bool = False) -> str:
    choices = builder.choices

    def sign(number: int) -> str:
        return "=" if only_equalities or not number else choices.pick(("=", "<>", "<", ">="))

    conditions = builder.correlations(scope, inner, 65, sign)
    if len(conditions) > 1 and not only_equalities and choices.chance(30):
        conditions = [f"({' OR '.join(conditions)})"]
    if choices.chance(30):
        conditions.append(builder.condition(inner))
    if depth and choices.chance(25):
        conditions.append(_test(builder, inner, depth - 1))
    scope.in_duckdb = scope.in_duckdb and inner.in_duckdb
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


FAMILY = Family(queries=(Production(chosen, weight=3), Production(chosen_groups)))
