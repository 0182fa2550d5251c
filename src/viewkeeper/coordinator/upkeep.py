"""Upkeep beside the epochs: what a crash has left lying about, the log that nobody needs, views that cannot go on.

None of it is needed for right answers: state that belongs to nobody is only space, and a consumer that has gone only
keeps the log. All of it may be interrupted and done again. Except for ``find_lost_positions`` the caller holds the
maintainer's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from viewkeeper.coordinator import requests, swaps
from viewkeeper.coordinator.builds import begin_again
from viewkeeper.coordinator.cadences import consumer, is_build, members_of
from viewkeeper.coordinator.core import Coordinator
from viewkeeper.coordinator.outdated import outdated_builds, reasons_by_view
from viewkeeper.coordinator.targets import target_cadence
from viewkeeper.errors import ConflictError
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.decisions import decided_views, delete_decisions
from viewkeeper.pipeline.loans import end_loans
from viewkeeper.pipeline.records import (
    DATABASE,
    count_publishing,
    delete_cadence,
    delete_view,
    note_names,
    read_cadences,
    read_views,
    supersede,
)
from viewkeeper.pipeline.stage import sweep_stage
from viewkeeper.store.key_value import WriteTransaction
from viewkeeper.views.catalog import Catalog, read_catalog, write_catalog
from viewkeeper.views.definition import ACTIVE, BUILDING, NEEDS_REBUILD, ViewDefinition

_CONSUMER_PREFIX = "cadence/"


def begin(coordinator: Coordinator) -> list[ViewDefinition]:
    """Put in order what a predecessor has left, before any epoch is run; return the views that cannot go on from it."""
    swaps.finish_swaps(coordinator)
    left = leave_outdated(coordinator)
    sweep(coordinator)
    return [*left, *hold_log(coordinator)]


def purge(coordinator: Coordinator) -> int:
    """Purge the log, and mark the views that held back too much of it; return the pieces removed.

    What dead askers and drivers have left goes too.
    """
    requests.clear(coordinator.base)
    if coordinator.staging_path is not None:
        sweep_stage(coordinator.staging_path, partial(_published_epochs, coordinator))
    purged = coordinator.purge()
    with coordinator.base.read() as txn:
        behind = [h.consumer.name for h in retention.consumers(txn) if h.consumer.needs_rebuild]
    limit = coordinator.settings.log_held_bytes_max
    names = [name.removeprefix(_CONSUMER_PREFIX) for name in behind if name.startswith(_CONSUMER_PREFIX)]
    leave_behind(coordinator, names, f"more than {limit} bytes of the log waited for it and were purged")
    return purged


def _published_epochs(coordinator: Coordinator) -> dict[str, int]:
    with coordinator.views.read() as txn:
        return {record.name: record.epoch for record in read_cadences(txn)}


def find_lost_positions(coordinator: Coordinator) -> None:
    """Mark views that show writes which the log does not hold: after a power cut, or in a folder put together by hand.

    Asked when a store is opened, before anybody writes: later the log would have grown past their positions.
    """
    with coordinator.views.read() as views:
        records = read_cadences(views)
    # Read second: it only grows, so no cadence is ahead of it by a race.
    head = coordinator.head()
    shown = [record for record in records if record.build is None or record.build.is_begun]
    lost = [record.name for record in shown if record.position > head]
    leave_behind(coordinator, lost, "the log ends before the position that it shows")


def hold_log(coordinator: Coordinator) -> list[ViewDefinition]:
    """Hold the log for cadences that have lost their hold on it; mark and return the views behind which it has gone.

    Fills begin anew by themselves (``builds.py``).
    """
    catalog = coordinator.catalog()
    with coordinator.base.read() as base:
        purged = reader.purged_to(base)
        consumers = {held.consumer.name: held.consumer for held in retention.consumers(base)}
    # Read second, since positions only grow.
    with coordinator.views.read() as views:
        records = [r for r in read_cadences(views) if not is_build(r.name) and members_of(catalog, r.name)]
    lost = [r.name for r in records if r.position < purged and not _is_left_behind(consumers.get(consumer(r.name)))]
    missing = [r for r in records if r.position >= purged and consumer(r.name) not in consumers]
    if missing:
        with coordinator.base.write() as txn:
            now = read_catalog(txn)
            for r in missing:
                is_there = members_of(now, r.name) and r.position >= reader.purged_to(txn)
                if is_there and retention.find(txn, consumer(r.name)) is None:
                    retention.hold(txn, consumer(r.name), "cadence", r.position, clock=coordinator.clock)
    return leave_behind(coordinator, lost, "the log that it had not read yet is gone")


def _is_left_behind(held: retention.Consumer | None) -> bool:
    """Return whether a cadence is about to be marked for another reason."""
    return held is not None and held.needs_rebuild


def leave_behind(coordinator: Coordinator, cadences: Iterable[str], reason: str) -> list[ViewDefinition]:
    """Mark the views of ``cadences`` NEEDS_REBUILD: they keep showing their last state until RESUME fills them anew.

    Args:
        coordinator: its store.
        cadences: names; views that are just being filled begin again.
        reason: for status.

    Returns:
        The marked views.
    """
    left: list[ViewDefinition] = []
    for cadence in cadences:
        if is_build(cadence):
            begin_again(coordinator, cadence)
            continue
        with coordinator.base.write() as txn:
            before = read_catalog(txn)
            reasons = {view.id: reason for view in members_of(before, cadence)}
            gone = _marked(txn, before, reasons, f"-- {cadence} is left behind: {reason}")
            retention.release(txn, consumer(cadence))
        for view in gone:
            swaps.remove_state(coordinator, before, before.views[view.id], keep_rows=True)
        left += gone
    return left


def must_be_filled_anew(*views: ViewDefinition) -> ConflictError:
    """Return the error for views that are NEEDS_REBUILD."""
    said = (
        f"View {v.name!r} must be filled anew ({v.reason}): ALTER MATERIALIZED VIEW {v.name} RESUME." for v in views
    )
    return ConflictError("NEEDS_REBUILD", " ".join(said), {"views": [view.name for view in views]})


def leave_outdated(coordinator: Coordinator) -> list[ViewDefinition]:
    """Mark the views NEEDS_REBUILD whose state another version of Viewkeeper wrote; return them, marked.

    Done before anything goes on from such state, once for each version of the catalog.
    """
    catalog = coordinator.catalog()
    left: list[ViewDefinition] = []
    if coordinator.compared_version == catalog.version:
        return left
    with coordinator.views.read() as txn:
        fills, reasons = outdated_builds(coordinator, txn, catalog), reasons_by_view(coordinator, txn, catalog)
    for name in fills:
        begin_again(coordinator, name)
    if reasons:
        with coordinator.base.write() as txn:
            before = read_catalog(txn)
            gone = {i: why for i, why in reasons.items() if i in before.views and before.views[i].state == ACTIVE}
            left = _marked(txn, before, gone, "-- state of another version of Viewkeeper")
        for view in left:
            swaps.remove_state(coordinator, before, before.views[view.id], keep_rows=True)
    coordinator.compared_version = catalog.version
    return left


def _marked(txn: WriteTransaction, before: Catalog, reasons: Mapping[int, str], statement: str) -> list[ViewDefinition]:
    """Mark views NEEDS_REBUILD, and return them so."""
    marked = [replace(before.views[id_], state=NEEDS_REBUILD, reason=reason) for id_, reason in reasons.items()]
    after = before
    for view in marked:
        after = after.with_view(view)
    if marked:
        write_catalog(txn, before, after, statement, ())
    return marked


def sweep(coordinator: Coordinator) -> None:
    """Remove state, records and holds on the log that belong to no view: a crash came between a view's end and theirs.

    A suspended view keeps its rows. Asked once for each version of the catalog.
    """
    catalog = coordinator.catalog()
    if coordinator.swept_version == catalog.version:
        return
    with coordinator.views.write() as txn:
        # Under the lock, so that no view joins or leaves a cadence meanwhile.
        catalog = coordinator.catalog()
        records = read_views(txn)
        known = {r.state for r in records if r.view in catalog.views}
        known |= {r.pending for r in records if r.view in catalog.views and _follows(catalog.views[r.view])}
        for cadence in {view.cadence for view in catalog.views.values()}:
            known |= swaps.states_of_cadence(coordinator, catalog, cadence)
        known |= swaps.states_of_joining(coordinator, txn, catalog)
        cadences = {record.name for record in read_cadences(txn)}
        dead = {c for c in cadences if not _is_alive(coordinator, catalog, c)}
        lost = [name for name in txn.databases() if name != DATABASE and name not in known]
        for cadence in cadences:
            end_loans(txn, cadence, known)
        for name in lost:
            txn.drop(name)
        for cadence in {name.rpartition("/")[0] for name in lost} - dead:
            supersede(txn, cadence)
        for cadence in dead:
            delete_cadence(txn, cadence)
        for record in records:
            if record.view not in catalog.views:
                delete_view(txn, record.view)
        for view in decided_views(txn):
            if view not in catalog.views or not _follows(catalog.views[view]):
                delete_decisions(txn, view)
        note_names(txn, catalog.version)  # of a view that was renamed by whoever died before noting it
        if lost or dead:
            count_publishing(txn)
    with coordinator.base.write() as txn:
        # As it is now: a view that was made meanwhile may be held for already, by the thread that fills it.
        now = read_catalog(txn)
        for held in retention.consumers(txn):
            cadence = held.consumer.name.removeprefix(_CONSUMER_PREFIX)
            if held.consumer.kind == "cadence" and not _is_alive(coordinator, now, cadence):
                retention.release(txn, held.consumer.name)
    coordinator.swept_version = catalog.version


def _follows(view: ViewDefinition) -> bool:
    return view.state in (ACTIVE, BUILDING)


def _is_alive(coordinator: Coordinator, catalog: Catalog, cadence: str) -> bool:
    """Return whether a view refreshes with ``cadence`` or is about to join it."""
    if members_of(catalog, cadence):
        return True
    filling = (view for view in catalog.views.values() if view.state == BUILDING)
    return any(target_cadence(coordinator, catalog, view) == cadence for view in filling)
