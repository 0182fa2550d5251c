"""New versions of views: another query, wider columns, or the same filled anew, beside what they show until the swap.

A view that others read is replaced together with them: each gets a new version that reads the new versions below it.
Those that refresh together are filled together; all join their cadences in one swap (``coordinator.builds``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from viewkeeper.coordinator.builds import build_cadence
from viewkeeper.coordinator.targets import is_same_query
from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.nodes import Scan, ViewPlan, walk
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, NEEDS_REBUILD, SUSPENDED, SparkTyped, ViewDefinition
from viewkeeper.views.planning import FixedRelations, Planner, expression_asked
from viewkeeper.zset.schema import Schema, SqlType

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

_STILL = (SUSPENDED, NEEDS_REBUILD)


class SparkAnswers:
    """What Spark's analyzer says of expressions, to be kept with a view; asked only for what is not known.

    Args:
        engine: the connection.
        known: answers of before.
    """

    def __init__(self, engine: Engine, known: Iterable[SparkTyped] = ()) -> None:
        self._engine = engine
        self._known = {answer.asked: answer for answer in known}
        self.used: dict[str, SparkTyped] = {}

    def __call__(self, sql: str, schema: Schema) -> tuple[SqlType, bool, bool]:
        """Return type, nullability and determinism of an expression over columns of ``schema``."""
        asked = expression_asked(sql, schema)
        found = self._known.get(asked)
        if found is not None:
            self.used[asked] = found
            return found.type, found.nullable, True
        answer = self._engine.spark_types(sql, schema)
        self.used[asked] = SparkTyped(asked, answer[0], answer[1])
        return answer


def replaced(
    engine: Engine, before: Catalog, old: ViewDefinition, definition: ViewDefinition
) -> tuple[Catalog, dict[int, int]]:
    """Put a version with another query beside ``old``, and new versions of the views that read it.

    Returns:
        The catalog, and the new versions' ids by those that they replace.

    Raises:
        InputError: ``VIEW_IN_USE`` where a reader uses a column that the new query lacks or has under another type, or
            where the REFRESH clause changes under readers; ``VIEW_READS_ITSELF``; ``VIEW_NOT_ACTIVE``.
    """
    readers = _below_first(before, _newest(before, before.dependants(old.id)))
    circle = [view.name for view in (old, *readers) if view.id in definition.read_ids]
    if circle:
        through = "" if circle[0] == old.name else f" through {circle[0]!r}"
        message = f"The new query of {old.name!r} reads {old.name!r} itself{through}: read the tables below it instead."
        raise InputError("VIEW_READS_ITSELF", message, {"name": old.name})
    for reader in readers:
        state = before.views[reader.id].state
        if state != ACTIVE:
            message = f"View {reader.name!r}, which reads {old.name!r}, is {state}: let it go on, or drop it."
            raise InputError("VIEW_NOT_ACTIVE", message, {"views": [reader.name]})
    if readers and definition.refresh != old.refresh:
        names = ", ".join(v.name for v in readers)
        message = f"Views read {old.name!r}, whose REFRESH would change: {names}. Keep its REFRESH, or drop them first."
        raise InputError("VIEW_IN_USE", message, {"views": [v.name for v in readers]})
    return _with_versions(engine, before, {old.id: definition}, readers, keeps_columns=True)


def rebuilt(engine: Engine, before: Catalog, view: ViewDefinition) -> tuple[Catalog, dict[int, int]]:
    """Put new versions beside a view and those that must go with it, all of the same queries; see ``replaced``."""
    still = [before.views[i].name for i in view.read_ids if i in before.views and before.views[i].state in _STILL]
    if still:
        # It would show a later state than what it reads.
        names = ", ".join(still)
        message = f"View {view.name!r} reads views that stand still: {names}. Let them go on first (ALTER … RESUME)."
        raise InputError("VIEW_NOT_ACTIVE", message, {"views": still})
    readers = [v for v in before.dependants(view.id) if v.cadence == view.cadence]
    return _with_versions(engine, before, {}, _below_first(before, _newest(before, [view, *readers])))


def retyped(engine: Engine, before: Catalog, views: Iterable[ViewDefinition]) -> tuple[Catalog, dict[int, int]]:
    """Put new versions beside ``views``, which columns of other types have made different; see ``replaced``."""
    for view in views:
        still = [before.views[i] for i in view.read_ids if i in before.views and before.views[i].state != ACTIVE]
        for found in [v for v in (view, *still) if v.state != ACTIVE]:
            message = f"View {found.name!r} is {found.state}, {view.name!r} must be filled anew: let it go on first."
            raise InputError("VIEW_NOT_ACTIVE", message, {"views": [found.name]})
    return _with_versions(engine, before, {}, _below_first(before, views))


def recalled(engine: Engine, before: Catalog, views: Iterable[ViewDefinition]) -> tuple[Catalog, dict[int, int]]:
    """Put new versions beside ACTIVE views, which are to call other functions; see ``replaced``.

    Args:
        engine: the connection.
        before: the catalog, with the functions.
        views: the views, which call the old ones.
    """
    return _with_versions(engine, before, {}, _below_first(before, views))


def _with_versions(
    engine: Engine,
    before: Catalog,
    roots: Mapping[int, ViewDefinition],
    readers: Iterable[ViewDefinition],
    keeps_columns: bool = False,
) -> tuple[Catalog, dict[int, int]]:
    """Put BUILDING versions beside ``roots`` (their definitions by what they replace) and ``readers``, below first."""
    wanted = {**roots, **{reader.id: reader for reader in readers}}
    wanted |= {view.id: view for view in _below_first(before, _read_superseded(before, wanted))}
    before = before.without(*(v.id for v in before.views.values() if v.replaces in wanted))
    changing = {
        v.replaces: v.id
        for v in before.views.values()
        if v.replaces is not None and not is_same_query(before, before.views[v.replaces], v)
    }
    new_ids = {old: before.next_id + i for i, old in enumerate(wanted)}
    # What is being replaced by another query below a new version is that already when it serves.
    present = {**changing, **new_ids}
    planner, after = Planner(), before
    for old, definition in wanted.items():
        reads = tuple((name, present.get(id_, id_)) for name, id_ in definition.reads)
        # With the same query it is of the same lineage, so that views elsewhere which read it find what they keep.
        origin = None if old in roots else definition.lineage
        fresh = replace(
            definition, id=new_ids[old], state=BUILDING, reason=None, reads=reads, replaces=old, origin=origin
        )
        if keeps_columns and old not in roots:
            _check_columns(before, after, definition, new_ids)
        after = after.with_view(fresh if old in roots else _planned_anew(engine, planner, after, fresh))
    firsts: dict[tuple[str, str], int] = {}
    for old, new in new_ids.items():
        view = after.views[new]
        target = view.refresh.cadence(new, planner.needs_spark(after, view), planner.functions(after, view))
        first = firsts.setdefault((before.views[old].cadence, target), new)
        after = after.with_view(replace(view, cadence=build_cadence(first)))
    return after, new_ids


def _read_superseded(before: Catalog, wanted: Container[int]) -> list[ViewDefinition]:
    """Return what else needs a new version: that which is being filled reads one that makes room for a newer one."""
    superseded = [view.id for view in before.views.values() if view.replaces in wanted]
    reading = {v.replaces for id_ in superseded for v in before.dependants(id_)}
    return _newest(before, [before.views[old] for old in reading if old is not None and old not in wanted])


def _newest(before: Catalog, views: Iterable[ViewDefinition]) -> list[ViewDefinition]:
    """Return the newest queries of ``views``, each once, as if they served: of those that are being filled, theirs."""
    versions = {view.replaces: view for view in before.views.values() if view.replaces is not None}
    serving = {version.id: old for old, version in versions.items()}
    found = []
    for old in sorted({serving.get(view.id, view.id) for view in views}):
        newest = versions.get(old, before.views[old])
        reads = tuple((name, serving.get(i, i)) for name, i in newest.reads)
        found.append(replace(newest, id=old, origin=newest.lineage, reads=reads))
    return found


def with_present_types(catalog: Catalog, view: ViewDefinition) -> ViewDefinition:
    """Return ``view`` with the types that columns of tables have now, under the names that it knows."""
    columns = []
    for id_, known in view.columns_read:
        table = catalog.tables[id_]
        types = dict(zip(table.numbers, table.schema.types, strict=True))
        columns.append((id_, tuple(replace(c, type=types.get(c.number, c.type)) for c in known)))
    return replace(view, columns_read=tuple(columns))


def _planned_anew(engine: Engine, planner: Planner, catalog: Catalog, view: ViewDefinition) -> ViewDefinition:
    # By the functions that their names mean now, as by the types that columns have.
    functions = tuple((name, catalog.function_ids.get(name, id_)) for name, id_ in view.functions)
    fresh = replace(with_present_types(catalog, view), functions=functions)
    relations = FixedRelations(planner, catalog, fresh)
    answers = SparkAnswers(engine, view.spark_typed)
    try:
        plan_view(
            fresh.sql, relations, fresh.session,
            key=fresh.declared_key, column_names=fresh.columns, spark_types=answers,
        )  # fmt: skip
    except ViewkeeperError as error:
        message = f"View {view.name!r} could not be computed any more: {error} Drop it first, or keep what it uses."
        raise InputError("VIEW_IN_USE", message, {"view": view.name}) from error
    called = tuple(function for function in functions if function[0] in relations.called)
    return replace(fresh, spark_typed=tuple(answers.used.values()), functions=called)


def _check_columns(before: Catalog, after: Catalog, reader: ViewDefinition, new_ids: Mapping[int, int]) -> None:
    """Refuse a new version below ``reader`` that lacks a column of which it makes use."""
    planner, new_planner = Planner(), Planner()
    for node in walk(planner.plan(before, reader).root):
        if not isinstance(node, Scan) or node.relation.id not in new_ids:
            continue
        was, now = before.views[node.relation.id], after.views[new_ids[node.relation.id]]
        _check_scan(node, planner.plan(before, was), new_planner.plan(after, now), was.name, reader.name)


def _check_scan(scan: Scan, was: ViewPlan, now: ViewPlan, below: str, reader: str) -> None:
    for column in (was.schema.columns[i] for i in scan.columns if i < was.visible):
        position = now.schema.index(column.name)
        if position >= 0 and now.schema.types[position] == column.type:
            continue
        what = "which it would lack" if position < 0 else f"which would be {now.schema.types[position]}"
        message = (
            f"View {reader!r} uses column {column.name!r} ({column.type}) of {below!r}, {what}."
            f" Keep the column, or drop {reader!r} first."
        )
        raise InputError("VIEW_IN_USE", message, {"view": reader, "column": column.name})


def _below_first(catalog: Catalog, views: Iterable[ViewDefinition]) -> list[ViewDefinition]:
    """Return ``views`` so that each stands behind those that it reads."""
    waiting = {view.id: view for view in views}
    ordered: list[ViewDefinition] = []

    def place(view: ViewDefinition) -> None:
        for below in view.read_ids:
            if below in waiting:
                place(waiting.pop(below))
        ordered.append(view)

    while waiting:
        place(waiting.pop(min(waiting)))
    return ordered
