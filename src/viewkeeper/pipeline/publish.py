"""Publishing: everything that an epoch changes becomes visible in one atomic step.

In one write transaction of the views space: the fence holds (the epoch is still the next one, its views are still the
same); counts are added to error bags; state and rows are written; a view with a non-empty bag is FAILED, as is one that
would be ahead of a FAILED view that it reads, and its rows wait in its pending table, while a view that is so no more
gets all that waits; positions and epochs advance. A crash before the commit leaves nothing, a crash after it leaves
everything: the epoch is run again or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from viewkeeper.clock import Clock
from viewkeeper.errors import ConflictError
from viewkeeper.expressions.errors import READS_FAILED_VIEW
from viewkeeper.operators.state import StateWrites, WriteSet
from viewkeeper.pipeline.bags import add_to_bag, entries_of
from viewkeeper.pipeline.epoch import EpochPlan, fence
from viewkeeper.pipeline.failpoints import failpoint
from viewkeeper.pipeline.layouts import is_outdated, state_is_outdated
from viewkeeper.pipeline.loans import followed, kept_for_borrowers, note_old_values
from viewkeeper.pipeline.records import (
    DELETED,
    ROW,
    CadenceRecord,
    Failure,
    ViewRecord,
    count_publishing,
    read_cadence,
    read_view,
    write_cadence,
    write_view,
)
from viewkeeper.plan.compile import CompiledView
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.row_form import form_of

FAILURES_SHOWN = 20
_KEYS_OF_A_LARGE_TABLE = 100_000


def publish(
    space: Space,
    plan: EpochPlan,
    writes: Sequence[WriteSet],
    executor: str,
    clock: Clock,
    check: Callable[[], None] = lambda: None,
    note: Callable[[WriteTransaction], None] = lambda txn: None,
    is_much: Callable[[int], bool] = lambda position: False,
) -> int:
    """Publish an epoch.

    Args:
        space: the views space.
        plan: the epoch.
        writes: the write sets of its winning tasks; no key occurs in two of them. What is written of them is let go.
        executor: the name of the executor that ran it, for status.
        clock: gives the moment of publishing.
        check: called under the write lock; raises where the cadence's views have changed since the plan.
        note: called when all else is written, to write what is to be remembered of the epoch.
        is_much: whether from a position to the epoch's end there is more of the log than one epoch should read.

    Returns:
        How many view rows changed.

    Raises:
        ConflictError: ``EPOCH_SUPERSEDED``: somebody else has published; plan again. ``STATE_OUTDATED``: what it went
            on from was written by another version of Viewkeeper.
    """
    failpoint("publish:before")
    with space.write() as txn:
        record = read_cadence(txn, plan.members.cadence)
        record = fence(plan).check(record)
        check()
        if plan.scan is None:
            record = _followed(txn, plan, record)
        _add_to_bags(txn, writes)
        records = [_view_record(txn, plan, view, executor, clock) for view in plan.members.compilation.views.values()]
        held = {r.state: r for r in records if r.is_failed}
        for view in records:
            if not view.is_failed:
                _release(txn, view)
            elif plan.scan is not None:
                hide(txn, view)
        borrowers = kept_for_borrowers(txn, plan.members.cadence, plan.members.compilation, plan.after, is_much)
        for state in dict.fromkeys(state for w in writes for state in w.tables):
            pieces = [piece for w in writes for piece in w.tables.get(state, ())]
            note_old_values(txn, state, borrowers.get(state, ()), pieces)
            if state in held:
                _hold(txn, held[state].pending, pieces)
            else:
                _write(txn, state, pieces)
            if sum(piece.count for piece in pieces) >= _KEYS_OF_A_LARGE_TABLE:
                # The stored pages that were copied to be changed are read by nobody now.
                space.release_memory()
        for view in records:
            write_view(txn, view)
        write_cadence(txn, replace(record, epoch=plan.number, position=plan.to, build=plan.build))
        count_publishing(txn)
        note(txn)
        failpoint("publish:before-commit")
    failpoint("publish:after")
    return sum(count for w in writes for count in w.rows.values())


def _followed(txn: WriteTransaction, plan: EpochPlan, record: CadenceRecord) -> CadenceRecord:
    """Return the cadence's record, of a build with its loan as it is behind the epoch."""
    found = followed(txn, record, plan.to)
    if found is None:
        message = (
            f"The cadence that lends {record.name!r} state has gone on since the epoch was planned: refresh again."
        )
        raise ConflictError("EPOCH_SUPERSEDED", message)
    return found


def _view_record(txn: ReadTransaction, plan: EpochPlan, view: CompiledView, executor: str, clock: Clock) -> ViewRecord:
    """Return what the view's record becomes: advanced where its bags are empty, else held where it was."""
    before = read_view(txn, view.view)
    compilation = plan.members.compilation
    if not plan.is_first_piece and is_outdated(before, compilation):
        raise state_is_outdated((view.view,))
    layout = compilation.layouts[view.view]
    rows = before.rows if before is not None and before.layout == layout else form_of(compilation, view)
    failures, count = _failures(txn, view.error_states)
    if not count and view.view in plan.waiting:
        failures, count = (Failure(READS_FAILED_VIEW, {"view": plan.waiting[view.view]}),), 1
    if count and before is not None:
        # What a view shows while it is filled is a part of it, and no good state to stay at.
        kept = before.position if plan.scan is None else -1
        return replace(before, position=kept, failures=failures, failure_count=count, layout=layout, rows=rows)
    now = clock.now_seconds()
    pending = f"{plan.members.cadence}/p{view.view}"
    position = plan.to if not count else -1
    choice = plan.choices.get(view.view)
    why = "" if choice is None else choice.why
    way = "" if choice is None else choice.way
    return ViewRecord(
        view.view, view.state, pending, position, plan.number, now, failures, count, executor, way, why, layout, rows
    )  # fmt: skip


def _failures(txn: ReadTransaction, bags: Sequence[str]) -> tuple[tuple[Failure, ...], int]:
    shown: list[Failure] = []
    count = 0
    for bag in bags:
        count += txn.count(bag)
        for text in islice(entries_of(txn, bag), FAILURES_SHOWN - len(shown)):
            reason, row = msgspec.json.decode(text)
            shown.append(Failure(reason, row))
    return tuple(shown), count


def _add_to_bags(txn: WriteTransaction, writes: Iterable[WriteSet]) -> None:
    for bag in dict.fromkeys(state for w in writes for state in w.merges):
        counts: dict[bytes, int] = {}
        for w in writes:
            for key, weight in w.merges.get(bag, {}).items():
                counts[key] = counts.get(key, 0) + weight
        add_to_bag(txn, bag, counts)


def _write(txn: WriteTransaction, state: str, pieces: Sequence[StateWrites]) -> None:
    """Write ascending pieces one after the other: no key is in two, and LMDB's walk costs less than Python's merge."""
    for piece in pieces:
        if piece.new_values is None:
            txn.multi_delete(state, piece.keys)
        else:
            txn.multi_put(state, zip(piece.keys, piece.new_values, strict=True))
        piece.let_go()


def _hold(txn: WriteTransaction, pending: str, pieces: Sequence[StateWrites]) -> None:
    """Keep row changes of a FAILED view aside; the last one of a key counts."""
    for piece in pieces:
        changes = (DELETED if value is None else ROW + value for value in piece.values)
        txn.multi_put(pending, zip(piece.keys, changes, strict=True))


def hide(txn: WriteTransaction, view: ViewRecord) -> None:
    """Put the rows of a FAILED view aside, behind those that wait already: it has no state that it may show.

    Args:
        txn: a transaction of the views space.
        view: the view's record; its position is the caller's to change.
    """
    rows = [(key, ROW + value) for key, value in txn.scan(view.state)]
    if rows:
        waiting = txn.multi_get(view.pending, [key for key, _ in rows])
        txn.multi_put(view.pending, [row for row, newer in zip(rows, waiting, strict=True) if newer is None])
        txn.drop(view.state)


def stay_at(txn: WriteTransaction, view: ViewRecord, shown: ViewRecord) -> ViewRecord:
    """Let a FAILED view that was filled anew show what another version of it shows, its last good epoch.

    The rows are copied: until the catalog names the new version, readers see the other one.

    Args:
        txn: a transaction of the views space.
        view: the new version's record; all its rows wait.
        shown: the other version's record, with rows of the same form.

    Returns:
        The new version's record as it becomes.
    """
    for key, value in txn.scan(shown.state):
        txn.put(view.state, key, value)
        if txn.get(view.pending, key) is None:
            txn.put(view.pending, key, DELETED)
    return replace(view, position=shown.position, epoch=shown.epoch, published_seconds=shown.published_seconds)


def _release(txn: WriteTransaction, view: ViewRecord) -> None:
    """Show what waited while the view was FAILED."""
    if not txn.count(view.pending):
        return
    for key, value in txn.scan(view.pending):
        if value == DELETED:
            txn.delete(view.state, key)
        else:
            txn.put(view.state, key, value[1:])
    txn.drop(view.pending)
