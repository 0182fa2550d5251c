"""Outer, semi and anti joins, and joins of every kind whose sides an equality does not connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_KINDS = ("LEFT", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_OPERATORS = ("=", "=", "=", "<=>", "<", ">=", "<>")


def outer_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation, whose rows or those before it may be without a partner."""
    return _join(builder, scope, builder.choices.pick(_KINDS))


def theta_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation by an inner join that needs no equality."""
    return _join(builder, scope, "INNER")


def cross_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation, each of its rows with each."""
    relation = builder.choices.pick(builder.relations)
    alias = builder.name("s")
    scope.fields += relation.qualified(alias)
    scope.in_duckdb = scope.in_duckdb and relation.in_duckdb
    return f" CROSS JOIN {relation.name} {alias}"


def _join(builder: QueryBuilder, scope: Scope, kind: str) -> str:
    choices = builder.choices
    relation, alias, theirs, pairs = builder.partner(scope)
    both = scope.beside(relation, theirs)
    conditions = []
    if pairs and not choices.chance(15):
        left, right = choices.pick(pairs)
        operator = choices.pick(_OPERATORS)
        both.in_duckdb = both.in_duckdb and left.kind in IN_DUCKDB and operator != "<=>"
        conditions.append(f"{left.name} {operator} {right.name}")
    if not conditions or choices.chance(35):
        conditions.append(builder.condition(both))
    scope.joined(both, theirs, kind)
    return f" {kind} JOIN {relation.name} {alias} ON {' AND '.join(conditions)}"


FAMILY = Family(
    joins=(
        Production(outer_join, weight=4, size=2),
        Production(theta_join, size=2),
        Production(cross_join),
    )
)
