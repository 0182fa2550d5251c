"""The quick way of a single get: everything that a name means, worked out once.

It skips the look at the catalog, so it may only ever say "here is the row". Where it finds none, or the key has an
unusual form, the caller takes the full way, which looks at the catalog again. A dropped or replaced view has lost its
state table, so a quick get of it finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.errors import InputError
from viewkeeper.store.key_value import Space
from viewkeeper.store.model import Table
from viewkeeper.store.tables import format_of
from viewkeeper.views.reads import StoredView
from viewkeeper.zset.keys import KeyCodec
from viewkeeper.zset.schema import SqlType

QuickGet = Callable[[object], "dict[str, Any] | None"]


def quick_get(base: Space, views: Space, found: Table | StoredView) -> QuickGet | None:
    """Return the quick get of a table or view; None where its key needs the full way.

    Args:
        base: the base space.
        views: the views space.
        found: the table or view.
    """
    if isinstance(found, Table):
        format_ = format_of(found)
        return _getter(base, format_.database, found.schema.names, found.key, found.schema.types, format_.decode_row)
    visible = found.schema.names[: found.visible]
    if any(i >= found.visible for i in found.key):
        return None
    return _getter(views, found.state, visible, found.key, found.schema.types, found.decode_row)


def _getter(
    space: Space,
    database: str,
    names: tuple[str, ...],
    key: tuple[int, ...],
    types: tuple[SqlType, ...],
    decode: Callable[[bytes], tuple[Any, ...]],
) -> QuickGet | None:
    key_types = tuple(types[i] for i in key)
    if not key or any(t.name == "TIMESTAMP" or t.is_nested for t in key_types):
        return None  # a naive datetime is read in the session's zone; a key of no columns has its own place
    encode = KeyCodec(key_types).encode_values
    is_single = len(key) == 1
    read = space.read

    def get(value: object) -> dict[str, Any] | None:
        kind = type(value)
        if kind is dict or (is_single and (kind is tuple or kind is list)):
            return None
        try:
            encoded = encode((value,) if is_single else value)  # type: ignore[arg-type]
        except (InputError, TypeError):
            return None
        with read() as txn:
            raw = txn.get(database, encoded)
        return None if raw is None else dict(zip(names, decode(raw), strict=False))

    return get
