"""What the tables and views of a script hold, as plain dictionaries: the reference that the store is compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from viewkeeper.testing.evolution import (
    AddColumn,
    DropColumn,
    MoveRow,
    RenameColumn,
    TableChange,
    Truncate,
    WidenColumn,
    widened,
)
from viewkeeper.testing.scripts import AlterView, Operation, Row, Script, ScriptTable, ScriptView, comparable

# The columns of a table, each by its number, which is never used again.
Names = Mapping[int, str]


class TableModel:
    """Follows a script: rows, columns and queries as they are after the steps that it was told of.

    Args:
        script: its tables.
    """

    def __init__(self, script: Script) -> None:
        self.tables = {table.name: table for table in script.tables}
        self.views: dict[str, ScriptView] = {}
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in self.tables}
        self.has_renamed = False
        self._numbers = {name: list(range(len(table.columns))) for name, table in self.tables.items()}
        self._next = {name: len(numbers) for name, numbers in self._numbers.items()}
        self._known: dict[str, dict[str, Names]] = {}

    # ---- rows ----

    def key_of(self, table: str, values: Row) -> tuple[Any, ...]:
        """Return the key of a row in a form in which equal keys are equal: -0.0 is 0.0 and NaN is NaN."""
        return tuple(comparable(values[name]) for name in self.tables[table].key)

    def apply(self, operation: Operation) -> bool:
        """Apply ``operation``; False where it updates a row that is not there."""
        rows = self.rows[operation.table]
        key = self.key_of(operation.table, operation.key or operation.values)
        if operation.kind == "put":
            rows[key] = dict(operation.values)
        elif operation.kind == "delete":
            rows.pop(key, None)
        elif key not in rows:
            return False
        else:
            rows[key] = {**rows[key], **operation.values}
        return True

    # ---- views ----

    def define(self, view: ScriptView) -> None:
        """Note a view that is created, or that gets another query: it knows the columns that there are now."""
        self.views[view.name] = view
        self._known[view.name] = {name: self._names(name) for name in self.tables}

    def alter(self, step: AlterView) -> None:
        """Note another query of a view."""
        self.define(step.applied(self.views[step.view]))

    def known_names(self, view: str, table: str) -> tuple[tuple[str, str], ...]:
        """Return the columns of a table that a view knows, each as it is called now and by the view."""
        known, now = self._known[view][table], self._names(table)
        return tuple((now[number], known[number]) for number in now if number in known)

    def readers_of(self, view: str) -> list[str]:
        """Return the views that read a view, themselves or through others."""
        found = [view]
        for other in self.views.values():
            if other.name not in found and any(re.search(rf"\b{name}\b", other.sql) for name in found):
                found.append(other.name)
        return found[1:]

    def users_of(self, table: str, column: str) -> list[str]:
        """Return the views whose queries name a column of a table."""
        found = []
        for view in self.views.values():
            known = dict(self.known_names(view.name, table)).get(column)
            aliases = re.findall(rf"\b{table} (s\d+)\b", view.sql)
            if known is not None and any(re.search(rf"\b{alias}\.{known}\b", view.sql) for alias in aliases):
                found.append(view.name)
        return found

    # ---- tables ----

    def refusal(self, change: TableChange) -> str | None:
        """Return the code of the error with which ``change`` is refused, None where it is not."""
        if isinstance(change, DropColumn) and self.users_of(change.table, change.name):
            return "COLUMN_IN_USE"
        if isinstance(change, MoveRow):
            old, new = (tuple(map(comparable, key)) for key in (change.key, change.new_key))
            rows = self.rows[change.table]
            return "DUPLICATE_KEY" if old in rows and new != old and new in rows else None
        return None

    def change(self, change: TableChange) -> None:
        """Do a change that is not refused."""
        rows = self.rows[change.table]
        if isinstance(change, Truncate):
            rows.clear()
        elif isinstance(change, MoveRow):
            moved = rows.pop(tuple(map(comparable, change.key)), None)
            if moved is not None:
                moved |= zip(change.columns, change.new_key, strict=True)
                self.apply(Operation("put", change.table, moved))
        else:
            self._change_columns(self.tables[change.table], change)

    def _change_columns(self, table: ScriptTable, change: AddColumn | RenameColumn | DropColumn | WidenColumn) -> None:
        columns = {name: (name, kind, nullable) for name, kind, nullable in table.columns}
        rows, numbers = self.rows[table.name], self._numbers[table.name]
        key = table.key
        if isinstance(change, AddColumn):
            columns[change.name] = (change.name, change.kind, change.nullable)
            numbers.append(self._next[table.name])
            self._next[table.name] += 1
            for row in rows.values():
                row[change.name] = change.default
        elif isinstance(change, DropColumn):
            del numbers[list(columns).index(change.name)], columns[change.name]
            for row in rows.values():
                del row[change.name]
        elif isinstance(change, RenameColumn):
            self.has_renamed = True
            columns[change.name] = (change.new_name, *columns[change.name][1:])
            key = tuple(change.new_name if name == change.name else name for name in key)
            for at, row in rows.items():
                rows[at] = {change.new_name if name == change.name else name: row[name] for name in row}
        else:
            columns[change.name] = (change.name, change.kind, columns[change.name][2])
            for row in rows.values():
                row[change.name] = widened(row[change.name], change.kind)
        self.tables[table.name] = replace(table, columns=tuple(columns.values()), key=key)

    def _names(self, table: str) -> Names:
        return dict(zip(self._numbers[table], (name for name, _, _ in self.tables[table].columns), strict=True))
