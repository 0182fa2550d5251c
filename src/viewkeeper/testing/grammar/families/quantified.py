"""ANY, SOME and ALL over a subquery, in WHERE, SELECT and HAVING; Spark, which has none, is asked by EXISTS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class _Test:
    """A comparison with all rows of a subquery, and what Spark is asked in its place."""

    sql: str
    for_spark: str


def compared_values(builder: QueryBuilder, depth: int) -> Query:
    """Rows of which a value compares, or does not, or beside whether it does."""
    return _rows(builder, 1)


def compared_rows(builder: QueryBuilder, depth: int) -> Query:
    """The same of several values at once."""
    return _rows(builder, builder.choices.pick((2, 2, 3)))


def _rows(builder: QueryBuilder, width: int) -> Query:
    choices = builder.choices
    source, scope = builder.source(joins=int(choices.chance(20)))
    scope.risky = False
    # Spark gets what is compared within a subquery.
    scope.fields = scope.qualified()
    items = choices.many(lambda number: builder.item(scope, f"c{number}"), 1, 2)
    listed = ", ".join(item.listed for item in items)
    kinds = [choices.pick(scope.kinds()) for _ in range(width)]
    values = [(builder.expression(scope, kind, 1), kind) for kind in kinds]
    if choices.chance(30):
        # What Spark is asked may always be NULL.
        test = _test(builder, scope, [(f"NULLIF({value}, {builder.literal(kind)})", kind) for value, kind in values])
        fields = (*(item.field for item in items), Field("test", "boolean"))
        where = builder.where(scope, 30)
        return _query(f"SELECT {listed}, {{}} AS test FROM {source}{where}", test, fields, scope)
    test = _test(builder, scope, values)
    forms = ("{}", "{}", f"{{}} AND {builder.condition(scope)}", f"({{}} OR {builder.condition(scope)})", "NOT ({})")
    sql = f"SELECT {listed} FROM {source} WHERE {choices.pick(forms)}"
    return _query(sql, test, tuple(item.field for item in items), scope)


def compared_groups(builder: QueryBuilder, depth: int) -> Query:
    """Groups of which a number compares."""
    source, scope = builder.source()
    scope.risky = False
    kind = builder.choices.pick(scope.kinds())
    columns = scope.of(kind)
    group = builder.choices.pick(columns) if columns else f"MIN({builder.literal(kind)})"
    grouped = f"SELECT {group} AS g0, COUNT(*) AS n FROM {source}" + f" GROUP BY {group}" * bool(columns)
    fields = (Field("g0", kind), Field("n", "integer"))
    # Nothing of the subquery may name the groups' rows.
    own = Scope([], risky=False, in_duckdb=scope.in_duckdb)
    test = _test(builder, own, [("COUNT(*)", "integer")])
    # Qualified: what the subquery reads may have a column of that name.
    alias = builder.name("q")
    condition = test.for_spark.replace("COUNT(*)", f"{alias}.n")
    over = f"SELECT g0, n FROM ({grouped}) {alias} WHERE {condition}"
    return Query(f"{grouped} HAVING {test.sql}", fields, scope.in_duckdb and own.in_duckdb, spark_sql=over)


def _query(sql: str, test: _Test, fields: tuple[Field, ...], scope: Scope) -> Query:
    return Query(sql.format(test.sql), fields, scope.in_duckdb, spark_sql=sql.format(test.for_spark))


def _test(builder: QueryBuilder, scope: Scope, values: list[tuple[str, str]]) -> _Test:
    """Return a comparison with a subquery's rows; of several columns whether they are equal."""
    choices = builder.choices
    source, inner = builder.source()
    inner.risky = False
    columns = [_column(builder, inner, kind) for _, kind in values]
    conditions = builder.correlations(scope, inner, 50, lambda number: choices.pick(("=", "=", "<", "<>")))
    if choices.chance(30):
        conditions.append(builder.condition(inner))
    kinds = {kind for _, kind in values}
    scope.in_duckdb = scope.in_duckdb and inner.in_duckdb and kinds <= IN_DUCKDB
    sign, word = choices.pick(_SIGNS), choices.pick(("ANY", "SOME", "ALL", "ALL"))
    if len(values) > 1:
        sign, word = choices.pick((("=", "ANY"), ("<>", "ALL")))
    left, right = (", ".join(texts) for texts in ([value for value, _ in values], columns))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    many = f"({left})" if len(values) > 1 else left
    pairs = " AND ".join(f"{value} = {column}" for (value, _), column in zip(values, columns, strict=True))
    each = f"{left} {sign} {right}" if len(values) == 1 else f"{'NOT ' * (sign == '<>')}({pairs})"
    return _Test(
        f"{many} {sign} {word} (SELECT {right} FROM {source}{where})", _by_exists(word, source, conditions, each)
    )


def _column(builder: QueryBuilder, inner: Scope, kind: str) -> str:
    """Return a column, now and then NULL where it is some literal."""
    column = builder.choices.pick(inner.of(kind) or [builder.literal(kind)])
    return f"NULLIF({column}, {builder.literal(kind)})" if builder.choices.chance(30) else column


def _by_exists(word: str, source: str, conditions: list[str], each: str) -> str:
    """Return what SQL says that a comparison with each row makes of all."""

    def exists(test: str) -> str:
        return f"EXISTS (SELECT 1 FROM {source} WHERE {' AND '.join([*conditions, test])})"

    decides, found, else_ = (f"NOT ({each})", "FALSE", "TRUE") if word == "ALL" else (f"({each})", "TRUE", "FALSE")
    unknown = f"WHEN {exists(f'({each}) IS NULL')} THEN CAST(NULL AS BOOLEAN)"
    return f"CASE WHEN {exists(decides)} THEN {found} {unknown} ELSE {else_} END"


FAMILY = Family(
    queries=(
        Production(compared_values, weight=2, size=2),
        Production(compared_rows, size=3),
        Production(compared_groups, size=3),
    ),
)
