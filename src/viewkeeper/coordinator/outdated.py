"""Views whose state another version of Viewkeeper wrote: this one would look for it under other names, or misread it.

Such a view is NEEDS_REBUILD: it shows the rows that it has until RESUME has filled it anew. Views of its cadence that
read it would be ahead of it, so they wait with it; the others go on. A fill that is under way begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.coordinator.cadences import is_build, members_of
from viewkeeper.coordinator.core import Coordinator
from viewkeeper.pipeline.layouts import STATE_OUTDATED, has_outdated_fill, outdated_views
from viewkeeper.pipeline.records import read_cadences
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE

_WRITTEN = f"{STATE_OUTDATED}: another version of Viewkeeper wrote"


def reasons_by_view(coordinator: Coordinator, txn: ReadTransaction, catalog: Catalog) -> Mapping[int, str]:
    """Return why which ACTIVE views must be filled anew.

    Args:
        coordinator: compiles the views.
        txn: a transaction of the views space.
        catalog: tables and views.
    """
    found: dict[int, str] = {}
    live = [view for view in catalog.views.values() if view.state == ACTIVE]
    for cadence in dict.fromkeys(view.cadence for view in live):
        members = coordinator.members(catalog, cadence)
        outdated = () if members is None else outdated_views(txn, members.compilation)
        found |= dict.fromkeys(outdated, f"{_WRITTEN} its state")
        for id_ in outdated:
            for reader in catalog.dependants(id_):
                if reader in live and reader.cadence == cadence:
                    found.setdefault(reader.id, f"{_WRITTEN} the state of {catalog.views[id_].name!r}, which it reads")
    return found


def outdated_builds(coordinator: Coordinator, txn: ReadTransaction, catalog: Catalog) -> list[str]:
    """Return the build cadences that have been filled, in part at least, by another version of Viewkeeper."""
    found = []
    for record in read_cadences(txn):
        if is_build(record.name) and members_of(catalog, record.name):
            members = coordinator.members(catalog, record.name)
            if members is not None and has_outdated_fill(txn, record, members.compilation):
                found.append(record.name)
    return found
