"""The catalog: all tables and views at one version, kept as one value of the base space.

It is small and read whole. Each change writes the next version in the same transaction as a DDL record in the log, so
an epoch can tell that the world it was planned in still stands.
"""

from __future__ import annotations

import difflib
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import msgspec

from viewkeeper.errors import ConflictError, InputError, shown
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.store.model import Table
from viewkeeper.store.transactions import log_ddl
from viewkeeper.views.definition import NEEDS_REBUILD, ViewDefinition
from viewkeeper.zset.rows import RowCodec
from viewkeeper.zset.schema import Schema
from viewkeeper.zset.versions import Layout

DATABASE = "catalog"
KEY = b"catalog"
_TABLES_KEPT = 512


@dataclass(frozen=True)
class _StoredTable:
    """A table as it is written: default values as the bytes of a row, since JSON has no dates or decimals."""

    id: int
    name: str
    schema: Schema
    key: tuple[int, ...]
    defaults: str
    versions: tuple[Layout, ...]
    added_defaults: str
    comments: tuple[str | None, ...]
    default_texts: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class _Stored:
    version: int
    next_id: int
    tables: tuple[msgspec.Raw, ...]
    views: tuple[ViewDefinition, ...]
    functions: tuple[tuple[int, UserFunction], ...] = ()


@dataclass(frozen=True)
class Catalog:
    """Tables and views by id.

    Args:
        version: grows with each change.
        next_id: the id that the next table or view gets.
        tables: by id.
        views: by id; while a new version of a view is built, both stand here.
        functions: users' functions by id; a replaced one stays while views call it. Of several of one name the newest
            is what the name means.
    """

    version: int = 0
    next_id: int = 1
    tables: Mapping[int, Table] = field(default_factory=dict)
    views: Mapping[int, ViewDefinition] = field(default_factory=dict)
    functions: Mapping[int, UserFunction] = field(default_factory=dict)

    @cached_property
    def _by_name(self) -> dict[str, Table | ViewDefinition]:
        known: dict[str, Table | ViewDefinition] = {t.name.lower(): t for t in self.tables.values()}
        known.update({v.name.lower(): v for v in self.views.values() if v.replaces is None})
        return known

    def find(self, name: str) -> Table | ViewDefinition | None:
        """Return the table or view called ``name``, in any case.

        Raises:
            InputError: ``WRONG_TYPE`` for a name that is no text.
        """
        if not isinstance(name, str):
            raise InputError("WRONG_TYPE", f"The name of a table or view is a str, not {shown(name)}.")
        return self._by_name.get(name.lower())

    def relation(self, name: str) -> Table | ViewDefinition:
        """Return the table or view ``name``.

        Raises:
            InputError: ``TABLE_OR_VIEW_NOT_FOUND``.
        """
        found = self.find(name)
        if found is None:
            known = self._suggested(name, [thing.name for thing in self._by_name.values()])
            raise InputError("TABLE_OR_VIEW_NOT_FOUND", f"There is no table or view {name!r}. {known}", {"name": name})
        return found

    def table(self, name: str) -> Table:
        """Return the base table ``name``.

        Raises:
            InputError: ``TABLE_NOT_FOUND``, or ``NOT_A_TABLE`` for a view.
        """
        found = self.find(name)
        if isinstance(found, Table):
            return found
        if found is not None:
            raise InputError(
                "NOT_A_TABLE",
                f"{found.name!r} is a view: write to the tables that it reads; it follows.",
                {"name": name},
            )
        message = f"There is no table {name!r}. {self._known(name, self.tables)}"
        raise InputError("TABLE_NOT_FOUND", message, {"name": name})

    def view(self, name: str) -> ViewDefinition:
        """Return the view ``name``.

        Raises:
            InputError: ``VIEW_NOT_FOUND``, or ``NOT_A_VIEW`` for a table.
        """
        found = self.find(name)
        if isinstance(found, ViewDefinition):
            return found
        if found is not None:
            message = f"{found.name!r} is a base table, not a materialised view: name a view, or use TABLE statements."
            raise InputError("NOT_A_VIEW", message, {"name": name})
        message = f"There is no materialised view {name!r}. {self._known(name, self.views)}"
        raise InputError("VIEW_NOT_FOUND", message, {"name": name})

    def _known(self, name: str, things: Mapping[int, Table] | Mapping[int, ViewDefinition]) -> str:
        return self._suggested(name, [thing.name for thing in things.values()])

    @staticmethod
    def _suggested(name: str, known_names: Iterable[str]) -> str:
        names = sorted(known_names)
        near = difflib.get_close_matches(name.lower(), [known.lower() for known in names], n=1)
        if near:
            return f"Did you mean {near[0]!r}?"
        return f"There are: {', '.join(names[:20])}." if names else "There are none yet: create one."

    def dependants(self, id_: int) -> tuple[ViewDefinition, ...]:
        """Return the views that read ``id_``, directly or through others, nearest first."""
        found: dict[int, ViewDefinition] = {}
        waiting = [id_]
        while waiting:
            at = waiting.pop(0)
            for view in self.views.values():
                if at in view.read_ids and view.id not in found:
                    found[view.id] = view
                    waiting.append(view.id)
        return tuple(found.values())

    def with_versions(self, views: Iterable[ViewDefinition]) -> tuple[ViewDefinition, ...]:
        """Return ``views`` and, behind them, the versions that are being filled to replace one of them."""
        found = {view.id: view for view in views}
        return (*found.values(), *(v for v in self.views.values() if v.replaces in found and v.id not in found))

    def base_tables_of(self, view: ViewDefinition) -> tuple[int, ...]:
        """Return ids of the base tables that ``view`` rests on."""
        found: dict[int, None] = {}
        for id_ in view.read_ids:
            if id_ in self.tables:
                found[id_] = None
            elif id_ in self.views:
                found.update(dict.fromkeys(self.base_tables_of(self.views[id_])))
        return tuple(found)

    @cached_property
    def function_ids(self) -> dict[str, int]:
        """The functions that can be called, by their names in lower case."""
        return {self.functions[id_].name.lower(): id_ for id_ in sorted(self.functions)}

    @cached_property
    def functions_by_name(self) -> dict[str, UserFunction]:
        """The functions that can be called, by their names in lower case."""
        return {name: self.functions[id_] for name, id_ in self.function_ids.items()}

    def with_function(self, function: UserFunction) -> Catalog:
        """Return the catalog in which the name of ``function`` means it."""
        functions = {**self.functions, self.next_id: function}
        return replace(self, functions=functions, next_id=self.next_id + 1)

    def with_functions_in_use(self) -> Catalog:
        """Return the catalog without replaced functions that no view calls any more."""
        needed = {id_ for view in self.views.values() for _, id_ in view.functions} | {*self.function_ids.values()}
        return replace(self, functions={i: f for i, f in self.functions.items() if i in needed})

    def callers(self, name: str) -> tuple[ViewDefinition, ...]:
        """Return the views that call a function by ``name`` in their own queries."""
        return tuple(v for v in self.views.values() if any(called == name.lower() for called, _ in v.functions))

    def with_table(self, table: Table) -> Catalog:
        """Return the catalog with ``table`` added or replaced."""
        return replace(self, tables={**self.tables, table.id: table}, next_id=max(self.next_id, table.id + 1))

    def with_view(self, view: ViewDefinition) -> Catalog:
        """Return the catalog with ``view`` added or replaced."""
        return replace(self, views={**self.views, view.id: view}, next_id=max(self.next_id, view.id + 1))

    def without(self, *ids: int) -> Catalog:
        """Return the catalog without the tables and views ``ids``."""
        tables = {i: t for i, t in self.tables.items() if i not in ids}
        return replace(self, tables=tables, views={i: v for i, v in self.views.items() if i not in ids})

    def maintained(self) -> tuple[ViewDefinition, ...]:
        """Return the views whose state is kept up to date: all but those that need a rebuild."""
        return tuple(v for v in self.views.values() if v.state != NEEDS_REBUILD)


def read_catalog(txn: ReadTransaction) -> Catalog:
    """Return the catalog as ``txn`` of the base space sees it."""
    raw = txn.get(DATABASE, KEY)
    if raw is None:
        return Catalog()
    stored = msgspec.json.decode(raw, type=_Stored)
    tables = {table.id: table for table in map(_table_of, map(bytes, stored.tables))}
    views = {v.id: v for v in stored.views}
    return Catalog(stored.version, stored.next_id, tables, views, dict(stored.functions))


def catalog_version(txn: ReadTransaction) -> int:
    """Return only the version, cheaply."""
    raw = txn.get(DATABASE, b"version")
    return 0 if raw is None else int.from_bytes(raw, "big")


def write_catalog(
    txn: WriteTransaction, before: Catalog, after: Catalog, statement: str, table_ids: tuple[int, ...]
) -> Catalog:
    """Write the catalog's next version, with a DDL record in the log.

    Args:
        txn: a transaction of the base space.
        before: the catalog that ``after`` was derived from.
        after: what it becomes; its version is set here.
        statement: the SQL, for the log.
        table_ids: the base tables that the statement concerns: no epoch that reads them spans it.

    Raises:
        ConflictError: ``CATALOG_CHANGED``: somebody else changed the catalog meanwhile.
    """
    if catalog_version(txn) != before.version:
        raise ConflictError("CATALOG_CHANGED", "Another process changed tables or views meanwhile: run it again.")
    new = replace(after, version=before.version + 1)
    tables = tuple(map(_stored_of, new.tables.values()))
    functions = tuple(new.functions.items())
    stored = _Stored(new.version, new.next_id, tables, tuple(new.views.values()), functions)
    txn.put(DATABASE, KEY, msgspec.json.encode(stored))
    txn.put(DATABASE, b"version", new.version.to_bytes(8, "big"))
    log_ddl(txn, statement.encode(), table_ids)
    return new


def _stored_of(table: Table) -> msgspec.Raw:
    codec = RowCodec(table.schema.types)
    defaults, added = (b85encode(codec.encode_values(v)).decode() for v in (table.defaults, table.added_defaults))
    about = (table.comments, table.default_texts)
    form = _StoredTable(table.id, table.name, table.schema, table.key, defaults, table.versions, added, *about)
    return msgspec.Raw(msgspec.json.encode(form))


@lru_cache(maxsize=_TABLES_KEPT)
def _table_of(raw: bytes) -> Table:
    """Return a table as it was written: one object for all catalogs that have it so, as its codecs go by the object."""
    stored = msgspec.json.decode(raw, type=_StoredTable)
    codec = RowCodec(stored.schema.types)
    defaults, added = (codec.decode_values(b85decode(v)) for v in (stored.defaults, stored.added_defaults))
    about = (stored.comments, stored.default_texts)
    return Table(stored.id, stored.name, stored.schema, stored.key, defaults, stored.versions, added, *about)
