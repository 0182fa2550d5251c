"""ALTER TABLE: the columns of a table change, and no row is rewritten (``zset.versions``).

Views know columns by number, under the names of when they were made, so another name concerns none of them. A column
that a view's plan needs is not dropped. Whether it does is found by planning: every view on the table must come out as
it is. Those that a wider type makes different are filled anew beside what they show (``database.versions``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from viewkeeper.database.definitions import default_of, default_text
from viewkeeper.database.versions import retyped, with_present_types
from viewkeeper.errors import InputError, ViewkeeperError
from viewkeeper.plan.fingerprint import fingerprint
from viewkeeper.statements import model as st
from viewkeeper.store.model import Table
from viewkeeper.store.values import place_of, unknown_column
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import NEEDS_REBUILD, SUSPENDED, ViewDefinition
from viewkeeper.views.planning import Planner
from viewkeeper.zset.schema import Column, Schema, SqlType
from viewkeeper.zset.versions import StoredColumn, can_widen, widened_value

if TYPE_CHECKING:
    from viewkeeper.database.engine import Engine

_ANEW = "fill a new table by INSERT INTO … SELECT …"

Change = tuple[Catalog, tuple[int, ...]]


def add_columns(engine: Engine, s: st.AlterTableAddColumn) -> None:
    """ALTER TABLE ADD COLUMN: old rows show the DEFAULT."""
    defaults = tuple(default_of(engine, c) for c in s.columns)

    def change(before: Catalog) -> Change:
        table = before.table(s.table)
        for column, default in zip(s.columns, defaults, strict=True):
            _refuse_present(table, column.name)
            if not column.nullable and default is None:
                message = f"Column {column.name!r} is NOT NULL, so rows that are there need a value: give a DEFAULT."
                raise InputError("DEFAULT_REQUIRED", message, {"name": column.name})
        columns = table.schema.columns + tuple(Column(c.name, c.type, c.nullable) for c in s.columns)
        added = tuple(StoredColumn(table.next_number + i, c.type) for i, c in enumerate(s.columns))
        wider = replace(
            table,
            schema=Schema(columns),
            defaults=table.defaults + defaults,
            versions=(*table.versions, table.versions[-1] + added),
            added_defaults=table.added_defaults + defaults,
            comments=_comments(table) + tuple(c.comment for c in s.columns),
            default_texts=_default_texts(table) + tuple(map(default_text, s.columns)),
        )
        return before.with_table(wider), (table.id,)

    engine.change_catalog(change, s.sql)


def rename_column(engine: Engine, s: st.AlterTableRenameColumn) -> None:
    """ALTER TABLE RENAME COLUMN: views go on under the old name, which is theirs alone."""

    def change(before: Catalog) -> Change:
        table = before.table(s.table)
        position = _position(table, s.column)
        if s.new_name.lower() != s.column.lower():
            _refuse_present(table, s.new_name)
        names = list(table.schema.names)
        names[position] = s.new_name
        return before.with_table(replace(table, schema=table.schema.renamed(tuple(names)))), (table.id,)

    engine.change_catalog(change, s.sql)


def drop_columns(engine: Engine, s: st.AlterTableDropColumns) -> None:
    """ALTER TABLE DROP COLUMN: refused while a view needs it."""

    def change(before: Catalog) -> Change:
        after, table = before, before.table(s.table)
        for name in s.columns:
            after = _without_column(after, after.tables[table.id], name)
        return after, (table.id,)

    engine.change_catalog(change, s.sql)


def _without_column(before: Catalog, table: Table, name: str) -> Catalog:
    position = _position(table, name)
    name = table.schema.names[position]
    if position in table.key:
        message = f"Column {name!r} belongs to the primary key of table {table.name!r} and cannot be dropped: {_ANEW}."
        raise InputError("KEY_COLUMN_CANNOT_CHANGE", message, {"table": table.name, "column": name})
    kept = tuple(i for i in range(len(table.schema)) if i != position)
    comments = _comments(table)
    narrower = replace(
        table,
        schema=table.schema.select(kept),
        key=tuple(kept.index(i) for i in table.key),
        defaults=tuple(table.defaults[i] for i in kept),
        versions=(*table.versions, tuple(table.versions[-1][i] for i in kept)),
        added_defaults=tuple(table.added_defaults[i] for i in kept),
        comments=tuple(comments[i] for i in kept),
        default_texts=tuple(_default_texts(table)[i] for i in kept),
    )
    after = before.with_table(narrower)
    users = [view.name for view in before.dependants(table.id) if not _is_same(before, after, view)]
    if users:
        names = ", ".join(dict.fromkeys(users))
        message = f"Views use column {name!r} of table {table.name!r}: {names}. Drop them, or give them another query."
        raise InputError("COLUMN_IN_USE", message, {"table": table.name, "column": name, "views": users})
    return after


def widen_column(engine: Engine, s: st.AlterTableWidenColumn) -> tuple[int, ...]:
    """ALTER TABLE ALTER COLUMN TYPE: views that it makes different get new versions, to be filled.

    Until then they go on under the old type; a value that is too large for it makes them FAILED.

    Returns:
        The ids of the new versions.
    """
    made: list[int] = []

    def change(before: Catalog) -> Change:
        table = before.table(s.table)
        after = before.with_table(_widened(table, _position(table, s.column), s.type))
        dependants = before.dependants(table.id)
        views = [v for v in dependants if v.state not in (SUSPENDED, NEEDS_REBUILD)]
        present = after
        for view in views:
            present = present.with_view(with_present_types(present, view))
        changed = [view for view in views if not _is_same(before, present, view)]
        # What a view keeps is named by all that is computed below it: who reads a new version is filled anew, too.
        touched = {v.id for view in changed for v in (view, *before.dependants(view.id))}
        different = [view for view in views if view.id in touched]
        for view in views:
            if view not in different:
                # It reads nothing of the column, so it may know the new type at once: Spark reads whole rows.
                after = after.with_view(present.views[view.id])
        for view in dependants:
            if view not in views:
                # What reads the column keeps the type of its rows until RESUME fills it anew.
                aware = after.with_view(with_present_types(after, view))
                after = aware if _is_same(before, aware, view) else after
        after, new_ids = retyped(engine, after, different)
        made[:] = new_ids.values()
        return after, (table.id,)

    engine.change_catalog(change, s.sql)
    return tuple(made)


def _widened(table: Table, position: int, wanted: SqlType) -> Table:
    column = table.schema.columns[position]
    place = f"Column {column.name!r} of table {table.name!r}"
    details = {"table": table.name, "column": column.name}
    if position in table.key:
        raise InputError(
            "KEY_COLUMN_CANNOT_CHANGE", f"{place} belongs to the primary key, so its type stays: {_ANEW}.", details
        )
    if not can_widen(column.type, wanted):
        message = (
            f"{place} is {column.type} and cannot become {wanted}: only a type that holds all its values can take its"
            " place (integers, DECIMAL and DOUBLE of more digits; FLOAT to DOUBLE; DATE to TIMESTAMP_NTZ)."
        )
        raise InputError("TYPE_NOT_WIDER", message, details)

    def with_value(values: tuple[object, ...]) -> tuple[object, ...]:
        value = widened_value(values[position], column.type, wanted)
        return (*values[:position], value, *values[position + 1 :])

    columns, layout = list(table.schema.columns), list(table.versions[-1])
    columns[position] = replace(column, type=wanted)
    layout[position] = replace(layout[position], type=wanted)
    return replace(
        table,
        schema=Schema(tuple(columns)),
        versions=(*table.versions, tuple(layout)),
        defaults=with_value(table.defaults),
        added_defaults=with_value(table.added_defaults),
    )


def _is_same(before: Catalog, after: Catalog, view: ViewDefinition) -> bool:
    """Return whether ``view`` computes after a change what it computed before."""
    try:
        was = Planner().plan(before, view)
        now = Planner().plan(after, after.views[view.id])
    except ViewkeeperError:
        # Its SQL names what is gone, or asks Spark for a type anew.
        return False
    return fingerprint(was.root) == fingerprint(now.root) and was.root.schema == now.root.schema


def _position(table: Table, name: str) -> int:
    position = table.schema.index(name)
    if position < 0:
        raise unknown_column(name, table.schema.names, place_of(table))
    return position


def _refuse_present(table: Table, name: str) -> None:
    if table.schema.index(name) >= 0:
        message = f"Table {table.name!r} already has a column {name!r}: give the new one another name."
        raise InputError("COLUMN_EXISTS", message, {"name": name})


def _comments(table: Table) -> tuple[str | None, ...]:
    return table.comments or (None,) * len(table.schema)


def _default_texts(table: Table) -> tuple[str | None, ...]:
    return table.default_texts or (None,) * len(table.schema)
