"""Steps drawn for a script: commits of all sizes, refreshes of all or some views, views made and altered, changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.testing.choices import Choices
from viewkeeper.testing.drawn_views import ViewDrawer
from viewkeeper.testing.evolution import (
    WIDER,
    AddColumn,
    DropColumn,
    MoveRow,
    RenameColumn,
    TableChange,
    Truncate,
    WidenColumn,
)
from viewkeeper.testing.model import TableModel
from viewkeeper.testing.pools import NESTED_TYPES, TYPES, Pool, wider_pool
from viewkeeper.testing.scripts import Commit, Create, Operation, Refresh, Row, ScriptTable, Step

_COLUMN_NAMES = tuple(f"v{number}" for number in range(8))


class StepDrawer:
    """Draws the steps of a script.

    Args:
        choices: makes the choices.
        model: the tables and views; told of each step.
        views: draws the views.
        pools: the values, by type.
    """

    def __init__(self, choices: Choices, model: TableModel, views: ViewDrawer, pools: dict[str, Pool]) -> None:
        self._choices = choices
        self._model = model
        self._views = views
        self._pools = pools
        self._types = tuple(pools)
        self._waiting = 0

    def all(self) -> tuple[Step, ...]:
        """Return the steps; the last one refreshes everything."""
        choices = self._choices
        self._waiting = choices.pick((1, 2, 3))
        steps: list[Step] = []
        if not choices.chance(50):
            steps += self._create(self._waiting)
        steps.append(self._commit(2, 12))
        for round_ in choices.many(lambda _: self._round(), 1, 5):
            steps += round_
        steps += self._create(self._waiting)
        copied = self._views.copy() if choices.chance(30) else None
        if copied is not None:
            steps.append(Create(copied.name))
        return (*steps, Refresh())

    def _create(self, number: int) -> list[Step]:
        number = min(number, self._waiting)
        self._waiting -= number
        return [Create(self._views.create().name) for _ in range(number)]

    def _round(self) -> list[Step]:
        """Draw what comes up to a refresh, and that."""
        choices = self._choices
        steps = self._create(int(choices.chance(50)))
        steps += choices.many(lambda _: self._step(), 0, 3)
        created = list(self._model.views)
        some = choices.pick(created) if created and choices.chance(25) else None
        return [*steps, Refresh((some,) if some else ())]

    def _step(self) -> Step:
        """Draw a commit, now and then what changes a table or a view."""
        if not self._choices.chance(35):
            return self._commit(1, 6)
        if self._model.views and self._choices.chance(15):
            altered = self._views.alter()
            if altered is not None:
                self._model.alter(altered)
                return altered
        change = self._change(self._model.tables[self._choices.pick(list(self._model.tables))])
        if change is None:
            return self._commit(1, 6)
        if self._model.refusal(change) is None:
            self._model.change(change)
        return change

    # ---- changes of tables ----

    def _change(self, table: ScriptTable) -> TableChange | None:
        draws: tuple[Callable[[ScriptTable], TableChange | None], ...] = (
            lambda table: Truncate(table.name),
            self._add_column,
            self._move_row,
            self._widen_column,
            self._rename_column,
            self._drop_column,
        )
        return self._choices.pick(draws)(table)

    def _add_column(self, table: ScriptTable) -> AddColumn:
        kind, nullable = self._choices.pick(self._types), self._choices.chance(60)
        if kind in NESTED_TYPES:
            return AddColumn(table.name, self._free_name(table), kind, nullable=True)
        default = None if nullable and self._choices.chance(50) else self._value(kind, nullable=False)
        return AddColumn(table.name, self._free_name(table), kind, nullable, default)

    def _move_row(self, table: ScriptTable) -> MoveRow | None:
        rows = list(self._model.rows[table.name].values())
        if not rows:
            return None
        row = self._choices.pick(rows)
        kinds = {name: kind for name, kind, _ in table.columns}
        new_key = tuple(self._choices.pick(self._pools[kinds[name]].keys) for name in table.key)
        return MoveRow(table.name, table.key, tuple(row[name] for name in table.key), new_key)

    def _widen_column(self, table: ScriptTable) -> WidenColumn | None:
        """A column of any wider type; of another class of types only where no view's query names it."""
        usable = [
            (name, kind, wider)
            for name, kind, _ in table.columns
            for wider in WIDER.get(kind, ())
            if name not in table.key
            and (TYPES[kind][0] == TYPES[wider][0] or not self._model.users_of(table.name, name))
        ]
        if not usable:
            return None
        name, kind, wider = self._choices.pick(usable)
        if wider not in self._pools:
            self._pools[wider] = wider_pool(self._pools[kind], wider)
        return WidenColumn(table.name, name, wider)

    def _rename_column(self, table: ScriptTable) -> RenameColumn:
        name, _, _ = self._choices.pick(table.columns)
        return RenameColumn(table.name, name, self._free_name(table))

    def _drop_column(self, table: ScriptTable) -> DropColumn | None:
        """A column that is used, or not; never the last one outside the key."""
        others = [name for name, _, _ in table.columns if name not in table.key]
        # What USING and NATURAL join by is used without an alias, or without being named.
        by_name = any(word in view.sql for view in self._model.views.values() for word in (" USING (", " NATURAL "))
        return DropColumn(table.name, self._choices.pick(others)) if len(others) > 1 and not by_name else None

    def _free_name(self, table: ScriptTable) -> str:
        """Return a name that no column has now; one had it before, perhaps."""
        taken = {name for name, _, _ in table.columns}
        return self._choices.pick([name for name in _COLUMN_NAMES if name not in taken][:2])

    # ---- transactions ----

    def _commit(self, least: int, most: int) -> Commit:
        drawn = self._choices.many(lambda _: self._operation(), least, most)
        return Commit(tuple(operation for operation in drawn if operation is not None))

    def _operation(self) -> Operation | None:
        """Draw a write; None where it would update a row that is not there."""
        choices = self._choices
        table = self._model.tables[choices.pick(list(self._model.tables))]
        kind = choices.pick(("put", "put", "put", "update", "update", "delete", "delete", "same"))
        there = list(self._model.rows[table.name].values())
        known = choices.pick(there) if there and kind != "put" else None
        operation = self._write(table, kind, known)
        return operation if self._model.apply(operation) else None

    def _write(self, table: ScriptTable, kind: str, known: Row | None) -> Operation:
        choices = self._choices
        if kind == "same" and known is not None:
            return Operation("put", table.name, dict(known))
        if known is not None and not choices.chance(10):
            at = {name: known[name] for name in table.key}
        else:
            at = {name: choices.pick(self._pools[k].keys) for name, k, _ in table.columns if name in table.key}
        if kind == "delete":
            return Operation("delete", table.name, at)
        others = [column for column in table.columns if column[0] not in table.key]
        if kind == "update" and known is not None:
            changed = choices.some(others, 1, 2)
            return Operation("update", table.name, {n: self._value(k, null) for n, k, null in changed}, at)
        return Operation("put", table.name, {**at, **{n: self._value(k, null) for n, k, null in others}})

    def _value(self, kind: str, nullable: bool) -> Any:
        if nullable and self._choices.chance(17):
            return None
        return self._choices.pick(self._pools[kind].values)
