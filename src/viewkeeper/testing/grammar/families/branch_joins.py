"""Joins of every kind on an OR whose branches each compare the sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_KINDS = ("INNER", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")


def branch_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation by any of some comparisons; nothing where the sides have no class in common."""
    choices = builder.choices
    relation, alias, theirs, pairs = builder.partner(scope)
    if not pairs:
        return ""
    kind = choices.pick(_KINDS)
    both = scope.beside(relation, theirs)
    condition = _any_of_branches(builder, both, pairs)
    if choices.chance(20):
        condition = f"{condition} AND {builder.condition(both)}"
    scope.joined(both, theirs, kind)
    return f" {kind} JOIN {relation.name} {alias} ON {condition}"


def _any_of_branches(builder: QueryBuilder, scope: Scope, pairs: list[tuple[Field, Field]]) -> str:
    """Return an OR of two or three branches, each of a comparison and at times more."""
    choices = builder.choices
    branches = []
    for _ in range(choices.pick((2, 2, 3))):
        left, right = choices.pick(pairs)
        operator = choices.pick(("=", "=", "=", "=", "<=>", "<"))
        scope.in_duckdb = scope.in_duckdb and left.kind in IN_DUCKDB and operator != "<=>"
        branch = f"{left.name} {operator} {right.name}"
        if choices.chance(30):
            branch = f"({branch} AND {builder.condition(scope)})"
        branches.append(branch)
    return f"({' OR '.join(branches)})"


FAMILY = Family(joins=(Production(branch_join, weight=2, size=2),))
