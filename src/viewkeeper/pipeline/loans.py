"""Loans: a view that is filled looks state up that its target cadence keeps, and neither fills nor writes it.

A loan stands in the record of the build (``records.Loan``). It is over with the swap, or by ``end_loans``, after which
the build begins anew; both change the build's record, so its fence tells whoever looks anything up.

    epoch of the lender     what its keys held before goes to the builds that borrow them (views/borrowed.py);
                            an epoch that does not keep a lent table up to date, its views having gone, ends the loan
    epoch of the build      looks up as of its own position; one that follows the log ends where the lender stands, and
                            what was noted is forgotten in the same transaction; or at a mark before that
    mark                    a position of the lender that ends about so much of the log as an epoch should read: from
                            there on old values are noted once more
    what drops or replaces  a lent table ends its loans in the same transaction
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.operators.circuit import Circuit
from viewkeeper.operators.state import StateWrites, WriteSet
from viewkeeper.pipeline.records import Build, CadenceRecord, borrowers_of, read_cadence, write_cadence
from viewkeeper.plan.compile import Compilation
from viewkeeper.plan.compile.borrowing import Borrowing, filling_circuit, following_circuit
from viewkeeper.store.key_value import ReadTransaction, Space, WriteTransaction
from viewkeeper.views.borrowed import BorrowedLookups, keep_old_values
from viewkeeper.views.lookups import Fence, SpaceLookups


@dataclass(frozen=True)
class Borrowed:
    """How a build runs with borrowed state.

    Args:
        circuit: what its epoch runs.
        lent: pairs of its state tables and the lender's.
    """

    circuit: Circuit
    lent: tuple[tuple[str, str], ...]

    @property
    def states(self) -> frozenset[str]:
        """The build's names of what it borrows."""
        return frozenset(self.lent_as)

    @property
    def lent_as(self) -> Mapping[str, str]:
        """The lender's names by those of the build."""
        return dict(self.lent)


def borrowed_by(record: CadenceRecord, circuit: Circuit) -> Borrowed | None:
    """Return how a build runs its next epoch; None where it has no loan.

    Args:
        record: the build's.
        circuit: of its views; while they are filled, with the kept rows that it borrows.
    """
    loan = record.loan
    if loan is None:
        return None
    lent = tuple((f"{record.name}/{state}", f"{loan.lender}/{state}") for state in loan.states)
    borrowing = Borrowing(frozenset(state for state, _ in lent), frozenset(loan.tables), frozenset(loan.kept_rows))
    made = filling_circuit if record.build is not None else following_circuit
    return Borrowed(made(circuit, borrowing), lent)


def published_state(
    space: Space, borrowed: Borrowed | None, position: int, fence: Fence | None = None, clock: Clock = SYSTEM_CLOCK
) -> SpaceLookups:
    """Return lookups of the state published before an epoch, borrowed tables as of its own position.

    Args:
        space: the views space.
        borrowed: what the epoch borrows.
        position: where it begins.
        fence: called with each new read transaction.
        clock: tells how old a read transaction is.
    """
    if borrowed is None:
        return SpaceLookups(space, fence, clock)
    return BorrowedLookups(space, borrowed.lent_as, position, fence, clock)


def written_by(borrowed: Borrowed | None) -> WriteSet:
    """Return an empty write set for an epoch: what it borrows, others write."""
    return WriteSet() if borrowed is None else WriteSet(lent=borrowed.states)


def kept_for_borrowers(
    txn: WriteTransaction, cadence: str, compilation: Compilation, position: int, is_much: Callable[[int], bool]
) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return for each state table of ``cadence`` the tables of the builds that borrow it, and their last marks.

    Loans of tables that ``compilation`` does not keep up to date end here.

    Args:
        txn: the transaction that publishes an epoch of ``cadence``.
        cadence: the lender.
        compilation: the views that the epoch refreshes.
        position: where the epoch begins.
        is_much: whether from a position to the epoch's end there is more of the log than one epoch should read.
    """
    if not borrowers_of(txn, cadence):
        return {}
    end_loans(txn, cadence, {state for node in compilation.circuit.nodes for state in node.operator.states})
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for record in borrowers_of(txn, cadence):
        loan = record.loan
        assert loan is not None
        if position > loan.marks[-1] and is_much(loan.marks[-1]):
            loan = replace(loan, marks=(*loan.marks, position))
            write_cadence(txn, replace(record, loan=loan))
        for state in loan.states:
            lent = f"{cadence}/{state}"
            found[lent] = (*found.get(lent, ()), (f"{record.name}/{state}", loan.marks[-1]))
    return found


def note_old_values(
    txn: WriteTransaction, state: str, borrowers: Sequence[tuple[str, int]], pieces: Sequence[StateWrites]
) -> None:
    """Keep for the tables ``borrowers``, each with its last mark, what ``pieces`` are about to change in ``state``."""
    for borrower, mark in borrowers:
        for piece in pieces:
            keep_old_values(txn, state, borrower, piece.keys, mark)


def ends_of_following(txn: ReadTransaction, record: CadenceRecord) -> tuple[int, ...]:
    """Return where the next epoch of a build with a loan may end: at a mark, or where the lender stands; ascending."""
    assert record.loan is not None
    lender = read_cadence(txn, record.loan.lender)
    marks = (mark for mark in record.loan.marks if mark > record.position)
    return () if lender is None else (*marks, lender.position)


def followed(txn: WriteTransaction, record: CadenceRecord, position: int) -> CadenceRecord | None:
    """Return the record of a build behind an epoch by which it follows the log; None where none may end there now.

    What was noted for it is forgotten where it has come to where its lender stands: it sees that as it is.

    Args:
        txn: the transaction that publishes the epoch.
        record: the build's; it may have no loan.
        position: where the epoch ends.
    """
    if record.loan is None:
        return record
    ends = ends_of_following(txn, record)
    if position not in ends:
        return None
    if position == ends[-1]:
        for state in record.loan.states:
            txn.drop(f"{record.name}/{state}")
        return replace(record, loan=replace(record.loan, marks=(position,)))
    return record


def end_loans(txn: WriteTransaction, cadence: str, kept: Collection[str]) -> None:
    """Let builds begin anew that borrow state of ``cadence`` which is not among ``kept``.

    Args:
        txn: the transaction of the views space in which that state goes, or is no longer kept up to date.
        cadence: the lender.
        kept: its state tables.
    """
    for record in borrowers_of(txn, cadence):
        loan = record.loan
        if loan is not None and (not loan.marks or any(f"{cadence}/{state}" not in kept for state in loan.states)):
            begin_anew(txn, record)


def begin_anew(txn: WriteTransaction, record: CadenceRecord) -> None:
    """Remove what a build has filled so far, and let it begin anew, under other epoch numbers.

    Args:
        txn: a transaction of the views space.
        record: the build's.
    """
    for name in txn.databases():
        if name.startswith(f"{record.name}/"):
            txn.drop(name)
    write_cadence(txn, replace(record, epoch=record.epoch + 1, build=Build.not_begun(), loan=None))
