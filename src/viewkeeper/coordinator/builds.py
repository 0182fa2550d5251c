"""Filling a new view while writers go on, beside everything else, and letting it join its cadence.

    CREATE ──▶ cadence build-<id>: its own state, filled from the base tables as of one position, piece by piece,
               each piece an epoch like any other (published, so a crash costs one piece); what its target cadence
               keeps is borrowed where it can be (``pipeline/loans.py``)
           ──▶ follows the log until it stands where its target cadence stands
           ──▶ swap: state tables take the target's names (those that the target has already are dropped),
               the catalog names the view ACTIVE, and the version that it replaces goes

Order of the swap: state first, catalog second. A crash between the two leaves a BUILDING view without a build cadence;
``finish_swaps`` completes it from what stands in the catalog. Until the catalog says so, nobody sees the new version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from viewkeeper.coordinator.borrowing import loan_of, may_borrow
from viewkeeper.coordinator.core import Coordinator, Outcome, consumer, is_joining, members_of
from viewkeeper.coordinator.pieces import borrowed_for, plan_piece, rows_to_read
from viewkeeper.coordinator.targets import cadences_read, joined, linked_builds, target_cadences
from viewkeeper.errors import ConflictError
from viewkeeper.log import retention
from viewkeeper.pipeline.decisions import delete_decisions
from viewkeeper.pipeline.epoch import Members
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.loans import begin_anew, end_loans
from viewkeeper.pipeline.publish import hide, stay_at
from viewkeeper.pipeline.records import (
    BUILD_PREFIX,
    Build,
    CadenceRecord,
    Loan,
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
from viewkeeper.plan.compile.borrowing import Compile
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.views.catalog import Catalog, read_catalog, write_catalog
from viewkeeper.views.definition import BUILDING, ViewDefinition

Progress = Callable[[int, int, Outcome], None]


def build_cadence(view: int) -> str:
    """Return the name of the cadence in which ``view`` is filled."""
    return f"{BUILD_PREFIX}{view}"


def build(coordinator: Coordinator, view: int, progress: Progress | None = None) -> list[Outcome]:
    """Fill ``view`` and let it join its cadence; goes on where an earlier attempt stopped.

    Views of one cadence that read each other are filled together, in one build cadence; where new versions in several
    build cadences read each other, all are filled and join in one swap.

    Args:
        coordinator: runs the epochs.
        view: id of a BUILDING view.
        progress: called after each piece with base rows done, base rows there were, and the epoch.

    Raises:
        ConflictError: ``VIEW_CHANGED`` where it was dropped or replaced meanwhile.
    """
    definition = coordinator.catalog().views.get(view)
    if definition is None or definition.state != BUILDING:
        return []
    outcomes: list[Outcome] = []
    sources = linked_builds(coordinator.catalog(), definition.cadence)
    for cadence in sources:
        outcomes += _fill(coordinator, cadence, progress)
    while not _swap(coordinator, sources):
        for cadence in sources:
            outcomes += _fill(coordinator, cadence, progress)
    if view not in coordinator.catalog().views:
        raise ConflictError(
            "VIEW_CHANGED", "The view was dropped or replaced while it was filled: look at what is there."
        )
    return outcomes


def _fill(coordinator: Coordinator, cadence: str, progress: Progress | None) -> list[Outcome]:
    """Fill the views of a build cadence and let them follow the log to its end."""
    outcomes: list[Outcome] = []
    record: CadenceRecord | None = coordinator.record(cadence) or _begin(coordinator, cadence)
    while record is not None and record.build is not None:
        if not record.build.is_begun:
            record = _begin(coordinator, cadence)
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
    return outcomes + _follow(coordinator, cadence)


def _begin(coordinator: Coordinator, cadence: str) -> CadenceRecord | None:
    """Fix the position as of which base tables are read, and hold the log from there; None where no view is left.

    Where state can be borrowed, that is where the lender stands, which is brought to the log's end first.
    """
    with coordinator.turns.of(cadence):
        return _begun(coordinator, cadence)


def _begun(coordinator: Coordinator, cadence: str) -> CadenceRecord | None:
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
        coordinator.catch_up(lender, coordinator.head())
    with coordinator.base.write() as txn:
        # Nothing behind what the lender has published is purged.
        start = _position(coordinator, lender) if lends else None
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


def _follow(coordinator: Coordinator, cadence: str) -> list[Outcome]:
    """Let filled views follow the log to its end; those with borrowed state follow the lender, epoch by epoch."""
    record = coordinator.record(cadence)
    if record is None or record.loan is None:
        return coordinator.catch_up(cadence, coordinator.head())
    outcomes = _keep_up(coordinator, cadence, record.loan.lender, coordinator.head())
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


def _keep_up(coordinator: Coordinator, source: str, target: str, position: int) -> list[Outcome]:
    """Bring two cadences to ``position``, ``source`` behind each epoch of ``target``, whose state it may borrow."""
    outcomes = coordinator.catch_up(source, position)

    def follow(of_target: Outcome) -> None:
        outcomes.extend(coordinator.catch_up(source, position))

    coordinator.catch_up(target, position, follow)
    return outcomes


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
        return coordinator.run(plan_piece(coordinator, members, record, record.build), started)


def _has_lost_views(coordinator: Coordinator, members: Members, record: CadenceRecord) -> bool:
    """Let a build begin anew of whose views one was dropped: how far it is was counted over the tables of all."""
    before = record.build.views if record.build is not None else ()
    if not before or set(before) == set(members.compilation.views):
        return False
    with coordinator.views.write() as txn:
        if read_cadence(txn, record.name) == record:
            begin_anew(txn, record)
    return True


def _swap(coordinator: Coordinator, sources: Sequence[str]) -> bool:
    """Let filled views join their cadences; False where they do not stand at one position with them yet."""
    catalog = coordinator.catalog()
    sources = [source for source in sources if members_of(catalog, source)]
    if not sources:
        return True
    targets = target_cadences(coordinator, catalog, sources)
    # Before anybody has to wait, and once more while the targets do.
    _raise_below(coordinator, catalog, targets)
    with coordinator.turns.of_all(sources, targets.values()):
        head = _raise_below(coordinator, catalog, targets)
        for source, target in targets.items():
            _keep_up(coordinator, source, target, head)
        return _swap_now(coordinator, targets)


def _raise_below(coordinator: Coordinator, catalog: Catalog, targets: Mapping[str, str]) -> int:
    """Bring what views of build cadences read elsewhere to the log's end, and return that.

    No view may be ahead of one that it reads.
    """
    head = coordinator.head()
    for source, target in targets.items():
        for below in cadences_read(catalog, members_of(catalog, source)) - {target, source}:
            coordinator.catch_up(below, head)
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
                # Whoever last refreshed with it was replaced between the two steps of a swap.
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
    if before is None or not filled.is_failed or not _is_same_query(catalog, before, view):
        return None
    record = read_view(txn, before.id)
    return record if record is not None and record.position > filled.position and record.rows == filled.rows else None


def _is_same_query(catalog: Catalog, one: ViewDefinition, other: ViewDefinition) -> bool:
    """Return whether two versions of a view have one query, and so has all that they read."""
    if (one.lineage, one.functions) != (other.lineage, other.functions):
        return False
    pairs = ((a, b) for a, b in zip(one.read_ids, other.read_ids, strict=True) if a != b)
    return all(_is_same_query(catalog, catalog.views[a], catalog.views[b]) for a, b in pairs)


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
            if retention.find(txn, consumer(target)) is None:
                position = _position(coordinator, target)
                retention.hold(txn, consumer(target), "cadence", position, clock=coordinator.clock)
            retention.release(txn, consumer(source))
    for old in new_ids:
        remove_state(coordinator, before, before.views[old])


def _position(coordinator: Coordinator, cadence: str) -> int | None:
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
