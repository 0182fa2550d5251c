"""A family: the productions that one feature adds to the grammar. ``families`` has one a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

from viewkeeper.testing.grammar.parts import Item, Query, Scope

if TYPE_CHECKING:
    from viewkeeper.testing.grammar.builder import QueryBuilder

Draw = TypeVar("Draw")
# Each gets the builder; an integer is how deep what it draws may nest, a string in front of it a class of type.
DrawQuery = Callable[["QueryBuilder", int], Query]
DrawJoin = Callable[["QueryBuilder", Scope], str]
DrawItem = Callable[["QueryBuilder", Scope, str], Item]
DrawCondition = Callable[["QueryBuilder", Scope, int], str]
DrawValue = Callable[["QueryBuilder", Scope, str, int], str]


@dataclass(frozen=True)
class Production(Generic[Draw]):
    """One way to go on.

    Args:
        draw: draws it.
        weight: how often, compared with the others of its place.
        size: how much it draws; a failing test is shrunk towards small ones.
    """

    draw: Draw
    weight: int = 1
    size: int = 1


@dataclass(frozen=True)
class Template:
    """An expression with gaps: ``Template("({} % 7)", "integer")``.

    Args:
        sql: its text, with ``{}`` for each argument.
        arguments: the arguments' classes.
        in_duckdb: whether DuckDB gives it the same meaning.
    """

    sql: str
    arguments: tuple[str, ...]
    in_duckdb: bool = False


Templates = Mapping[str, tuple[Template, ...]]


@dataclass(frozen=True)
class Family:
    """What a feature adds; places that it does not touch stay empty.

    Args:
        queries: whole queries.
        nested: whole queries that contain others; drawn where there is depth left, and given one less.
        joins: what follows the first relation in FROM, empty where nothing fits; they add their columns to the scope.
        items: columns of a SELECT list without grouping; they get the column's name.
        aggregates: calls for the SELECT list of a grouping query, without FILTER; they get the column's name.
        conditions: expressions for WHERE, ON, HAVING and the like.
        values: expressions of any class.
        safe: expressions of one class that never fail.
        risky: those that fail on some rows; drawn in risky scopes only.
    """

    queries: tuple[Production[DrawQuery], ...] = ()
    nested: tuple[Production[DrawQuery], ...] = ()
    joins: tuple[Production[DrawJoin], ...] = ()
    items: tuple[Production[DrawItem], ...] = ()
    aggregates: tuple[Production[DrawItem], ...] = ()
    conditions: tuple[Production[DrawCondition], ...] = ()
    values: tuple[Production[DrawValue], ...] = ()
    safe: Templates = field(default_factory=dict)
    risky: Templates = field(default_factory=dict)


def merged(families: Iterable[Family]) -> Family:
    """Return one family with the productions of all, small ones first."""
    families = tuple(families)
    return Family(
        queries=_sorted(f.queries for f in families),
        nested=_sorted(f.nested for f in families),
        joins=_sorted(f.joins for f in families),
        items=_sorted(f.items for f in families),
        aggregates=_sorted(f.aggregates for f in families),
        conditions=_sorted(f.conditions for f in families),
        values=_sorted(f.values for f in families),
        safe=_joined(f.safe for f in families),
        risky=_joined(f.risky for f in families),
    )


def _sorted(productions: Iterable[tuple[Production[Draw], ...]]) -> tuple[Production[Draw], ...]:
    return tuple(sorted(chain.from_iterable(productions), key=lambda production: production.size))


def _joined(templates: Iterable[Templates]) -> Templates:
    found: dict[str, tuple[Template, ...]] = {}
    for some in templates:
        for kind, more in some.items():
            found[kind] = found.get(kind, ()) + more
    return found
