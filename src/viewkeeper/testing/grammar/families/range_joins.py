"""Joins of every kind whose sides compare by order, with and without an equality: ranges, bands, inequalities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

_KINDS = ("INNER", "INNER", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_WIDTHS = {"integer": "2", "timestamp": "INTERVAL 90 MINUTES", "timestamp_ntz": "INTERVAL 1 DAY", "date": "3"}


def range_join(builder: QueryBuilder, scope: Scope) -> str:
    """One more relation by a comparison of order; nothing where the sides have no class in common."""
    choices = builder.choices
    relation, alias, theirs, pairs = builder.partner(scope)
    if not pairs:
        return ""
    kind = choices.pick(_KINDS)
    both = scope.beside(relation, theirs)
    conditions = []
    if choices.chance(50):
        left, right = choices.pick(pairs)
        both.in_duckdb = both.in_duckdb and left.kind in IN_DUCKDB
        conditions.append(f"{left.name} = {right.name}")
    conditions.append(_range(builder, both, *choices.pick(pairs)))
    if choices.chance(25):
        conditions.append(builder.condition(both))
    if choices.chance(25):
        conditions.reverse()
    scope.joined(both, theirs, kind)
    return f" {kind} JOIN {relation.name} {alias} ON {' AND '.join(conditions)}"


def _range(builder: QueryBuilder, scope: Scope, left: Field, right: Field) -> str:
    """Return a comparison of a column of each side, as it may be written."""
    choices = builder.choices
    scope.in_duckdb = scope.in_duckdb and left.kind in IN_DUCKDB
    one, other = (left, right) if choices.chance(50) else (right, left)
    shape = choices.pick(("sign", "sign", "between", "two", "band", "band"))
    if shape == "between":
        sides = [f.name for f in scope.fields if f.kind == one.kind and f.exact]
        return f"{one.name} BETWEEN {other.name} AND {choices.pick(sides)}"
    if shape == "two":
        return f"{one.name} > {other.name} AND {other.name} <= {one.name}"
    if shape == "band" and one.kind in _WIDTHS:
        width, middle = _WIDTHS[one.kind], other.name
        if one.kind == "integer" and not scope.risky:
            middle = f"{middle} % 7"
        scope.in_duckdb = scope.in_duckdb and one.kind == "integer" and not scope.risky
        if one.kind == "integer" and choices.chance(40):
            return f"{middle} - {width} <= {one.name} AND {one.name} < {width} + {middle}"
        if one.kind in ("integer", "date") or scope.risky:
            return f"{one.name} BETWEEN {middle} - {width} AND {middle} + {width}"
    return f"{one.name} {choices.pick(('<', '<=', '>', '>='))} {other.name}"


FAMILY = Family(joins=(Production(range_join, weight=3, size=2),))
