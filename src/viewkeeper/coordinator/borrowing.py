"""Which state a new view borrows from the cadence that it will join (``pipeline/loans.py`` says what a loan is)."""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.coordinator.core import Coordinator, members_of
from viewkeeper.pipeline.records import Loan
from viewkeeper.plan.compile import Compilation
from viewkeeper.plan.compile.borrowing import borrowing
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog


def loan_for(
    coordinator: Coordinator, txn: ReadTransaction, catalog: Catalog, build: str, lender: str, kept: Collection[str]
) -> Loan | None:
    """Return what the views of ``build`` borrow; None where there is nothing, or where they replace others.

    A version that replaces another inherits nothing: what others share with that may be wrong as well.

    Args:
        coordinator: its planner.
        txn: a transaction of the views space.
        catalog: has the views.
        build: the cadence in which they are filled.
        lender: the cadence that they will join.
        kept: the state tables that its views keep.
    """
    views = members_of(catalog, build)
    if not kept or any(view.replaces is not None for view in views):
        return None
    compilation = coordinator.planner.compile(catalog, views, build)
    return loan_of(txn, compilation, build, lender, kept)


def loan_of(
    txn: ReadTransaction, compilation: Compilation, build: str, lender: str, kept: Collection[str]
) -> Loan | None:
    """Return what views compiled under the name ``build`` would borrow; see ``loan_for``."""

    def short(state: str) -> str:
        return state.removeprefix(f"{build}/")

    own = {state for view in compilation.views for state in compilation.states_of(view)}
    there = {state for state in own if f"{lender}/{short(state)}" in kept}
    bags = {compilation.bag_of(node.id) for node in compilation.circuit.nodes}
    failing = {state for state in there & bags if txn.count(f"{lender}/{short(state)}")}
    found = borrowing(compilation, there, failing)
    if not found.states:
        return None
    return Loan(lender, tuple(sorted(map(short, found.states))), tuple(sorted(found.tables)))
