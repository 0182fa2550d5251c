"""Statements that define tables and views: each checks, changes the catalog, then does its work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from viewkeeper.coordinator.builds import build_cadence
from viewkeeper.coordinator.swaps import remove_state
from viewkeeper.database.versions import SparkAnswers, rebuilt, replaced
from viewkeeper.errors import InputError
from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.user_functions import loaded
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.records import note_names
from viewkeeper.plan.build import plan_expression, plan_view
from viewkeeper.plan.place import Place
from viewkeeper.statements import model as st
from viewkeeper.store.key_value import WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.tables import drop_rows, make_place
from viewkeeper.store.transactions import Truncate
from viewkeeper.views.catalog import Catalog, read_catalog, write_catalog
from viewkeeper.views.definition import (
    ACTIVE,
    BUILDING,
    NEEDS_REBUILD,
    SUSPENDED,
    Refresh,
    ViewDefinition,
)
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Column, Schema
from viewkeeper.zset.versions import first_layout

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine


def create_table(engine: Engine, s: st.CreateTable) -> None:
    """CREATE TABLE."""
    columns = tuple(Column(c.name, c.type, c.nullable) for c in s.columns)
    schema = Schema(columns)
    defaults = tuple(default_of(engine, c) for c in s.columns)
    key = tuple(schema.index(name) for name in s.primary_key)

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        if before.find(s.name) is not None:
            if s.if_not_exists:
                return None
            message = f"There is already a table or view {s.name!r}: drop it first, or write IF NOT EXISTS."
            raise InputError("TABLE_EXISTS", message, {"name": s.name})
        comments = tuple(c.comment for c in s.columns)
        none = (None,) * len(columns)
        texts = tuple(map(default_text, s.columns))
        layouts = (first_layout(schema.types),)
        table = Table(before.next_id, s.name, schema, key, defaults, layouts, none, comments, texts)
        return before.with_table(table), (table.id,)

    engine.change_catalog(change, s.sql)


def drop_table(engine: Engine, s: st.DropTable) -> None:
    """DROP TABLE [CASCADE]: refused while views read it."""
    start: list[Catalog] = []
    gone: list[ViewDefinition] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        if before.find(s.name) is None and s.if_exists:
            return None
        if isinstance(before.find(s.name), ViewDefinition):
            raise InputError(
                "NOT_A_TABLE", f"{s.name!r} is a view: use DROP MATERIALIZED VIEW {s.name}.", {"name": s.name}
            )
        table = before.table(s.name)
        readers = before.dependants(table.id)
        if readers and not s.cascade:
            names = _names_of(readers)
            message = f"Views read table {s.name!r}: {names}. Drop them first, or use CASCADE."
            raise InputError("TABLE_IN_USE", message, {"name": s.name})
        start[:] = [before]
        gone[:] = before.with_versions(readers)
        return before.without(table.id, *(v.id for v in gone)).with_functions_in_use(), (table.id,)

    def drop(txn: WriteTransaction) -> None:
        # With the catalog: no crash leaves rows without their table, or a table without its rows.
        drop_rows(txn, start[0].table(s.name).id)

    engine.change_catalog(change, s.sql, drop)
    for view in reversed(gone):
        remove_state(engine.coordinator, start[0], view)


def _names_of(views: Iterable[ViewDefinition]) -> str:
    """Return the names of views for a message, each once: a version that is being filled has that of the old one."""
    return ", ".join(dict.fromkeys(v.name for v in views))


def truncate_table(engine: Engine, s: st.TruncateTable) -> int:
    """TRUNCATE TABLE: deletes all rows, by the log, so views follow."""
    return engine.writer.commit(lambda catalog: [Truncate(catalog.table(s.name))]).sequence_number


def default_text(column: st.ColumnDefinition) -> str | None:
    """Return a column's DEFAULT as it was written, None where it has none."""
    return None if column.default_sql is None else column.default_sql.text


def default_of(engine: Engine, column: st.ColumnDefinition) -> object:
    """Return a column's DEFAULT as the value that reading it back gives."""
    if column.default_sql is None:
        return None
    text = column.default_sql
    place = _place(engine, text)
    expression = plan_expression(text.text, Schema(()), engine.session, place=place, target=column.type)
    one_row = pa.record_batch([pa.nulls(1)], names=["x"])
    result = evaluate(expression, one_row, engine.session)
    if result.errors is not None and result.errors.rows.any():
        message = (
            f"The DEFAULT of column {column.name!r} cannot become {str(column.type).upper()}: {text.text}. "
            "Give a value of that type."
        )
        raise InputError("INVALID_DEFAULT", message, {"name": column.name})
    codec = RowCodec((column.type,))
    return codec.decode_values(codec.encode([result.values])[0])[0]


def _place(engine: Engine, text: st.SqlText) -> Place:
    return Place(engine.text, text.place.offset)


def define_view(engine: Engine, s: st.CreateView, catalog: Catalog) -> ViewDefinition:
    """Return the definition that CREATE MATERIALIZED VIEW asks for, planned and checked, under id 0.

    Raises:
        SqlError: SQL that is wrong, at its place.
        UnsupportedSql: what cannot be maintained.
    """
    relations = engine.coordinator.planner.relations(catalog)
    types = SparkAnswers(engine)
    names = tuple(name for name, _ in s.columns) or None
    key = s.primary_key or None
    place, is_strict = _place(engine, s.query), s.policy == "INCREMENTAL"
    plan_view(s.query.text, relations, engine.session, place, key, names, types, is_strict)
    for id_ in relations.called.values():
        loaded(catalog.functions[id_])  # what cannot be run here is known now, not while the view is filled
    waiting = [catalog.views[i].name for i in relations.read.values() if i in catalog.views]
    for name in waiting:
        if catalog.view(name).state not in (ACTIVE,):
            state = catalog.view(name).state
            raise InputError("VIEW_NOT_ACTIVE", f"View {name!r} is {state}: only ACTIVE views can be read by views.")
        if _is_changing(catalog, catalog.view(name)):
            message = f"View {name!r} is being replaced by another query: wait until that is filled, or refresh it."
            raise InputError("VIEW_NOT_ACTIVE", message)
    return ViewDefinition(
        id=0,
        name=s.name,
        sql=s.query.text,
        columns=names,
        declared_key=key,
        comment=s.comment,
        column_comments=tuple(comment for _, comment in s.columns),
        refresh=Refresh(s.refresh.kind, s.refresh.every_seconds),
        policy=s.policy,
        session=engine.session,
        reads=tuple(relations.read.items()),
        columns_read=relations.columns_read(),
        spark_typed=tuple(types.used.values()),
        cadence="",
        state=BUILDING,
        functions=tuple(relations.called.items()),
    )


def _is_changing(catalog: Catalog, view: ViewDefinition) -> bool:
    """Return whether a version with another query is being filled beside ``view``; one of the same is no matter."""
    versions = (v for v in catalog.views.values() if v.replaces == view.id)
    return any(not _means_the_same(catalog, view, version) for version in versions)


def _means_the_same(catalog: Catalog, one: ViewDefinition, other: ViewDefinition) -> bool:
    """Return whether two versions of a view have one query, and so has all that they read."""
    if _query_of(one) != _query_of(other):
        return False
    pairs = ((a, b) for a, b in zip(one.read_ids, other.read_ids, strict=True) if a != b)
    return all(_means_the_same(catalog, catalog.views[a], catalog.views[b]) for a, b in pairs)


def _query_of(view: ViewDefinition) -> tuple[object, ...]:
    """Return what decides of a view's rows; the same text means something else in another time zone."""
    names = tuple(name for name, _ in view.reads)
    return view.sql, view.columns, view.declared_key, view.session, view.functions, view.columns_read, names


def create_view(engine: Engine, s: st.CreateView) -> int | None:
    """CREATE MATERIALIZED VIEW: put a BUILDING view into the catalog; return its id, None where it exists already."""
    made: list[int] = []
    gone: list[tuple[Catalog, ViewDefinition]] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        there = before.find(s.name)
        if there is not None and s.if_not_exists:
            return None
        if there is not None and not s.or_replace:
            message = f"There is already a table or view {s.name!r}: use CREATE OR REPLACE, or IF NOT EXISTS."
            raise InputError("VIEW_EXISTS", message, {"name": s.name})
        old = before.view(s.name) if there is not None else None
        after = _with_new_version(engine, before, define_view(engine, s, before), old, made)
        gone[:] = _gone(before, after)
        return after, ()

    engine.change_catalog(change, s.sql)
    _remove(engine, gone)
    return made[0] if made else None


def alter_view_as(engine: Engine, s: st.AlterViewAs) -> int:
    """ALTER MATERIALIZED VIEW … AS: a new version under the old one's other clauses."""
    made: list[int] = []
    gone: list[tuple[Catalog, ViewDefinition]] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]]:
        old = before.view(s.name)
        columns = tuple((name, None) for name in old.columns or ())
        wanted = st.CreateView(
            sql=s.sql, place=s.place, name=old.name, query=s.query, or_replace=True, if_not_exists=False,
            columns=columns, primary_key=old.declared_key or (), comment=old.comment,
            refresh=st.Refresh(old.refresh.kind, old.refresh.every_seconds), policy=old.policy, with_no_data=False,
        )  # fmt: skip
        after = _with_new_version(engine, before, define_view(engine, wanted, before), old, made)
        gone[:] = _gone(before, after)
        return after, ()

    engine.change_catalog(change, s.sql)
    _remove(engine, gone)
    return made[0]


def _with_new_version(
    engine: Engine, before: Catalog, definition: ViewDefinition, old: ViewDefinition | None, made: list[int]
) -> Catalog:
    """Put a BUILDING view beside the version that it replaces, which serves until the swap.

    One that is being filled serves nobody: it goes at once, and whoever waits for it has a ``VIEW_CHANGED``.
    """
    if old is not None and old.state != BUILDING:
        after, new_ids = replaced(engine, before, old, definition)
        made[:] = [new_ids[old.id]]
        return after
    id_ = before.next_id
    made[:] = [id_]
    after = before if old is None else before.without(*(view.id for view in before.with_versions([old])))
    return after.with_view(replace(definition, id=id_, cadence=build_cadence(id_))).with_functions_in_use()


def _gone(before: Catalog, after: Catalog) -> list[tuple[Catalog, ViewDefinition]]:
    """Return the views that are not there any more, as ``_remove`` wants them."""
    return [(before, view) for view in before.views.values() if view.id not in after.views]


def drop_view(engine: Engine, s: st.DropView) -> None:
    """DROP MATERIALIZED VIEW: refused while views read it."""
    gone: list[tuple[Catalog, ViewDefinition]] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        if before.find(s.name) is None and s.if_exists:
            return None
        view = before.view(s.name)
        readers = before.dependants(view.id)
        if readers:
            names = _names_of(readers)
            raise InputError("VIEW_IN_USE", f"Views read {s.name!r}: {names}. Drop them first.", {"name": s.name})
        gone[:] = [(before, v) for v in before.with_versions([view])]
        return before.without(*(v.id for _, v in gone)).with_functions_in_use(), ()

    engine.change_catalog(change, s.sql)
    _remove(engine, gone)


def _remove(engine: Engine, gone: Iterable[tuple[Catalog, ViewDefinition]]) -> None:
    """Remove the state of views that have left the catalog in which they stood."""
    for before, view in gone:
        remove_state(engine.coordinator, before, view)


def rename_view(engine: Engine, s: st.AlterViewRename) -> None:
    """ALTER MATERIALIZED VIEW … RENAME TO."""

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]]:
        view = before.view(s.name)
        if before.find(s.new_name) is not None and s.new_name.lower() != s.name.lower():
            raise InputError(
                "VIEW_EXISTS",
                f"There is already a table or view {s.new_name!r}: choose another name.",
                {"name": s.new_name},
            )
        after = before
        for version in before.with_versions([view]):
            # Also of one that is being filled to replace it: it would bring the old name back.
            after = after.with_view(replace(version, name=s.new_name))
        return after, ()

    engine.change_catalog(change, s.sql)
    with engine.store.views.write() as txn:
        note_names(txn, engine.coordinator.catalog().version)


def suspend_view(engine: Engine, s: st.AlterViewSuspend) -> None:
    """ALTER MATERIALIZED VIEW … SUSPEND: its rows stay as they are; its state goes."""
    left: list[tuple[Catalog, ViewDefinition]] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        view = before.view(s.name)
        if view.state == BUILDING:
            raise InputError("VIEW_BUILDING", f"View {s.name!r} is being filled: suspend it afterwards, or drop it.")
        if len(before.with_versions([view])) > 1:
            message = f"A new version of view {s.name!r} is being filled, and serves then: suspend it afterwards."
            raise InputError("VIEW_BUILDING", message, {"name": s.name})
        if view.state == SUSPENDED:
            return None
        readers = [v.name for v in before.dependants(view.id) if v.state in (ACTIVE, BUILDING)]
        if readers:
            names = ", ".join(readers)
            message = f"Views read {s.name!r} and would stop with it: {names}. Suspend them first."
            raise InputError("VIEW_IN_USE", message, {"name": s.name})
        left[:] = [(before, view)]
        return before.with_view(replace(view, state=SUSPENDED)), ()

    engine.change_catalog(change, s.sql)
    for before, view in left:
        remove_state(engine.coordinator, before, view, keep_rows=True)


def resume_view(engine: Engine, s: st.AlterViewResume) -> int | None:
    """ALTER MATERIALIZED VIEW … RESUME: filled anew beside the rows that serve until then; returns what to build."""
    return rebuild(engine, s.name, s.sql, only=(SUSPENDED, NEEDS_REBUILD))


def rebuild(engine: Engine, name: str, sql: str, only: tuple[str, ...] | None = None) -> int | None:
    """Put new versions of a view, and of those of its cadence that read it, beside them, all to be filled together.

    Args:
        engine: the connection.
        name: the view.
        sql: the statement, for the log.
        only: do so only where its state is one of these.

    Returns:
        The id of the view's new version, None where there is nothing to do.
    """
    made: list[int] = []
    gone: list[tuple[Catalog, ViewDefinition]] = []

    def change(before: Catalog) -> tuple[Catalog, tuple[int, ...]] | None:
        view = before.view(name)
        if only is not None and view.state not in only:
            return None
        after, new_ids = rebuilt(engine, before, view)
        made[:] = [new_ids[view.id]]
        gone[:] = _gone(before, after)
        return after, ()

    engine.change_catalog(change, sql)
    _remove(engine, gone)
    return made[0] if made else None


ChangeCatalog = Callable[[Catalog], "tuple[Catalog, tuple[int, ...]] | None"]
AlsoChange = Callable[[WriteTransaction], None]


def change_catalog(engine: Engine, change: ChangeCatalog, sql: str, also: AlsoChange | None = None) -> None:
    """Apply ``change`` to the catalog in one transaction, with what ``also`` does; None leaves all as it is."""
    with engine.store.base.write() as txn:
        before = read_catalog(txn)
        outcome = change(before)
        if outcome is None:
            return
        after, table_ids = outcome
        write_catalog(txn, before, after, sql, table_ids)
        for table_id in table_ids:
            if table_id in after.tables:
                make_place(txn, table_id)
        if also is not None:
            also(txn)
        failpoint("catalog:before-commit")
    failpoint("catalog:after")
