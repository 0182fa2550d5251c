"""Recomputing views within an epoch: their circuit runs over whole tables; what differs from the store is published.

    views to step        ── their circuit ──▶ changes of the log,      state as published ──▶ writes
    views to recompute   ── their circuit ──▶ all base rows as of S(E), no state         ──▶ rows and state at E
                                                             less what is stored at E−1  ──▶ writes

Both circuits run as one, so that Spark needs one job, and their writes are published together: an epoch is the same
epoch whichever way each of its views goes, by the equation that holds step and whole together. State that a stepped
view keeps as well is written by the step alone.

The recomputed circuit's state tables have names of their own under which nothing is stored. Its lookups show what it
makes of empty tables: the rows of global aggregates, which tasks without rows would not make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.circuit import Circuit, Compute
from viewkeeper.operators.overlay import Overlay
from viewkeeper.operators.state import Lookups, StepContext, WriteSet
from viewkeeper.operators.whole import NoState
from viewkeeper.pipeline.differences import Fence, MadeHere, Part, difference
from viewkeeper.plan.compile import Compilation
from viewkeeper.store.key_value import Space

_PREFIX = "whole:"


def whole_namespace(cadence: str) -> str:
    """Return the prefix of the state tables of the views of ``cadence`` that are recomputed."""
    return f"{_PREFIX}{cadence}"


@dataclass(frozen=True)
class Mixed:
    """A circuit that steps some views of a cadence and recomputes the others.

    Args:
        circuit: what an epoch runs.
        whole: the part of it that recomputes, by itself.
        views: ids of the views that are recomputed.
        tables: the state tables that recomputing writes: its name for each and the stored one.
        bags: likewise its error bags.
        rows: the stored tables with views' rows among them, and whose they are.
        made_of_nothing: what recomputing makes of empty tables, where it was made with Spark.
    """

    circuit: Circuit
    whole: Circuit
    views: frozenset[int]
    tables: tuple[tuple[str, str], ...]
    bags: tuple[tuple[str, str], ...]
    rows: Mapping[str, int]
    made_of_nothing: WriteSet | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is to be compared with what is stored, each table as a whole."""
        tables = [Part(made, stored, self.rows.get(stored)) for made, stored in self.tables]
        return (*tables, *(Part(made, stored, keys=None) for made, stored in self.bags))

    @cached_property
    def of_nothing(self) -> WriteSet:
        """What recomputing makes of empty tables."""
        return self._made_of_nothing(None) if self.made_of_nothing is None else self.made_of_nothing

    def with_of_nothing(self, compute: Compute) -> Mixed:
        """Return the circuit with what comes of empty tables, made where there is Spark for tasks that have none.

        Args:
            compute: computes expressions that only Spark can.
        """
        if not any(isinstance(node.operator, Catalyst) for node in self.whole.nodes):
            return self
        if "of_nothing" not in self.__dict__:
            self.__dict__["of_nothing"] = self._made_of_nothing(compute)  # for the epochs that follow, too
        return replace(self, made_of_nothing=self.of_nothing)

    def _made_of_nothing(self, compute: Compute | None) -> WriteSet:
        writes = WriteSet()
        self.whole.step({}, StepContext(NoState(), writes), compute=compute)
        return writes


def mix(stepped: Compilation | None, recomputed: Compilation) -> Mixed:
    """Return the circuit that steps some views and recomputes others.

    Args:
        stepped: the views to step; None for none.
        recomputed: the views to recompute, compiled under ``whole_namespace``.
    """
    whole = recomputed.circuit.of_whole_tables()
    beside = Circuit(()) if stepped is None else stepped.circuit
    kept = {bag for n in beside.nodes if (bag := _bag(stepped, n.id)) is not None}
    kept |= {state for n in beside.nodes for state in n.operator.states}
    tables = dict.fromkeys(state for n in whole.nodes for state in n.operator.states)
    bags = dict.fromkeys(bag for n in whole.nodes if (bag := _bag(recomputed, n.id)) is not None)
    rows = {stored_name(view.state): id_ for id_, view in recomputed.views.items()}
    return Mixed(
        beside.beside(whole), whole, frozenset(recomputed.views), _named(tables, kept), _named(bags, kept), rows
    )


def _bag(compilation: Compilation | None, node: int) -> str | None:
    return None if compilation is None else compilation.bag_of(node)


def stored_name(name: str) -> str:
    """Return the name under which a state table is stored that recomputing calls ``name``."""
    return name.removeprefix(_PREFIX)


def _named(names: Mapping[str, None], kept: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the names with those under which they are stored, without what a step writes."""
    return tuple((name, stored_name(name)) for name in names if stored_name(name) not in kept)


class MixedLookups:
    """Published state for the views that are stepped, what empty tables give for those that are recomputed.

    Args:
        mixed: the circuit.
        published: the state at E−1.
    """

    def __init__(self, mixed: Mixed, published: Lookups) -> None:
        self._published = published
        self._of_nothing: Lookups = NoState()
        if mixed.of_nothing.tables:
            overlay = Overlay(NoState())
            overlay.apply(mixed.of_nothing)
            self._of_nothing = overlay

    def _of(self, state: str) -> Lookups:
        return self._of_nothing if state.startswith(_PREFIX) else self._published

    def multi_get(self, state: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values at ``keys`` (ascending), None where absent."""
        return self._of(state).multi_get(state, keys)

    def scan(
        self, state: str, start: bytes, stop: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with start <= key < stop, in order."""
        return self._of(state).scan(state, start, stop, reverse)

    def multi_scan(
        self, state: str, prefixes: Sequence[bytes], limits: Sequence[int] | None = None
    ) -> tuple[np.ndarray, list[bytes]]:
        """Return for all pairs under the ``prefixes`` (ascending): index of the prefix (int64), value."""
        return self._of(state).multi_scan(state, prefixes, limits)


def lookups_for(mixed: Mixed | None, published: Lookups) -> Lookups:
    """Return what the steps of an epoch look up: published state, and below what is recomputed none."""
    return published if mixed is None else MixedLookups(mixed, published)


def settled(space: Space, fence: Fence, mixed: Mixed | None, writes: Sequence[WriteSet]) -> list[WriteSet]:
    """Return what is to be published: rows and state that were recomputed become their difference from what is stored.

    Args:
        space: the views space.
        fence: checks in each read transaction that the epoch is still the next one.
        mixed: the circuit that has run; None where no view was recomputed.
        writes: what its tasks want written.
    """
    if mixed is None:
        return list(writes)
    divided = [apart(one) for one in writes]
    made = [MadeHere(one) for one in (mixed.of_nothing, *(whole for _, whole in divided))]
    return [*(stepped for stepped, _ in divided), difference(space, fence, mixed.parts, made)]


def apart(writes: WriteSet) -> tuple[WriteSet, WriteSet]:
    """Return what was stepped and what was recomputed."""
    found = (WriteSet(), WriteSet())
    for state, pieces in writes.tables.items():
        found[state.startswith(_PREFIX)].tables[state] = pieces
    for bag, counts in writes.merges.items():
        found[bag.startswith(_PREFIX)].merges[bag] = counts
    for state, count in writes.rows.items():
        found[state.startswith(_PREFIX)].rows[state] = count
    return found
