"""Loans: a view that is filled looks state up that its target cadence keeps, and neither fills nor writes it.

A loan stands in the record of the build (``records.Loan``). It is over with the swap, or by ``end_loans``, after which
the build begins anew; both change the build's record, so its fence tells whoever looks anything up.

    epoch of the lender     what its keys held before goes to the builds that borrow them (views/borrowed.py);
                            an epoch that does not keep a lent table up to date, its views having gone, ends the loan
    epoch of the build      looks up as of its own position; one that follows the log ends where the lender stands, and
                            what was noted is forgotten in the same transaction
    what drops or replaces  a lent table ends its loans in the same transaction
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    space: Space, borrowed: Borrowed | None, fence: Fence | None = None, clock: Clock = SYSTEM_CLOCK
) -> SpaceLookups:
    """Return lookups of the state published before an epoch, borrowed tables as of its own position.

    Args:
        space: the views space.
        borrowed: what the epoch borrows.
        fence: called with each new read transaction.
        clock: tells how old a read transaction is.
    """
    if borrowed is None:
        return SpaceLookups(space, fence, clock)
    return BorrowedLookups(space, borrowed.lent_as, fence, clock)


def written_by(borrowed: Borrowed | None) -> WriteSet:
    """Return an empty write set for an epoch: what it borrows, others write."""
    return WriteSet() if borrowed is None else WriteSet(lent=borrowed.states)


def kept_for_borrowers(txn: WriteTransaction, cadence: str, compilation: Compilation) -> dict[str, tuple[str, ...]]:
    """Return for each state table of ``cadence`` the tables of the builds that borrow it.

    Loans of tables that ``compilation`` does not keep up to date end here.

    Args:
        txn: the transaction that publishes an epoch of ``cadence``.
        cadence: the lender.
        compilation: the views that the epoch refreshes.
    """
    if not borrowers_of(txn, cadence):
        return {}
    end_loans(txn, cadence, {state for node in compilation.circuit.nodes for state in node.operator.states})
    found: dict[str, tuple[str, ...]] = {}
    for record in borrowers_of(txn, cadence):
        for state in record.loan.states if record.loan is not None else ():
            lent = f"{cadence}/{state}"
            found[lent] = (*found.get(lent, ()), f"{record.name}/{state}")
    return found


def note_old_values(txn: WriteTransaction, state: str, borrowers: Sequence[str], pieces: Sequence[StateWrites]) -> None:
    """Keep for the tables ``borrowers`` what ``pieces`` are about to change in ``state``."""
    for borrower in borrowers:
        for piece in pieces:
            keep_old_values(txn, state, borrower, piece.keys)


def is_where_lender_stands(txn: ReadTransaction, record: CadenceRecord, position: int) -> bool:
    """Return whether an epoch of a build that ends at ``position`` ends where its lender stands; it may have none."""
    if record.loan is None:
        return True
    lender = read_cadence(txn, record.loan.lender)
    return lender is not None and lender.position == position


def forget_old_values(txn: WriteTransaction, record: CadenceRecord) -> None:
    """Let a build that has come to where its lender stands see the lender's tables as they are."""
    for state in record.loan.states if record.loan is not None else ():
        txn.drop(f"{record.name}/{state}")


def end_loans(txn: WriteTransaction, cadence: str, kept: Collection[str]) -> None:
    """Let builds begin anew that borrow state of ``cadence`` which is not among ``kept``.

    Args:
        txn: the transaction of the views space in which that state goes, or is no longer kept up to date.
        cadence: the lender.
        kept: its state tables.
    """
    for record in borrowers_of(txn, cadence):
        if record.loan is not None and any(f"{cadence}/{state}" not in kept for state in record.loan.states):
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
