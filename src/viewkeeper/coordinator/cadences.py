"""Which views refresh together, and what they read of others."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.pipeline.records import BUILD_PREFIX, read_view
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, ViewDefinition


def consumer(cadence: str) -> str:
    """Return the name under which ``cadence`` holds the log."""
    return f"cadence/{cadence}"


def is_build(cadence: str) -> bool:
    """Return whether views are filled in ``cadence``."""
    return cadence.startswith(BUILD_PREFIX)


def is_joining(catalog: Catalog, txn: ReadTransaction, cadence: str) -> bool:
    """Return whether a view's state has joined ``cadence`` and the catalog does not say so yet."""
    filling = (v for v in catalog.views.values() if v.state == BUILDING)
    records = (read_view(txn, view.id) for view in filling if view.cadence != cadence)
    return any(r is not None and r.state.startswith(f"{cadence}/") for r in records)


def members_of(catalog: Catalog, cadence: str) -> tuple[ViewDefinition, ...]:
    """Return the views that refresh with ``cadence``."""
    live = (v for v in catalog.views.values() if v.cadence == cadence and v.state in (ACTIVE, BUILDING))
    return tuple(sorted(live, key=lambda v: v.id))


def views_elsewhere(catalog: Catalog, views: Iterable[ViewDefinition], cadence: str) -> list[ViewDefinition]:
    """Return the ACTIVE views of other cadences that ``views`` of ``cadence`` read, each once."""
    found = {
        below.id: below
        for view in views
        for below in _views_below(catalog, view)
        if below.cadence != cadence and below.state == ACTIVE
    }
    return list(found.values())


def _views_below(catalog: Catalog, view: ViewDefinition) -> tuple[ViewDefinition, ...]:
    found: dict[int, ViewDefinition] = {}
    waiting = [i for i in view.read_ids if i in catalog.views]
    while waiting:
        below = catalog.views[waiting.pop()]
        if below.id not in found:
            found[below.id] = below
            waiting += [i for i in below.read_ids if i in catalog.views]
    return tuple(found.values())
