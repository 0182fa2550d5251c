"""LATERAL subqueries beside a relation: rows, groups, aggregates, first rows, lists without FROM, set operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_FORMS = ("rows", "rows", "aggregate", "groups", "first", "distinct", "list", "united", "windowed")


def lateral(builder: QueryBuilder, scope: Scope) -> str:
    """A subquery that sees the columns before it, joined or left joined."""
    choices = builder.choices
    # Spark is free to evaluate a condition before or after a join with a subquery.
    scope.risky = False
    alias = builder.name("l")
    form = choices.pick(_FORMS)
    # A map has no order by which such a subquery could be joined.
    around = Scope([field for field in scope.fields if "['" not in field.name], False, scope.in_duckdb)
    if form in ("list", "united"):
        sql, fields = _list(builder, around, form == "united")
    else:
        sql, fields = _rows(builder, around, form)
    scope.in_duckdb = around.in_duckdb
    added = [field.called(f"{alias}.{field.name}") for field in fields]
    join, condition = choices.pick(
        ((" JOIN", ""), (" LEFT JOIN", " ON TRUE"), (" JOIN", " ON "), (" LEFT JOIN", " ON "))
    )
    if condition == " ON ":
        before = Scope([*scope.fields, *added], False, scope.in_duckdb)
        condition += builder.condition(before)
        scope.in_duckdb = before.in_duckdb
    # DuckDB knows no LEFT JOIN LATERAL under a condition, and wants ON.
    scope.in_duckdb = scope.in_duckdb and condition == " ON TRUE"
    scope.fields += added
    return f"{join} LATERAL ({sql}) {alias}{condition}"


def _list(builder: QueryBuilder, scope: Scope, united: bool) -> tuple[str, list[Field]]:
    """A row of expressions over the columns around, or the set operation of two."""
    choices = builder.choices
    kinds = [choices.pick(scope.kinds()) for _ in range(choices.pick((1, 2)))]
    united = united and bool(scope.of(kinds[0]))
    rows = [[builder.expression(scope, kind, int(not united)) for kind in kinds] for _ in range(1 + united)]
    if united:
        rows[0][0] = choices.pick(scope.of(kinds[0]))
    lists = [", ".join(f"{value} AS x{i}" for i, value in enumerate(row)) for row in rows]
    word = choices.pick((" UNION ALL ", " UNION ", " EXCEPT "))
    # A literal beside a column may be of another type of its class: Spark's result has the common one.
    return word.join(f"SELECT {listed}" for listed in lists), [Field(f"x{i}", kind) for i, kind in enumerate(kinds)]


def _rows(builder: QueryBuilder, scope: Scope, form: str) -> tuple[str, list[Field]]:
    choices = builder.choices
    source, inner = builder.source()
    inner.risky = False
    correlated = _correlations(builder, scope, inner)
    where = _where(builder, inner, correlated)
    kind = choices.pick(inner.kinds())
    column = choices.pick(inner.of(kind) or [builder.literal(kind)])
    value = builder.expression(inner, kind, int(choices.chance(30)))
    fields = [Field("x0", kind), Field("x1", kind)]
    if form == "aggregate":
        having = choices.pick(("", "", " HAVING COUNT(*) > 1"))
        fields[0] = Field("x0", "integer")
        sql = f"SELECT COUNT({choices.pick(('*', value))}) AS x0, MAX({value}) AS x1 FROM {source}{where}{having}"
    elif form == "groups":
        fields[1] = Field("x1", "integer")
        key = column if column in inner.of(kind) else f"COALESCE({column})"
        sql = f"SELECT {key} AS x0, COUNT(*) AS x1 FROM {source}{where} GROUP BY {key}"
    elif form == "distinct":
        sql = f"SELECT DISTINCT {value} AS x0, {column} AS x1 FROM {source}{where}"
    elif form == "first":
        offset = choices.pick(("", "", " OFFSET 1"))
        order = _order(builder, inner)
        sql = (
            f"SELECT {value} AS x0, {column} AS x1 FROM {source}{where}{order} LIMIT {choices.pick((1, 2, 3))}{offset}"
        )
    elif form == "windowed":
        fields[1] = Field("x1", "integer")
        by = "" if correlated else f"PARTITION BY {choices.pick(inner.of(kind) or [inner.fields[0].name])}"
        sql = f"SELECT {value} AS x0, ROW_NUMBER() OVER ({by}{_order(builder, inner)}) AS x1 FROM {source}{where}"
    else:
        sql = f"SELECT {value} AS x0, {_beside(builder, scope, inner, kind)} AS x1 FROM {source}{where}"
    scope.in_duckdb = scope.in_duckdb and inner.in_duckdb
    return sql, fields


def _beside(builder: QueryBuilder, scope: Scope, inner: Scope, kind: str) -> str:
    """An expression over both sides."""
    both = Scope([*inner.fields, *scope.fields], False, inner.in_duckdb)
    text = builder.expression(both, kind, 1)
    inner.in_duckdb = both.in_duckdb
    return text


def _correlations(builder: QueryBuilder, scope: Scope, inner: Scope) -> list[str]:
    def sign(number: int) -> str:
        signs = ("=",) if number == 0 and builder.choices.chance(70) else ("=", "<", ">=", "<>")
        return builder.choices.pick(signs)

    return builder.correlations(scope, inner, 85, sign)


def _where(builder: QueryBuilder, inner: Scope, correlated: list[str]) -> str:
    conditions = [*correlated, *([builder.condition(inner)] if builder.choices.chance(30) else [])]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _order(builder: QueryBuilder, inner: Scope) -> str:
    """ORDER BY all columns, so that what still ties is equal."""
    inner.in_duckdb = inner.in_duckdb and all(f.kind in IN_DUCKDB and f.exact for f in inner.fields)
    directions = ("ASC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS LAST")
    ordered = [f"{f.name} {builder.choices.pick(directions)}" for f in inner.fields]
    start = builder.choices.pick(range(len(ordered)))
    return f" ORDER BY {', '.join(ordered[start:] + ordered[:start])}"


FAMILY = Family(joins=(Production(lateral, weight=2, size=4),))
