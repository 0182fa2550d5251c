"""Queries of the view grammar, drawn: what they read is given, what they return is known by class of type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.grammar.families import GRAMMAR
from viewkeeper.testing.grammar.family import Family, Production
from viewkeeper.testing.grammar.parts import (
    CLASSES,
    IN_DUCKDB,
    INTERVAL,
    LIST,
    LITERALS,
    NESTED,
    NULLS,
    Field,
    Item,
    Query,
    Relation,
    Scope,
    comparable,
)

Draw = TypeVar("Draw")


class QueryBuilder:
    """Draws queries; productions call back for what they contain.

    Args:
        choices: makes the choices.
        relations: the tables and views to read.
        grammar: the productions.
    """

    def __init__(self, choices: Choices, relations: Sequence[Relation], grammar: Family = GRAMMAR) -> None:
        self.choices = choices
        self.relations = relations
        self.grammar = grammar
        self._numbers = count(1)

    def over(self, *relations: Relation) -> QueryBuilder:
        """Return a builder of queries over other relations, within the same query: no name is given twice."""
        other = QueryBuilder(self.choices, relations, self.grammar)
        other._numbers = self._numbers
        return other

    def name(self, prefix: str) -> str:
        """Return a name that the query has not got yet."""
        return f"{prefix}{next(self._numbers)}"

    def query(self, depth: int = 1) -> Query:
        """Return a query; ``depth`` bounds how deep queries nest in it."""
        nested = self.grammar.nested if depth else ()
        chosen = self._chosen((*self.grammar.queries, *nested))
        return chosen.draw(self, depth - 1 if chosen in nested else depth)

    def source(self, joins: int = 0) -> tuple[str, Scope]:
        """Return what follows FROM, with so many joins, and its scope."""
        relation = self.choices.pick(self.relations)
        alias = self.name("s")
        scope = Scope(relation.qualified(alias), self.choices.chance(30), relation.in_duckdb)
        text = f"{relation.name} {alias}"
        for _ in range(joins):
            # A name without alias may mean a column of what is joined next, too.
            scope.fields = scope.qualified()
            text += self._chosen(self.grammar.joins).draw(self, scope)
        return text, scope

    def partner(self, scope: Scope) -> tuple[Relation, str, list[Field], list[tuple[Field, Field]]]:
        """Return one more relation, its alias and fields, and the pairs of fields that a condition can compare."""
        relation = self.choices.pick(self.relations)
        alias = self.name("s")
        theirs = relation.qualified(alias)
        return relation, alias, theirs, comparable(scope.fields, theirs)

    def correlations(self, scope: Scope, inner: Scope, percent: int, sign: Callable[[int], str]) -> list[str]:
        """Return comparisons of a subquery's fields with outer ones, in so many of a hundred cases.

        Args:
            scope: the outer fields.
            inner: the subquery's.
            percent: in how many cases.
            sign: draws the sign of the first, second, … comparison.
        """
        pairs = comparable(scope.qualified(), inner.fields)
        conditions: list[str] = []
        if pairs and self.choices.chance(percent):
            for number in range(self.choices.pick((1, 1, 2))):
                outer, own = self.choices.pick(pairs)
                scope.in_duckdb = scope.in_duckdb and outer.kind in IN_DUCKDB
                conditions.append(f"{own.name} {sign(number)} {outer.name}")
        return conditions

    def rows(self, joins: int = 0, like: Sequence[Field] = ()) -> Query:
        """Return SELECT … FROM … [WHERE …]; with columns of the classes and names of ``like``, if there are any."""
        source, scope = self.source(joins)
        if like:
            items = [Item(self.expression(scope, f.kind, 1), Field(f.name, f.kind)) for f in like]
        else:
            items = self.choices.many(lambda number: self.item(scope, f"c{number}"), 1, 4)
        where = self.where(scope, 50)
        listed = ", ".join(item.listed for item in items)
        return Query(f"SELECT {listed} FROM {source}{where}", tuple(item.field for item in items), scope.in_duckdb)

    def where(self, scope: Scope, percent: int) -> str:
        """Return a WHERE clause in so many of a hundred cases."""
        return f" WHERE {self.condition(scope)}" if self.choices.chance(percent) else ""

    def item(self, scope: Scope, name: str) -> Item:
        """Return a column of a SELECT list."""
        return self._chosen(self.grammar.items).draw(self, scope, name)

    def aggregate(self, scope: Scope, name: str) -> Item:
        """Return an aggregate, now and then with a FILTER."""
        call = self._chosen(self.grammar.aggregates).draw(self, scope, name)
        if not self.choices.chance(20):
            return call
        clause = f" FILTER (WHERE {self.condition(scope)})"
        return Item(call.sql + clause, call.field, call.scale + clause if call.scale else "")

    def condition(self, scope: Scope, depth: int = 1) -> str:
        """Return a condition."""
        return self._chosen(self.grammar.conditions).draw(self, scope, depth)

    def literal(self, kind: str) -> str:
        """Return a literal of class ``kind``."""
        return self.choices.pick(LITERALS[kind])

    def expression(self, scope: Scope, kind: str, depth: int) -> str:
        """Return an expression of class ``kind``."""
        scope.in_duckdb = scope.in_duckdb and kind in IN_DUCKDB
        if kind in (LIST, INTERVAL):
            return "NULL"
        if kind in NESTED:
            nested = scope.nested(kind)
            return self.choices.pick(nested) if nested else "NULL"
        if depth and self.choices.chance(60):
            return self._chosen(self.grammar.values).draw(self, scope, kind, depth)
        columns = scope.of(kind)
        if columns and not self.choices.chance(15):
            return self.choices.pick(columns)
        return NULLS[kind] if self.choices.chance(15) else self.literal(kind)

    def any_kind(self, scope: Scope) -> str:
        """Return a class of type, mostly one that the scope has columns of."""
        return self.choices.pick(CLASSES if self.choices.chance(30) else scope.kinds())

    def _chosen(self, productions: Sequence[Production[Draw]]) -> Production[Draw]:
        return self.choices.pick([p for p in productions for _ in range(p.weight)])
