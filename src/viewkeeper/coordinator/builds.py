"""Filling a new view while writers go on, beside everything else; ``swaps.py`` lets it join its cadence.

    CREATE ──▶ cadence build-<id>: its own state, filled from the base tables as of one position, piece by piece,
               each piece an epoch like any other (published, so a crash costs one piece); what its target cadence
               keeps is borrowed where it can be (``pipeline/loans.py``)
           ──▶ follows the log until it stands where its target cadence stands
           ──▶ swap

A fill whose log was purged, since it was left behind or lost its hold on it, begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from viewkeeper.coordinator.borrowing import loan_of, may_borrow
from viewkeeper.coordinator.cadences import consumer, members_of
from viewkeeper.coordinator.core import Coordinator, Outcome, Published
from viewkeeper.coordinator.pieces import PIECE_PART, borrowed_for, plan_piece, rows_to_read
from viewkeeper.coordinator.swaps import keep_up, position_of, states_of_cadence, swap
from viewkeeper.coordinator.targets import linked_builds, target_cadences
from viewkeeper.errors import ConflictError
from viewkeeper.log import reader, retention
from viewkeeper.pipeline.epoch import Members
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.loans import begin_anew
from viewkeeper.pipeline.records import BUILD_PREFIX, Build, CadenceRecord, Loan, read_cadence, write_cadence
from viewkeeper.plan.compile.borrowing import Compile
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog, read_catalog
from viewkeeper.views.definition import BUILDING, ViewDefinition

Progress = Callable[[int, int, Outcome], None]


def build_cadence(view: int) -> str:
    """Return the name of the cadence in which ``view`` is filled."""
    return f"{BUILD_PREFIX}{view}"


def build(
    coordinator: Coordinator, view: int, progress: Progress | None = None, published: Published | None = None
) -> list[Outcome]:
    """Fill ``view`` and let it join its cadence; goes on where an earlier attempt stopped.

    Views of one cadence that read each other are filled together, in one build cadence; where new versions in several
    build cadences read each other, all are filled and join in one swap.

    Args:
        coordinator: runs the epochs.
        view: id of a BUILDING view.
        progress: called after each piece with base rows done, base rows there were, and the epoch.
        published: called after each other epoch, of the build or of what it waits for; what it raises ends the attempt.

    Raises:
        ConflictError: ``VIEW_CHANGED`` where it was dropped or replaced meanwhile, or before.
    """
    definition = _definition(coordinator, view)
    if definition.state != BUILDING:
        return []
    outcomes: list[Outcome] = []
    sources = linked_builds(coordinator.catalog(), definition.cadence)
    is_over = False
    while not is_over:
        try:
            for cadence in sources:
                outcomes += _fill(coordinator, cadence, progress, published)
            is_over = swap(coordinator, sources, published)
        except ConflictError as error:
            if error.code != "LOG_PURGED" or not _begin_again_where_purged(coordinator, sources):
                raise
    _definition(coordinator, view)
    return outcomes


def _definition(coordinator: Coordinator, view: int) -> ViewDefinition:
    found = coordinator.catalog().views.get(view)
    if found is None:
        raise ConflictError(
            "VIEW_CHANGED", "The view was dropped or replaced while it was filled: look at what is there."
        )
    return found


def _begin_again_where_purged(coordinator: Coordinator, cadences: Sequence[str]) -> bool:
    """Let builds begin anew behind whose position the log has gone; return whether there are any."""
    with coordinator.base.read() as txn:
        purged = reader.purged_to(txn)
    found = False
    for cadence in cadences:
        record = coordinator.record(cadence)
        if record is not None and (record.build is None or record.build.is_begun) and record.position < purged:
            begin_again(coordinator, cadence)
            found = True
    return found


def begin_again(coordinator: Coordinator, cadence: str) -> None:
    """Let a build begin anew, from another position of the log."""
    # First, since whoever fills it holds the log anew as soon as it has to begin anew.
    with coordinator.base.write() as txn:
        retention.release(txn, consumer(cadence))
    with coordinator.views.write() as txn:
        record = read_cadence(txn, cadence)
        if record is not None:
            begin_anew(txn, record)


def _fill(
    coordinator: Coordinator, cadence: str, progress: Progress | None, published: Published | None
) -> list[Outcome]:
    """Fill the views of a build cadence and let them follow the log to its end."""
    outcomes: list[Outcome] = []
    record: CadenceRecord | None = coordinator.record(cadence) or _begin(coordinator, cadence, published)
    while record is not None and record.build is not None:
        if not record.build.is_begun:
            record = _begin(coordinator, cadence, published)
            continue
        try:
            outcome = _piece(coordinator, cadence)
        except ConflictError as error:
            if error.code != "EPOCH_SUPERSEDED":
                raise
            # The view was dropped, its tables have changed, or a loan is over: look again.
            record = coordinator.record(cadence)
            continue
        if outcome is None:
            # Without views there is nothing to go on with, whatever is left of their record.
            record = coordinator.record(cadence) if members_of(coordinator.catalog(), cadence) else None
            continue
        record = coordinator.record(cadence)
        outcomes.append(outcome)
        if progress is not None:
            build_ = record.build if record is not None else None
            done = build_.rows_done if build_ is not None else outcome.log_rows
            progress(done, build_.rows_total if build_ is not None else done, outcome)
    return outcomes + _follow(coordinator, cadence, published)


def _begin(coordinator: Coordinator, cadence: str, published: Published | None = None) -> CadenceRecord | None:
    """Fix the position as of which base tables are read, and hold the log from there; None where no view is left.

    Where state can be borrowed, that is where the lender stands, which is brought to the log's end first.
    """
    with coordinator.turns.of(cadence):
        return _begun(coordinator, cadence, published)


def _begun(coordinator: Coordinator, cadence: str, published: Published | None) -> CadenceRecord | None:
    begun = coordinator.record(cadence)
    if begun is not None and (begun.build is None or begun.build.is_begun):
        # By another thread, which waited for its turn before this one: what it holds of the log stays held.
        return begun
    catalog = coordinator.catalog()
    if not members_of(catalog, cadence):
        return None
    lender = target_cadences(coordinator, catalog, linked_builds(catalog, cadence))[cadence]
    with coordinator.views.read() as txn:
        lends = _loan(coordinator, txn, catalog, cadence, lender) is not None
    if lends:
        coordinator.catch_up(lender, coordinator.head(), published)
    with coordinator.base.write() as txn:
        if not members_of(read_catalog(txn), cadence):
            # Dropped while the lender came on: whoever drops it would let go of the log before it is held.
            return None
        # Nothing behind what the lender has published is purged.
        start = position_of(coordinator, lender) if lends else None
        position = retention.hold(txn, consumer(cadence), "cadence", start, clock=coordinator.clock)
    failpoint("build:held")
    with coordinator.views.write() as txn:
        # Read under the lock, as by whoever ends loans: what leaves the lender now ends this one.
        catalog = coordinator.catalog()
        record, there = read_cadence(txn, cadence), read_cadence(txn, lender)
        if record is not None and (record.build is None or record.build.is_begun):
            return record
        if not members_of(catalog, cadence):
            return None
        # One that has taken the name of a lender that is gone may stand before what the log is held from.
        lends = lends and there is not None and there.position >= position
        loan = _loan(coordinator, txn, catalog, cadence, lender) if lends else None
        if loan is not None and there is not None:
            position = there.position
            loan = replace(loan, marks=(position,))
        build_ = Build(position, -1, None, 0, 0, tuple(view.id for view in members_of(catalog, cadence)))
        record = CadenceRecord(cadence, 0 if record is None else record.epoch, position, build_, loan)
        with coordinator.base.read() as base:
            rows = rows_to_read(base, txn, catalog, record, _compiling(coordinator, catalog, cadence))
        record = replace(record, build=replace(build_, rows_total=sum(rows)))
        write_cadence(txn, record)
    failpoint("build:begun")
    return record


def _loan(coordinator: Coordinator, txn: ReadTransaction, catalog: Catalog, cadence: str, lender: str) -> Loan | None:
    if not may_borrow(catalog, cadence) or not members_of(catalog, lender):
        return None
    kept = states_of_cadence(coordinator, catalog, lender)
    return loan_of(txn, _compiling(coordinator, catalog, cadence), cadence, lender, kept)


def _compiling(coordinator: Coordinator, catalog: Catalog, cadence: str) -> Compile:
    return partial(coordinator.planner.compile, catalog, members_of(catalog, cadence), cadence)


def _follow(coordinator: Coordinator, cadence: str, published: Published | None) -> list[Outcome]:
    """Let filled views follow the log to its end; those with borrowed state follow the lender, epoch by epoch."""
    record = coordinator.record(cadence)
    if record is None or record.loan is None:
        return coordinator.catch_up(cadence, coordinator.head(), published)
    outcomes = keep_up(coordinator, cadence, record.loan.lender, coordinator.head(), published)
    _end_loan_left_behind(coordinator, cadence)
    return outcomes


def _end_loan_left_behind(coordinator: Coordinator, cadence: str) -> None:
    """Let a build begin anew that cannot follow its lender: that has passed DDL, which no epoch spans."""
    record = coordinator.record(cadence)
    if record is None or record.loan is None or record.build is not None:
        return
    lender = coordinator.record(record.loan.lender)
    if lender is None or lender.position <= record.position or coordinator.planned(cadence) is not None:
        return
    with coordinator.views.write() as txn:
        if read_cadence(txn, cadence) == record:
            begin_anew(txn, record)


def _piece(coordinator: Coordinator, cadence: str) -> Outcome | None:
    """Publish the next piece of what is read; None where there is none: it was dropped, or another thread read it."""
    with coordinator.turns.of(cadence):
        started = coordinator.clock.monotonic_seconds()
        catalog = coordinator.catalog()
        members = coordinator.members(catalog, cadence)
        record = coordinator.record(cadence)
        if members is None or record is None or record.build is None or not record.build.is_begun:
            return None
        if _has_lost_views(coordinator, members, record):
            return None
        members = replace(members, borrowed=borrowed_for(record, _compiling(coordinator, catalog, cadence)))
        part = min(coordinator.turns.free_part, PIECE_PART)
        return coordinator.run(plan_piece(coordinator, members, record, record.build, part), started, part)


def _has_lost_views(coordinator: Coordinator, members: Members, record: CadenceRecord) -> bool:
    """Let a build begin anew of whose views one was dropped: how far it is was counted over the tables of all."""
    before = record.build.views if record.build is not None else ()
    if not before or set(before) == set(members.compilation.views):
        return False
    with coordinator.views.write() as txn:
        if read_cadence(txn, record.name) == record:
            begin_anew(txn, record)
    return True
