"""Which cadence new views go to once they are filled, and with which others they go there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.coordinator.cadences import members_of
from viewkeeper.coordinator.core import Coordinator
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, ViewDefinition


def linked_builds(catalog: Catalog, cadence: str) -> tuple[str, ...]:
    """Return the build cadences whose views read each other, ``cadence`` among them, those below first."""
    filling = [view for view in catalog.views.values() if view.state == BUILDING]
    reads = {view.cadence: set[str]() for view in filling}
    for view in filling:
        below = {catalog.views[i].cadence for i in view.read_ids if i in catalog.views}
        reads[view.cadence] |= (below | _changing_below(catalog, view)) & set(reads)
    found, waiting = {cadence}, [cadence]
    while waiting:
        at = waiting.pop()
        near = reads.get(at, set()) | {other for other, below in reads.items() if at in below}
        waiting += near - found
        found |= near
    return tuple(_below_first(reads, found))


def _changing_below(catalog: Catalog, version: ViewDefinition) -> set[str]:
    """Return in which build cadences other queries are filled of what the version that ``version`` replaces reads.

    That one cannot go on behind them.
    """
    before = None if version.replaces is None else catalog.views.get(version.replaces)
    if before is None:
        return set()
    pairs = ((catalog.views[i], v) for i in before.read_ids for v in catalog.views.values() if v.replaces == i)
    return {newer.cadence for older, newer in pairs if not is_same_query(catalog, older, newer)}


def is_same_query(catalog: Catalog, one: ViewDefinition, other: ViewDefinition) -> bool:
    """Return whether two versions of a view have one query, and so has all that they read."""
    if (one.lineage, one.functions) != (other.lineage, other.functions):
        return False
    pairs = ((a, b) for a, b in zip(one.read_ids, other.read_ids, strict=True) if a != b)
    return all(is_same_query(catalog, catalog.views[a], catalog.views[b]) for a, b in pairs)


def _below_first(reads: Mapping[str, set[str]], cadences: set[str]) -> list[str]:
    """Return ``cadences`` so that each stands behind those that it reads; each is entered once, also on a circle."""
    entered: set[str] = set()
    ordered: list[str] = []

    def place(cadence: str) -> None:
        if cadence in entered:
            return
        entered.add(cadence)
        for below in sorted(reads.get(cadence, ())):
            place(below)
        ordered.append(cadence)

    for cadence in sorted(cadences):
        place(cadence)
    return ordered


def target_cadence(coordinator: Coordinator, catalog: Catalog, view: ViewDefinition) -> str:
    """Return the cadence that ``view``, which is being filled, will refresh with."""
    return target_cadences(coordinator, catalog, linked_builds(catalog, view.cadence))[view.cadence]


def target_cadences(coordinator: Coordinator, catalog: Catalog, sources: Sequence[str]) -> dict[str, str]:
    """Return for each build cadence the cadence that its views will refresh with.

    That of their REFRESH clause; where that would wait for itself (a CONTINUOUS view over an EVERY one over a
    CONTINUOUS one), a cadence of its own, which waits for both.

    Args:
        coordinator: its planner.
        catalog: has their views.
        sources: build cadences that read each other, those below first: where they go decides of those above.
    """
    found: dict[str, str] = {}
    planner = coordinator.planner
    for source in sources:
        after, _ = joined(catalog, found)
        together = members_of(after, source)
        view, first = together[0], min(v.id for v in together)
        usual = view.refresh.cadence(view.id, planner.needs_spark(after, view), planner.functions(after, view))
        found[source] = f"{usual}-{first}" if _waits_for(after, together, usual) else usual
    return found


def _waits_for(catalog: Catalog, views: Sequence[ViewDefinition], cadence: str) -> bool:
    """Return whether another cadence that ``views`` read reads, over any number of others, ``cadence``."""
    found: set[str] = set()
    waiting = [*(cadences_read(catalog, views) - {cadence})]
    while waiting:
        at = waiting.pop()
        if at == cadence:
            return True
        if at not in found:
            found.add(at)
            waiting += cadences_read(catalog, members_of(catalog, at)) - {at}
    return False


def cadences_read(catalog: Catalog, views: Sequence[ViewDefinition]) -> set[str]:
    """Return the cadences of the views that ``views`` read."""
    below = (catalog.views[i] for view in views for i in view.read_ids if i in catalog.views)
    return {view.cadence for view in below if view.state == ACTIVE}


def joined(before: Catalog, targets: Mapping[str, str]) -> tuple[Catalog, dict[int, int]]:
    """Return the catalog in which views of build cadences are ACTIVE and the versions that they replace are gone.

    Args:
        before: the catalog in which they are filled.
        targets: the cadence that the views join, by build cadence.

    Returns:
        The catalog, and the new version's id by that of the replaced one.
    """
    views = [v for v in before.views.values() if v.cadence in targets and v.state == BUILDING]
    new_ids = {v.replaces: v.id for v in views if v.replaces is not None}
    after = before.without(*new_ids)
    for view in views:
        after = after.with_view(replace(view, state=ACTIVE, cadence=targets[view.cadence], replaces=None))
    # Views elsewhere that read a replaced version read the new one: the query is the same, so their state is, too.
    for reader in list(after.views.values()):
        reads = tuple((name, new_ids.get(id_, id_)) for name, id_ in reader.reads)
        if reads != reader.reads:
            after = after.with_view(replace(reader, reads=reads))
    return after, new_ids
