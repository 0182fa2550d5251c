"""Definitions to plans: each view's query, read again with the names and columns that it had at its creation.

A definition keeps its SQL, what the names in it meant, and which columns each table had. So columns may be renamed,
added and dropped and the plan stays; plans are never stored, and a newer version of the planner may make better ones.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.errors import InputError
from viewkeeper.expressions.tree import is_portable
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.catalog import Relations
from viewkeeper.plan.compile import Compilation, compile_views
from viewkeeper.plan.nodes import Relation, ViewPlan, expressions_of, walk
from viewkeeper.store.model import ColumnRead, Table
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import SparkTyped, ViewDefinition
from viewkeeper.zset.schema import Schema, SqlType


def table_relation(table: Table, columns: tuple[ColumnRead, ...] | None = None) -> Relation:
    """Return ``table`` as the planner sees it, with ``columns`` where a view knows them, else all that there are."""
    places, schema = table.seen(columns)
    key = tuple(places.index(position) for position in table.key)
    numbers = tuple(table.numbers[place] for place in places)
    return Relation(table.id, table.name, "table", schema, key, numbers=numbers, places=places)


def view_relation(view: ViewDefinition, view_plan: ViewPlan) -> Relation:
    """Return ``view`` as the planner sees it, its hidden columns behind."""
    hidden = view_plan.root.schema.columns[view_plan.visible :]
    key = view_plan.visible_key
    full = view_plan.key if key is None else None
    identity = view_plan.root.key if view_plan.declared else None
    return Relation(view.id, view.name, "view", view_plan.schema, key, Schema(hidden), full, identity)


@dataclass
class Planner:
    """Plans of views, remembered while their definitions stand."""

    _plans: dict[int, tuple[object, ViewPlan]] = field(default_factory=dict)

    def plan(self, catalog: Catalog, view: ViewDefinition) -> ViewPlan:
        """Return the plan of ``view``."""
        stamp = (
            view.sql, view.columns, view.declared_key, view.session, view.reads, view.columns_read, view.spark_typed,
            view.functions,
            tuple(catalog.tables[i].versions for i in view.read_ids if i in catalog.tables),
        )  # fmt: skip
        known = self._plans.get(view.id)
        if known is not None and known[0] == stamp:
            return known[1]
        types = _Remembered(view.spark_typed)
        made = plan_view(
            view.sql,
            FixedRelations(self, catalog, view),
            view.session,
            key=view.declared_key,
            column_names=view.columns,
            spark_types=types,
        )
        self._plans[view.id] = (stamp, made)
        return made

    def check_strict(self, catalog: Catalog, view: ViewDefinition) -> None:
        """Refuse what REFRESH POLICY INCREMENTAL refuses.

        Raises:
            UnsupportedSql: at its place in the view's query.
        """
        names, types = FixedRelations(self, catalog, view), _Remembered(view.spark_typed)
        plan_view(view.sql, names, view.session, None, view.declared_key, view.columns, types, is_strict=True)

    def keep(self, views: Container[int]) -> None:
        """Forget the plans of all views but ``views``, by id."""
        self._plans = {view: known for view, known in list(self._plans.items()) if view in views}

    def relations(self, catalog: Catalog) -> RecordingRelations:
        """Return all tables and serving views, for planning what a user writes."""
        return RecordingRelations(self, catalog)

    def relation(self, catalog: Catalog, id_: int, columns: tuple[ColumnRead, ...] | None = None) -> Relation | None:
        """Return table or view ``id_`` as the planner sees it."""
        if id_ in catalog.tables:
            return table_relation(catalog.tables[id_], columns)
        if id_ in catalog.views:
            return view_relation(catalog.views[id_], self.plan(catalog, catalog.views[id_]))
        return None

    def plans_for(self, catalog: Catalog, views: tuple[ViewDefinition, ...]) -> dict[int, ViewPlan]:
        """Return plans of ``views`` and of every view below them, by id."""
        plans: dict[int, ViewPlan] = {}
        waiting = list(views)
        while waiting:
            view = waiting.pop()
            if view.id in plans:
                continue
            plans[view.id] = self.plan(catalog, view)
            waiting += [catalog.views[i] for i in view.read_ids if i in catalog.views]
        return plans

    def compile(
        self,
        catalog: Catalog,
        views: tuple[ViewDefinition, ...],
        namespace: str,
        kept: frozenset[str] = frozenset(),
    ) -> Compilation:
        """Return the circuit that maintains ``views``, with state tables under ``namespace``; see ``compile_views``."""
        tables = {table.id: table.schema for table in catalog.tables.values()}
        plans = self.plans_for(catalog, views)
        lineages = {id_: catalog.views[id_].lineage for id_ in plans}
        return compile_views(plans, tuple(v.id for v in views), tables, namespace, lineages, kept)

    def functions(self, catalog: Catalog, view: ViewDefinition) -> tuple[int, ...]:
        """Return ids of the users' functions that ``view``, or a view below it, calls."""
        found: dict[int, None] = {}
        waiting, seen = [view], {view.id}
        while waiting:
            at = waiting.pop()
            found.update(dict.fromkeys(id_ for _, id_ in at.functions))
            below = [i for i in at.read_ids if i in catalog.views and i not in seen]
            seen.update(below)
            waiting += [catalog.views[i] for i in below]
        return tuple(sorted(found))

    def needs_spark(self, catalog: Catalog, view: ViewDefinition) -> bool:
        """Return whether some expression of ``view``, or of a view below it, is not portable."""
        plans = self.plans_for(catalog, (view,)).values()
        return not all(is_portable(e) for p in plans for node in walk(p.root) for e in expressions_of(node))


class RecordingRelations:
    """The catalog's names, noting which were asked for: a new view keeps what they mean now.

    Args:
        planner: plans the views among them.
        catalog: the catalog.
    """

    def __init__(self, planner: Planner, catalog: Catalog) -> None:
        self._planner = planner
        self._catalog = catalog
        self.read: dict[str, int] = {}
        self.called: dict[str, int] = {}

    def relation(self, name: str) -> Relation | None:
        """Return the table or view called ``name``."""
        found = self._catalog.find(name)
        if found is None:
            return None
        self.read[name.lower()] = found.id
        return self._planner.relation(self._catalog, found.id)

    def function(self, name: str) -> UserFunction | None:
        """Return the user's function called ``name``."""
        id_ = self._catalog.function_ids.get(name.lower())
        if id_ is None:
            return None
        self.called[name.lower()] = id_
        return self._catalog.functions[id_]

    def names(self) -> list[str]:
        """Return all names."""
        serving = [v.name for v in self._catalog.views.values() if v.replaces is None]
        return [t.name for t in self._catalog.tables.values()] + serving

    def apart(self) -> Relations:
        """Return names of the same catalog that note nothing here."""
        return RecordingRelations(self._planner, self._catalog)

    def columns_read(self) -> tuple[tuple[int, tuple[ColumnRead, ...]], ...]:
        """Return for each table asked for its columns."""
        tables = [self._catalog.tables[i] for i in dict.fromkeys(self.read.values()) if i in self._catalog.tables]
        return tuple((table.id, table.columns_read()) for table in tables)


class FixedRelations:
    """What the names in a view's SQL meant when it was created; ``called`` are the functions that were asked for.

    Args:
        planner: plans the views among them.
        catalog: the catalog.
        view: the view.
    """

    def __init__(self, planner: Planner, catalog: Catalog, view: ViewDefinition) -> None:
        self._planner = planner
        self._catalog = catalog
        self._reads = dict(view.reads)
        self._columns = dict(view.columns_read)
        self._functions = {called: catalog.functions[id_] for called, id_ in view.functions}
        self.called: set[str] = set()

    def relation(self, name: str) -> Relation | None:
        """Return what ``name`` meant."""
        id_ = self._reads.get(name.lower())
        if id_ is None:
            return None
        found = self._planner.relation(self._catalog, id_, self._columns.get(id_))
        if found is None or found.name.lower() == name.lower():
            return found
        # It was renamed since: columns are called by the name that the SQL has.
        return replace(found, name=name)

    def function(self, name: str) -> UserFunction | None:
        """Return the user's function that ``name`` meant."""
        self.called.add(name.lower())
        return self._functions.get(name.lower())

    def names(self) -> list[str]:
        """Return the names."""
        return list(self._reads)

    def apart(self) -> None:
        """Return nothing: what no one reads was checked when the view was created."""


_COLUMN = re.compile(r"`_c(\d+)`")


def expression_asked(sql: str, schema: Schema) -> str:
    """Return what was asked of Spark's analyzer, free of the positions that columns happen to have.

    Example:
        >>> from viewkeeper.zset.schema import STRING, Column, Schema
        >>> expression_asked("soundex(`_c1`)", Schema((Column("a", STRING), Column("b", STRING, False))))
        'soundex(`_c0`) over string not null'
    """
    order = list(dict.fromkeys(int(number) for number in _COLUMN.findall(sql)))
    text = _COLUMN.sub(lambda found: f"`_c{order.index(int(found[1]))}`", sql)
    columns = (schema.columns[i] for i in order)
    types = ", ".join(f"{c.type}{'' if c.nullable else ' not null'}" for c in columns)
    return f"{text} over {types}"


class _Remembered:
    """Spark's answers from the view's creation, in place of Spark."""

    def __init__(self, known: tuple[SparkTyped, ...]) -> None:
        self._known: Mapping[str, SparkTyped] = {k.asked: k for k in known}

    def __call__(self, sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        found = self._known.get(expression_asked(sql, schema))
        if found is None:
            message = f"The type of {sql!r} was not kept when the view was created: create the view again."
            raise InputError("EXPRESSION_NOT_KNOWN", message)
        return found.type, found.nullable, True
