"""Comparisons, IN, BETWEEN, IS NULL, and what AND, OR and NOT make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def comparison(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """Two values of one class."""
    kind = builder.choices.pick(scope.kinds())
    sign = builder.choices.pick(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    scope.in_duckdb = scope.in_duckdb and sign != "<=>"
    return f"{builder.expression(scope, kind, depth)} {sign} {builder.expression(scope, kind, 0)}"


def is_null(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """IS NULL, IS NOT NULL."""
    value = builder.expression(scope, builder.choices.pick(scope.kinds()), 0)
    return f"{value} IS {builder.choices.pick(('', 'NOT '))}NULL"


def in_list(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """IN over literals."""
    kind = builder.choices.pick(scope.kinds())
    return f"{builder.expression(scope, kind, 0)} IN ({builder.literal(kind)}, {builder.literal(kind)})"


def between(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """BETWEEN."""
    kind = builder.choices.pick(scope.kinds())
    value = builder.expression(scope, kind, 0)
    return f"{value} BETWEEN {builder.literal(kind)} AND {builder.expression(scope, kind, 0)}"


def both_or_either(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """AND, OR."""
    word = builder.choices.pick(("AND", "OR"))
    return f"({comparison(builder, scope, depth)} {word} {comparison(builder, scope, depth)})"


def negated(builder: QueryBuilder, scope: Scope, depth: int) -> str:
    """NOT."""
    return f"NOT ({comparison(builder, scope, depth)})"


FAMILY = Family(
    conditions=(
        Production(comparison, weight=3, size=0),
        Production(is_null, size=0),
        Production(in_list),
        Production(between),
        Production(both_or_either, weight=2, size=2),
        Production(negated),
    )
)
