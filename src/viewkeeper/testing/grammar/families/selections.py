"""SELECT … FROM … WHERE: columns as they are, or expressions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import IN_DUCKDB, Field, Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder


def selection(builder: QueryBuilder, depth: int) -> Query:
    """Rows of one relation."""
    return builder.rows()


def column(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """A column as it is."""
    chosen = builder.choices.pick(scope.fields)
    scope.in_duckdb = scope.in_duckdb and chosen.kind in IN_DUCKDB
    return Item(chosen.name, chosen.called(name))


def computed(builder: QueryBuilder, scope: Scope, name: str) -> Item:
    """An expression."""
    kind = builder.any_kind(scope)
    return Item(builder.expression(scope, kind, 2), Field(name, kind))


FAMILY = Family(
    queries=(Production(selection, weight=2, size=0),),
    items=(Production(column, weight=3, size=0), Production(computed, weight=2)),
)
