"""The quick way of a single get: everything that a name means, worked out once.

It skips the catalog, so it may only ever say "here is the row". Where it finds none, or the key has an unusual form,
the caller takes the full way. What the name means may have changed since: a table's catalog version is looked at in the
moment that its row is read at, once for each commit; a dropped or replaced view has lost its state table; a renamed one
keeps it, so renaming notes the catalog's version beside the views' records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.errors import InputError
from viewkeeper.pipeline.records import names_version
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import catalog_version
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.keys import Encode, KeyCodec, value_encoder
from viewkeeper.zset.schema import SqlType

QuickGet = Callable[[object], "dict[str, Any] | None"]


def quick_get(base: Space, views: Space, find: Callable[[], tuple[Table | StoredView, int]]) -> QuickGet | None:
    """Return the quick get of a table or view; None where its key needs the full way.

    Args:
        base: the base space.
        views: the views space.
        find: gives the table or view, and the version of the catalog that says so.
    """
    with views.read() as txn:
        noted = names_version(txn)  # before the name is looked up, so that no renaming slips between
    found, version = find()
    if isinstance(found, Table):
        format_ = format_of(found)
        names, types = found.schema.names, found.schema.types

        def is_same_catalog(txn: ReadTransaction) -> bool:
            return catalog_version(txn) == version

        return _getter(base, is_same_catalog, format_.database, names, found.key, types, format_.decode_row)
    visible = found.schema.names[: found.visible]
    if any(i >= found.visible for i in found.key):
        return None

    def is_same_name(txn: ReadTransaction) -> bool:
        return names_version(txn) == noted

    return _getter(views, is_same_name, found.state, visible, found.key, found.schema.types, found.decode_row)


def _getter(
    space: Space,
    is_current: Callable[[ReadTransaction], bool],
    database: str,
    names: tuple[str, ...],
    key: tuple[int, ...],
    types: tuple[SqlType, ...],
    decode: Callable[[bytes], tuple[Any, ...]],
) -> QuickGet | None:
    key_types = tuple(types[i] for i in key)
    if not key or any(t.name == "TIMESTAMP" or t.is_nested for t in key_types):
        return None  # a naive datetime is read in the session's zone; a key of no columns has its own place
    is_single = len(key) == 1
    encode: Encode = value_encoder(key_types[0]) if is_single else KeyCodec(key_types).encode_values
    sequences = (tuple, list)
    read = space.point_get(database, is_current)

    def get(value: object) -> dict[str, Any] | None:
        if (type(value) in sequences) is is_single or value is None:
            return None
        try:
            encoded = encode(value)
        except (InputError, TypeError):
            return None
        raw = read(encoded)
        return None if raw is None else dict(zip(names, decode(raw), strict=False))

    return get
