"""Views drawn while a script goes on: over the tables as they are then, and the views that there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.grammar.builder import QueryBuilder
from viewkeeper.testing.grammar.family import Family
from viewkeeper.testing.grammar.parts import Field, Query, Relation, Scope, nested_fields
from viewkeeper.testing.model import TableModel
from viewkeeper.testing.pools import DUCKDB_TYPES, NESTED_TYPES, TYPES
from viewkeeper.testing.scripts import AlterView, ScriptTable, ScriptView

# AUTO follows where the oracle draws ways.
_STRICT = " REFRESH POLICY INCREMENTAL"
POLICIES = (*[""] * 3, _STRICT, " REFRESH POLICY FULL", " REFRESH POLICY FULL")
# Written where it is called, or named by WINDOW; or sessions, which may be without another column in GROUP BY.
_WINDOW_OVER_ALL = re.compile(r"(?:OVER|WINDOW \w+ AS) \((?!PARTITION)|session_window\(")


class ViewDrawer:
    """Draws views, and other queries for them.

    Args:
        choices: makes the choices.
        model: the tables, and the views that are there; told of each view.
        refreshes: REFRESH clauses to choose from.
        grammar: the productions of the queries.
    """

    def __init__(self, choices: Choices, model: TableModel, refreshes: Sequence[str], grammar: Family) -> None:
        self.drawn: list[ScriptView] = []
        self._choices = choices
        self._model = model
        self._refreshes = refreshes
        self._grammar = grammar
        self._relations: dict[str, Relation] = {}

    def create(self) -> ScriptView:
        """Draw a view."""
        name = f"view{len(self.drawn)}"
        query = self._builder().query()
        policies = [policy for policy in POLICIES if policy != _STRICT] if _is_recomputed(query.sql) else POLICIES
        refresh = self._choices.pick(self._refreshes) + self._choices.pick(policies)
        names = tuple(f.name for f in query.fields)
        key = self._declared_key(query)
        asked = (query.scaled, query.scaled_sql, query.in_duckdb, query.spark_sql)
        view = ScriptView(name, query.sql, names, refresh, key, _inexact(query.fields), *asked)
        return self._noted(view, query.fields)

    def copy(self) -> ScriptView | None:
        """Draw a view like one that is there, whose names still mean what they meant; None where there is none.

        What it joins is kept already where both refresh together: then it is filled with that.
        """
        usable = [view for view in self._model.views.values() if self._is_understood(view)]
        if not usable:
            return None
        view = self._choices.pick(usable)
        return self._noted(replace(view, name=f"view{len(self.drawn)}"), self._relations[view.name].fields)

    def alter(self) -> AlterView | None:
        """Draw another query for a view; None where none is known to fit.

        A view that others read, or with a declared key, keeps its columns: its query stands within the new one.
        """
        view = self._choices.pick(list(self._model.views.values()))
        keeps_columns = bool(view.key or self._model.readers_of(view.name))
        if not keeps_columns:
            query = self._builder(before=view.name).query()
        elif self._is_understood(view) and not view.sql.startswith("WITH"):
            query = self._filtered(view)
        else:
            return None
        if view.refresh.endswith(_STRICT) and _is_recomputed(query.sql):
            return None
        self._relations[view.name] = Relation(view.name, query.fields, query.in_duckdb)
        names, inexact = tuple(f.name for f in query.fields), _inexact(query.fields)
        asked = (query.scaled, query.scaled_sql, query.in_duckdb, query.spark_sql)
        return AlterView(view.name, query.sql, names, inexact, *asked)

    def _filtered(self, view: ScriptView) -> Query:
        """Some rows of a view's query, with one more column in front where no key is declared."""
        builder, relation = self._builder(before=view.name), self._relations[view.name]
        alias = builder.name("q")
        scope = Scope(relation.qualified(alias), risky=False, in_duckdb=relation.in_duckdb)
        listed = [f"{field.name} AS {field.name.rpartition('.')[2]}" for field in scope.fields]
        fields = relation.fields
        if not view.key and self._choices.chance(50):
            number = self._choices.pick([n for n in range(9) if f"a{n}" not in view.columns])
            more = builder.item(scope, f"a{number}")
            listed, fields = [more.listed, *listed], (more.field, *fields)
        where = builder.where(scope, 80)
        before, after = f"SELECT {', '.join(listed)} FROM (", f") {alias}{where}"
        spark_sql = f"{before}{view.spark_sql}{after}" if view.spark_sql else ""
        return Query(f"{before}{view.sql}{after}", fields, scope.in_duckdb, spark_sql=spark_sql)

    def _builder(self, before: str | None = None) -> QueryBuilder:
        names = list(self._model.views)
        usable = names if before is None else names[: names.index(before)]
        tables = [_relation(table) for table in self._model.tables.values()]
        return QueryBuilder(self._choices, [*tables, *(self._relations[name] for name in usable)], self._grammar)

    def _is_understood(self, view: ScriptView) -> bool:
        names = (self._model.known_names(view.name, table) for table in self._model.tables)
        return all(now == known for pairs in names for now, known in pairs)

    def _declared_key(self, query: Query) -> tuple[str, ...]:
        """Declare a key now and then: rows may break it, and mend it."""
        if not self._choices.chance(12):
            return ()
        exact = [f.name for f in query.fields if f.exact]
        return tuple(self._choices.some(exact, 1, 2)) if exact else ()

    def _noted(self, view: ScriptView, fields: tuple[Field, ...]) -> ScriptView:
        self.drawn.append(view)
        self._relations[view.name] = Relation(view.name, fields, view.in_duckdb)
        self._model.define(view)
        return view


def _is_recomputed(sql: str) -> bool:
    """Return whether a query may have windows over all rows, which INCREMENTAL refuses."""
    return _WINDOW_OVER_ALL.search(sql) is not None


def _inexact(fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(field.name for field in fields if not field.exact and not field.settled)


def _relation(table: ScriptTable) -> Relation:
    fields: list[Field] = []
    for name, kind, _ in table.columns:
        if kind in NESTED_TYPES:
            fields += nested_fields(name, NESTED_TYPES[kind][0])
        else:
            fields.append(Field(name, TYPES[kind][0]))
    return Relation(table.name, tuple(fields), all(kind in DUCKDB_TYPES for _, kind, _ in table.columns))
