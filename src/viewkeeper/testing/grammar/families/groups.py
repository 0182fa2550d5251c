"""GROUP BY (columns, expressions, none; GROUPING SETS, CUBE, ROLLUP with GROUPING), the aggregates, FILTER, HAVING."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import DrawItem, Family, Production
from viewkeeper.testing.grammar.parts import LITERALS, NUMERIC, Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def grouped(builder: QueryBuilder, depth: int) -> Query:
    """Aggregates by group."""
    choices = builder.choices
    source, scope = builder.source(joins=choices.pick((1, 1, 2)) if choices.chance(40) else 0)
    groups = [_group(builder, scope, f"g{number}") for number in range(choices.pick((1, 1, 1, 0, 2)))]
    where = builder.where(scope, 30)
    calls = choices.many(lambda number: builder.aggregate(scope, f"a{number}"), 1, 3)
    by, left_out = _group_by(builder, scope, groups)
    # In HAVING Spark knows GROUPING of a column with an alias by its name only.
    known = [*calls, *(replace(item, sql=item.field.name) for item in left_out)]
    having = _having(builder, known) if choices.chance(25) else ""
    items = [*groups, *calls, *left_out]
    listed = ", ".join(item.listed for item in items)
    rest = f" FROM {source}{where}{by}{having}"
    scales = [item for item in items if item.scale]
    scaled = f"SELECT {listed}{''.join(f', {i.scale} AS scale_{i.field.name}' for i in scales)}{rest}" if scales else ""
    fields = tuple(item.field for item in items)
    return Query(f"SELECT {listed}{rest}", fields, scope.in_duckdb, scaled, tuple(i.field.name for i in scales))


def _group_by(builder: QueryBuilder, scope: Scope, groups: Sequence[Item]) -> tuple[str, list[Item]]:
    """Return GROUP BY, and the columns that tell groupings apart where there are several."""
    if not groups:
        return "", []
    first, last = groups[0].sql, groups[-1].sql
    listed = ", ".join(group.sql for group in groups)
    # Spark loses the columns that USING hides below several groupings.
    if scope.fields != scope.qualified() or not builder.choices.chance(35):
        return f" GROUP BY {listed}", []
    # Of empty input Spark makes no grand total, DuckDB makes one.
    scope.in_duckdb = False
    # Each begins with the first: GROUPING_ID has the groups in the order in which they are named.
    sets = (f"({listed}), ({first}), ()", f"({first}), ({last})", f"({first}), ROLLUP({listed})")
    beside = (f"{first}, ROLLUP({listed})", f"ROLLUP({first}), CUBE({last})")
    forms = (f"ROLLUP({listed})", f"CUBE({listed})", *beside, *(f"GROUPING SETS ({each})" for each in sets))
    by = f" GROUP BY {builder.choices.pick(forms)}"
    return by, builder.choices.many(lambda number: _grouping(builder, groups, f"i{number}"), 0, 2)


def _grouping(builder: QueryBuilder, groups: Sequence[Item], name: str) -> Item:
    """Which of the groups a row leaves out: of one, or of all as a number."""
    chosen = builder.choices.pick(groups).sql
    every = ", ".join(dict.fromkeys(group.sql for group in groups))
    text = builder.choices.pick((f"GROUPING({chosen})", "GROUPING_ID()", f"GROUPING_ID({every})"))
    return Item(text, Field(name, "integer"))


def _group(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    kind = builder.choices.pick(scope.kinds())
    text = builder.expression(scope, kind, int(builder.choices.chance(25)))
    # GROUP BY reads a bare number as a position.
    return Item(f"COALESCE({text})" if text in LITERALS["integer"] else text, Field(name, kind))


def _having(builder: QueryBuilder, calls: Sequence[Item]) -> str:
    usable = [
        (c.sql, c.field.kind) for c in calls if c.field.exact and c.field.kind in ("integer", "decimal", "string")
    ]
    text, kind = builder.choices.pick(usable) if usable else ("COUNT(*)", "integer")
    sign = builder.choices.pick((">", "<=", "<>", "IS NOT NULL"))
    return f" HAVING {text} {sign}" + ("" if sign == "IS NOT NULL" else f" {builder.literal(kind)}")


def count_rows(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """COUNT(*)."""
    return Item("COUNT(*)", Field(name, "integer"))


def count(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """COUNT(x)."""
    return Item(f"COUNT({_argument(builder, scope)[0]})", Field(name, "integer"))


def sum_(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """SUM: of floating values inexact."""
    argument, kind = _argument(builder, scope, NUMERIC)
    scale = _scale(argument) if kind == "floating" else ""
    return Item(f"SUM({argument})", Field(name, kind, exact=not scale), scale)


def average(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """AVG: inexact unless of decimals."""
    argument, kind = _argument(builder, scope, NUMERIC)
    scope.in_duckdb = False
    if kind == "decimal":
        return Item(f"AVG({argument})", Field(name, "decimal"))
    return Item(f"AVG({argument})", Field(name, "floating", exact=False), _scale(argument))


def extreme(function: str) -> DrawItem:
    """MIN or MAX."""

    def draw(builder: QueryBuilder, scope: Scope, name: str) -> Item:
        argument, kind = _argument(builder, scope)
        return Item(f"{function}({argument})", Field(name, kind))

    return draw


def _argument(builder: QueryBuilder, scope: Scope, kinds: Sequence[str] | None = None) -> tuple[str, str]:
    usable = [kind for kind in scope.kinds() if kinds is None or kind in kinds]
    kind = builder.choices.pick(usable or ["integer"])
    return builder.expression(scope, kind, int(builder.choices.chance(25))), kind


def _scale(argument: str) -> str:
    return f"SUM(ABS(CAST({argument} AS DOUBLE)))"


FAMILY = Family(
    queries=(Production(grouped, weight=3, size=2),),
    aggregates=(
        Production(count_rows, size=0),
        Production(count),
        Production(sum_, weight=2),
        Production(average),
        Production(extreme("MIN"), weight=2),
        Production(extreme("MAX"), weight=2),
    ),
)
