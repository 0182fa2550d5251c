"""VALUES and range() wherever a table may stand, in outer joins too, and VALUES as a branch of a set operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.families.outer_joins import outer_join
from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, LITERALS, NULLS, Field, Query, Relation, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def constants_first(builder: QueryBuilder, depth: int) -> Query:
    """A selection from constant rows, which a relation is joined to whose rows may be without a partner."""
    source, scope = builder.over(_constants(builder)).source()
    source += outer_join(builder, scope)
    items = builder.choices.many(lambda number: builder.item(scope, f"c{number}"), 1, 4)
    where = builder.where(scope, 30)
    listed = ", ".join(item.listed for item in items)
    return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in items), scope.in_duckdb)


def outer_constants(builder: QueryBuilder, scope: Scope) -> str:
    """Constant rows that are, or keep, rows without a partner."""
    return outer_join(builder.over(_constants(builder)), scope)


def over_constants(builder: QueryBuilder, depth: int) -> Query:
    """A query that reads constant rows as it reads tables; rows of a table where it reads no table beside them."""
    constants = [_constants(builder) for _ in range(builder.choices.pick((1, 1, 2)))]
    tables = [builder.choices.pick(builder.relations) for _ in range(len(constants))]
    found = builder.over(*constants, *tables).query(depth)
    reads_table = any(f" {table.name} " in found.sql for table in tables)
    return found if reads_table else builder.rows()


def beside_values(builder: QueryBuilder, depth: int) -> Query:
    """A selection and VALUES in a set operation, whichever comes first."""
    choices, rows = builder.choices, builder.rows()
    if any(field.kind not in LITERALS for field in rows.fields):
        return rows
    values = f"VALUES {', '.join(_row(builder, rows.fields) for _ in range(choices.pick((1, 2, 3))))}"
    operator = choices.pick(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
    in_duckdb = rows.in_duckdb and all(field.kind in IN_DUCKDB for field in rows.fields)
    if choices.chance(70):
        return Query(f"{rows.sql} {operator} {values}", rows.fields, in_duckdb)
    alias = f"{builder.name('v')}({', '.join(field.name for field in rows.fields)})"
    return Query(f"{values} AS {alias} {operator} {rows.sql}", rows.fields, in_duckdb=False)


def _constants(builder: QueryBuilder) -> Relation:
    choices = builder.choices
    if choices.chance(25):
        return Relation(f"range({choices.pick(('3', '0', '1, 8, 3', '2, -3, -1'))})", (Field("id", "integer"),), False)
    kinds = [choices.pick(("integer", "string", "date", "decimal")) for _ in range(choices.pick((1, 2)))]
    fields = tuple(Field(f"col{number}", kind) for number, kind in enumerate(kinds, 1))
    rows = ", ".join(_row(builder, fields) for _ in range(choices.pick((1, 2, 3))))
    return Relation(choices.pick((f"(VALUES {rows})", f"VALUES {rows}")), fields, False)


def _row(builder: QueryBuilder, fields: tuple[Field, ...]) -> str:
    """Return a row of VALUES."""
    values = [NULLS[field.kind] if builder.choices.chance(15) else builder.literal(field.kind) for field in fields]
    return f"({', '.join(values)})"


FAMILY = Family(
    queries=(Production(constants_first, size=2),),
    nested=(Production(over_constants, size=3), Production(beside_values, size=3)),
    joins=(Production(outer_constants, size=2),),
)
