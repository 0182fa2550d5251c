"""Inner joins of two or three relations by equal columns, with conditions beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def joined(builder: QueryBuilder, depth: int) -> Query:
    """Rows of two relations, or three."""
    return builder.rows(joins=builder.choices.pick((1, 1, 2)))


def inner_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation where an equality can join it; nothing where none can."""
    choices = builder.choices
    relation, alias, theirs, pairs = builder.partner(scope)
    if not pairs:
        return ""
    left, right = choices.pick(pairs)
    scope.in_duckdb = scope.in_duckdb and relation.in_duckdb and left.kind in IN_DUCKDB
    conditions = [f"{left.name} = {right.name}"]
    if choices.chance(25):
        left, right = choices.pick(pairs)
        scope.in_duckdb = scope.in_duckdb and left.kind in IN_DUCKDB
        conditions.append(f"{right.name} = {left.name}")
    scope.fields += theirs
    if choices.chance(30):
        conditions.append(builder.condition(scope))
    return f" JOIN {relation.name} {alias} ON {' AND '.join(conditions)}"


FAMILY = Family(queries=(Production(joined, weight=2),), joins=(Production(inner_join, weight=3),))
