"""Swaps: views that are filled join their cadences, and what they replace goes.

    state      the build's tables take the target's names (those that the target has already are dropped)
    catalog    names the views ACTIVE, and the versions that they replace go

A crash between the two leaves a BUILDING view without a build cadence; ``finish_swaps`` completes it from what stands
in the catalog. Until the catalog says so, nobody sees the new version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeeper.coordinator.cadences import consumer, is_joining, members_of
from viewkeeper.coordinator.core import Coordinator, Outcome, Published
from viewkeeper.coordinator.targets import cadences_read, is_same_query, joined, target_cadences
from viewkeeper.expressions.errors import READS_FAILED_VIEW
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.decisions import delete_decisions
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.loans import begin_anew, end_loans
from viewkeeper.pipeline.publish import hide, stay_at
from viewkeeper.pipeline.records import (
    CadenceRecord,
    Failure,
    ViewRecord,
    count_publishing,
    delete_cadence,
    delete_view,
    read_cadence,
    read_view,
    supersede,
    write_cadence,
    write_view,
)
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.views.catalog import Catalog, read_catalog, write_catalog
from viewkeeper.views.definition import BUILDING, ViewDefinition


def swap(coordinator: Coordinator, sources: Sequence[str], published: Published | None = None) -> bool:
    """Let filled views join their cadences; return False where they do not stand at one position with them yet.

    Args:
        coordinator: its store, and runs epochs.
        sources: the build cadences.
        published: called after each epoch that is run.
    """
    catalog = coordinator.catalog()
    sources = [source for source in sources if members_of(catalog, source)]
    if not sources:
        return True
    targets = target_cadences(coordinator, catalog, sources)
    # Before anybody has to wait, and once more while the targets do.
    _raise_below(coordinator, catalog, targets, published)
    with coordinator.turns.of_all(sources, targets.values()):
        head = _raise_below(coordinator, catalog, targets, published)
        for source, target in targets.items():
            keep_up(coordinator, source, target, head, published)
        return _swap_now(coordinator, targets)


def keep_up(
    coordinator: Coordinator, source: str, target: str, position: int, published: Published | None = None
) -> list[Outcome]:
    """Bring two cadences to ``position``, ``source`` behind each epoch of ``target``, whose state it may borrow.

    Args:
        coordinator: runs the epochs.
        source: a build cadence.
        target: the cadence that it joins, or whose state it borrows.
        position: up to where.
        published: called after each epoch.

    Returns:
        The epochs of ``source``.
    """
    outcomes = coordinator.catch_up(source, position, published)

    def follow(of_target: Outcome) -> None:
        outcomes.extend(coordinator.catch_up(source, position, published))
        if published is not None:
            published(of_target)

    coordinator.catch_up(target, position, follow)
    return outcomes


def _raise_below(
    coordinator: Coordinator, catalog: Catalog, targets: Mapping[str, str], published: Published | None
) -> int:
    """Bring what views of build cadences read elsewhere to the log's end, and return that.

    No view may be ahead of one that it reads.
    """
    head = coordinator.head()
    for source, target in targets.items():
        for below in cadences_read(catalog, members_of(catalog, source)) - {target, source}:
            coordinator.catch_up(below, head, published)
    return head


def _swap_now(coordinator: Coordinator, targets: Mapping[str, str]) -> bool:
    failpoint("build:before-swap")
    with coordinator.views.write() as txn:
        records = {source: read_cadence(txn, source) for source in targets}
        there = {target: read_cadence(txn, target) for target in targets.values()}
        # Read under the lock: what has left the target meanwhile takes its state along, what joins brings its own.
        catalog = coordinator.catalog()
        if not all(members_of(catalog, source) for source in targets):
            # Dropped meanwhile: look again at what is left.
            return False
        if any(record is None for record in records.values()):
            return True
        for target, record in there.items():
            if record is not None and not members_of(catalog, target) and not is_joining(catalog, txn, target):
                # Whoever last refreshed with it was replaced between the two steps of a swap, or is just going. What it
                # lends is of its own position.
                end_loans(txn, target, ())
                delete_cadence(txn, target)
                there[target] = None
        if any(
            record is not None and not _is_ready(coordinator, txn, catalog, record, targets)
            for record in records.values()
        ):
            return False
        if len({record.position for record in (*records.values(), *there.values()) if record is not None}) > 1:
            return False
        for source, target in targets.items():
            _join(coordinator, txn, catalog, source, target)
        count_publishing(txn)
    failpoint("build:after-swap")
    activate(coordinator, targets)
    return True


def _is_ready(
    coordinator: Coordinator, txn: WriteTransaction, catalog: Catalog, record: CadenceRecord, targets: Mapping[str, str]
) -> bool:
    """Return whether a build is filled; it begins anew where its target does not keep what it has borrowed."""
    if record.loan is not None:
        kept = states_of_cadence(coordinator, catalog, targets[record.name])
        if any(f"{targets[record.name]}/{state}" not in kept for state in record.loan.states):
            begin_anew(txn, record)
            return False
    return record.build is None


def _join(coordinator: Coordinator, txn: WriteTransaction, catalog: Catalog, source: str, target: str) -> None:
    """Move the state of the views filled in ``source`` to ``target``, which stands at the same position."""
    built, there = read_cadence(txn, source), read_cadence(txn, target)
    assert built is not None
    _move_state(coordinator, txn, catalog, members_of(catalog, source), target)
    write_cadence(txn, CadenceRecord(target, 1 if there is None else there.epoch + 1, built.position))
    delete_cadence(txn, source)


def _move_state(
    coordinator: Coordinator, txn: WriteTransaction, catalog: Catalog, views: Sequence[ViewDefinition], target: str
) -> None:
    """Give the build's state tables the target's names; what the target keeps already stays.

    State of versions that are being replaced is not kept, nor what they share with others: a rebuild must not inherit
    what may be wrong, and both stand at one position.
    """
    source = views[0].cadence
    compilation = coordinator.planner.compile(catalog, tuple(views), source)
    mine = dict.fromkeys(state for view in views for state in compilation.states_of(view.id))
    replaced = tuple(v.replaces for v in views if v.replaces is not None)
    known = states_of_cadence(coordinator, catalog, target, without=replaced)
    if replaced:
        end_loans(txn, target, known - {f"{target}/{state.removeprefix(source + '/')}" for state in mine})
    for state in mine:
        name = f"{target}/{state.removeprefix(source + '/')}"
        if name in known and not replaced:
            txn.drop(state)
        else:
            txn.drop(name)
            txn.rename(state, name)
    for view in views:
        record = read_view(txn, view.id)
        if record is not None:
            pending = f"{target}/p{view.id}"
            txn.rename(record.pending, pending)
            joined = replace(record, state=f"{target}/v{view.id}", pending=pending)
            failed = None if joined.is_failed else _failed_below(txn, catalog, view, joined.position)
            if failed is not None:
                # Its cadence went on after the filled view had come to its position: as in coordinator/plans.py.
                hide(txn, joined)
                waits = (Failure(READS_FAILED_VIEW, {"view": failed.name}),)
                joined = replace(joined, position=-1, failures=waits, failure_count=1)
            shown = _last_good(txn, catalog, view, joined)
            if shown is not None:
                hide(txn, joined)
                joined = stay_at(txn, joined, shown)
            if joined.is_failed and _is_ahead(txn, catalog, view, joined.position):
                # Its last good state is later than what it reads shows.
                hide(txn, joined)
                joined = replace(joined, position=-1)
            write_view(txn, joined)


def _last_good(txn: ReadTransaction, catalog: Catalog, view: ViewDefinition, filled: ViewRecord) -> ViewRecord | None:
    """Return the version that ``view`` replaces where it shows a later good epoch of the same query; else None."""
    before = None if view.replaces is None else catalog.views.get(view.replaces)
    if before is None or not filled.is_failed or not is_same_query(catalog, before, view):
        return None
    record = read_view(txn, before.id)
    return record if record is not None and record.position > filled.position and record.rows == filled.rows else None


def _failed_below(txn: ReadTransaction, catalog: Catalog, view: ViewDefinition, position: int) -> ViewDefinition | None:
    """Return a FAILED view that ``view`` reads and that shows less than ``position``; None where there is none."""
    for id_ in view.read_ids:
        record = read_view(txn, id_) if id_ in catalog.views else None
        if record is not None and record.is_failed and record.position < position:
            return catalog.views[id_]
    return None


def _is_ahead(txn: ReadTransaction, catalog: Catalog, view: ViewDefinition, position: int) -> bool:
    """Return whether ``position`` is beyond that of a view that ``view`` reads."""
    below = (read_view(txn, i) for i in view.read_ids if i in catalog.views)
    return any(record is not None and record.position < position for record in below)


def states_of_cadence(
    coordinator: Coordinator, catalog: Catalog, cadence: str, without: tuple[int, ...] = ()
) -> set[str]:
    """Return the state tables that the views of ``cadence`` keep, those of ``without`` not counted."""
    members = tuple(v for v in members_of(catalog, cadence) if v.id not in without)
    if not members:
        return set()
    compilation = coordinator.planner.compile(catalog, members, cadence)
    return {state for view in compilation.views for state in compilation.states_of(view)}


def _cadence_of(record: ViewRecord) -> str:
    """Return the cadence under whose name a view's rows stand."""
    return record.state.rpartition("/")[0]


def states_of_joining(coordinator: Coordinator, txn: ReadTransaction, catalog: Catalog) -> set[str]:
    """Return the state tables of views that have joined a cadence by their state and not yet by the catalog."""
    found: set[str] = set()
    for view in catalog.views.values():
        record = read_view(txn, view.id) if view.state == BUILDING else None
        target = "" if record is None else _cadence_of(record)
        if record is None or target == view.cadence:
            continue
        found |= {record.pending, *coordinator.planner.compile(catalog, (view,), target).states_of(view.id)}
    return found


def activate(coordinator: Coordinator, targets: Mapping[str, str]) -> None:
    """Name the views of build cadences ACTIVE and remove the versions that they replace.

    Args:
        coordinator: its store.
        targets: the cadence that the views join, by build cadence.
    """
    with coordinator.base.write() as txn:
        before = read_catalog(txn)
        views = [v for v in before.views.values() if v.cadence in targets and v.state == BUILDING]
        if not views:
            return
        after, new_ids = joined(before, targets)
        names = ", ".join(v.name for v in views)
        write_catalog(txn, before, after.with_functions_in_use(), f"-- filled: {names}", ())
        for source, target in targets.items():
            position = position_of(coordinator, target)
            is_there = position is None or position >= reader.purged_to(txn)
            if is_there and retention.find(txn, consumer(target)) is None:
                # Where the log has gone meanwhile, upkeep leaves the cadence behind.
                retention.hold(txn, consumer(target), "cadence", position, clock=coordinator.clock)
            retention.release(txn, consumer(source))
    for old in new_ids:
        remove_state(coordinator, before, before.views[old])


def position_of(coordinator: Coordinator, cadence: str) -> int | None:
    """Return up to where ``cadence`` has read, None where it is not there."""
    record = coordinator.record(cadence)
    return None if record is None else record.position


def remove_state(coordinator: Coordinator, before: Catalog, view: ViewDefinition, keep_rows: bool = False) -> None:
    """Drop the state of a view that has left its cadence, but for what others of the cadence need.

    Args:
        coordinator: its store.
        before: the catalog in which the view still stood.
        view: the view.
        keep_rows: leave its visible rows, for a view that is only suspended.
    """
    mine = set(coordinator.planner.compile(before, (view,), view.cadence).states_of(view.id))
    failpoint("remove:before")
    with coordinator.views.write() as txn:
        now = coordinator.catalog()
        joining = states_of_joining(coordinator, txn, now)
        needed = states_of_cadence(coordinator, now, view.cadence) | joining
        is_last = not members_of(now, view.cadence) and not any(s.startswith(f"{view.cadence}/") for s in joining)
        record = read_view(txn, view.id)
        kept = {record.state} if record is not None and keep_rows else set()
        end_loans(txn, view.cadence, needed)
        for state in mine - needed - kept:
            txn.drop(state)
        if record is not None and not keep_rows:
            txn.drop(record.state)
            txn.drop(record.pending)
            delete_view(txn, view.id)
        delete_decisions(txn, view.id)
        if is_last:
            delete_cadence(txn, view.cadence)
        else:
            supersede(txn, view.cadence)
        count_publishing(txn)
    if is_last:
        failpoint("remove:between")
        with coordinator.base.write() as txn:
            if not members_of(read_catalog(txn), view.cadence):
                # Else another view has come, and goes on by what is held.
                retention.release(txn, consumer(view.cadence))
    failpoint("remove:after")


def finish_swaps(coordinator: Coordinator) -> None:
    """Complete swaps that a crash has left between state and catalog."""
    catalog = coordinator.catalog()
    targets: dict[str, str] = {}
    for view in catalog.views.values():
        if view.state != BUILDING or coordinator.record(view.cadence) is not None:
            continue
        with coordinator.views.read() as txn:
            record = read_view(txn, view.id)
        if record is not None and _cadence_of(record) != view.cadence:
            targets[view.cadence] = _cadence_of(record)
    if targets:
        activate(coordinator, targets)
