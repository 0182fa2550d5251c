"""Which state a new view borrows from the cadence that it will join (``pipeline/loans.py`` says what a loan is)."""

from __future__ import annotations

from collections.abc import Collection

from viewkeeper.coordinator.cadences import members_of
from viewkeeper.pipeline.records import Loan
from viewkeeper.plan.compile.borrowing import Compile, borrowing
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.views.catalog import Catalog


def may_borrow(catalog: Catalog, build: str) -> bool:
    """Return whether the views of ``build`` may inherit state: versions that replace others must not.

    What others share with a replaced version may be wrong as well.
    """
    return all(view.replaces is None for view in members_of(catalog, build))


def loan_of(txn: ReadTransaction, compile_: Compile, build: str, lender: str, kept: Collection[str]) -> Loan | None:
    """Return what views that are filled borrow; None where that is nothing.

    Args:
        txn: a transaction of the views space.
        compile_: compiles the views.
        build: the name under which they are compiled.
        lender: the cadence that they will join.
        kept: the state tables that its views keep.
    """

    def short(state: str) -> str:
        return state.removeprefix(f"{build}/")

    compilation = compile_(frozenset())
    own = {state for view in compilation.views for state in compilation.states_of(view)}
    there = {state for state in own if f"{lender}/{short(state)}" in kept}
    bags = {compilation.bag_of(node.id) for node in compilation.circuit.nodes}
    failing = {state for state in there & bags if txn.count(f"{lender}/{short(state)}")}
    found = borrowing(compile_, there, failing)
    if not found.states:
        return None
    states, tables = sorted(map(short, found.states)), sorted(found.tables)
    return Loan(lender, tuple(states), tuple(tables), tuple(sorted(found.kept_rows)))
