"""Filling a view with the help of arrangements that others keep: what need not be filled, what need not even be read.

    customers ── arrange by id ───┐  kept by others, complete              fill: orders are read, customers are not
    orders ── arrange by customer ┴─ JOIN ── AGGREGATE ── view rows        own state: aggregate and rows

Some base tables are *complete* from the fill's beginning, the others are read piece by piece. At every moment the state
of the fill is what the circuit makes of the complete tables as of the fill's position and of the pieces read so far.
A subplan over complete tables alone must therefore say nothing while the view is filled, which is right where

- it enters a join: pairs of nothing are none, and each piece meets all rows of the complete side;
- it enters a semi join, or the right side of an anti join, for the same reason;
- the join looks it up in an arrangement that others keep, which is complete.

Anywhere else (a branch of UNION ALL, below an aggregate, the left side of an anti join) its rows would be missing, so
its tables are read. An arrangement over tables that are read is borrowed too, where nobody looks it up while the view
is filled: where the other side of all its joins is complete. The right side of a semi join is always looked up.

    orders ── arrange, JOIN, ... ── AGGREGATE ──┐  kept by others     fill: its rows are read from its state, nothing
                                                └─ FILTER ── view     below it is read or run

An operator whose output stands in its state (``operators/kept_rows.py``) is read like a table, where no table below it
is read elsewhere and no two such operators rest on one table. So what is above sees tables that have nothing to do with
each other, of which any pieces could be all that there is.

Once the view is filled, it follows the log by its own circuit: with the deltas of all tables, looking up what it has
borrowed as of its own position (views/borrowed.py), and writing all but that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from viewkeeper.operators.arrange import Arrange
from viewkeeper.operators.circuit import AnyOperator, Circuit, Node, Source
from viewkeeper.operators.join import Join
from viewkeeper.operators.kept_rows import Keeper
from viewkeeper.operators.semi_join import SemiJoin
from viewkeeper.operators.union import UnionAll
from viewkeeper.operators.view_rows import ViewRows
from viewkeeper.plan.compile.compiler import Compilation, states_of_operator


@dataclass(frozen=True)
class Borrowing:
    """What a view is filled without.

    Args:
        states: the state tables that it looks up where others keep them; empty: it is filled from base tables alone.
        tables: entries of the sources that need not be read, base tables and kept rows.
        kept_rows: fingerprints of the operators whose rows come from their state.
    """

    states: frozenset[str] = frozenset()
    tables: frozenset[int] = frozenset()
    kept_rows: frozenset[str] = frozenset()


Compile: TypeAlias = Callable[[frozenset[str]], Compilation]
"""Compiles the same views, the rows of some operators coming from their state: ``compile_views``."""


def borrowing(compile_: Compile, kept: Collection[str], failing: Collection[str]) -> Borrowing:
    """Return what views can be filled without.

    Args:
        compile_: compiles the views.
        kept: those of its state tables, error bags included, that others keep as well.
        failing: those of them that are bags with errors in them: what such errors leave out is not complete.
    """
    everything = _Circuit(compile_(frozenset()).circuit)
    kept_rows = everything.rows_to_keep(kept, failing)
    circuit = _Circuit(compile_(kept_rows).circuit) if kept_rows else everything
    read, _ = circuit.reached(())
    usable = {
        operator.state: node.id
        for node in circuit.nodes
        if node.id in read
        and isinstance(operator := node.operator, Arrange)
        and circuit.is_kept(node.id, kept, failing)
    }
    tables: frozenset[int] = frozenset()
    for node in sorted(usable.values(), key=circuit.preference):
        wider = tables | circuit.tables_below[node]
        if circuit.live(wider, usable) is not None:
            tables = wider
    live = circuit.live(tables, usable)
    if live is None or not (tables or kept_rows):
        # Without complete tables each side of a join looks up the other's arrangement, as far as that is filled.
        return Borrowing()
    states = everything.states() - circuit.states(live)
    assert states <= set(kept), "what is idle is kept, or stands below what is"
    return Borrowing(states, tables | (everything.tables() - circuit.tables(live)), kept_rows)


def filling_circuit(circuit: Circuit, borrowed: Borrowing) -> Circuit:
    """Return the part of ``circuit`` that fills what is not borrowed: complete subplans are silent in it.

    Args:
        circuit: of the views, compiled with the kept rows that are borrowed.
        borrowed: what is.
    """
    here = _Circuit(circuit)
    live = here.live(borrowed.tables, borrowed.states)
    assert live is not None, "it was when it was borrowed, and depends on nothing else"
    kept: list[Node] = []
    places: dict[int, int] = {}
    for node in circuit.nodes:
        if node.id not in live:
            continue
        inputs = []
        for input_ in node.inputs:
            if here.is_complete(input_, borrowed.tables):
                nothing = UnionAll(circuit.nodes[input_].operator.schema, 0)
                kept.append(Node(len(kept), nothing, (), node.level, "nothing"))
                inputs.append(kept[-1].id)
            else:
                inputs.append(places[input_])
        places[node.id] = len(kept)
        kept.append(replace(node, id=len(kept), inputs=tuple(inputs)))
    return Circuit(tuple(kept))


def following_circuit(circuit: Circuit, borrowed: Borrowing) -> Circuit:
    """Return ``circuit`` without the arrangements that are borrowed: nobody reads their output, others write them."""
    kept = [n for n in circuit.nodes if not (isinstance(n.operator, Arrange) and n.operator.state in borrowed.states)]
    places = {node.id: number for number, node in enumerate(kept)}
    return Circuit(tuple(replace(n, id=places[n.id], inputs=tuple(places[i] for i in n.inputs)) for n in kept))


class _Circuit:
    """A circuit, with what is asked of it again and again.

    Args:
        circuit: the circuit.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.nodes = circuit.nodes
        self.tables_below: list[frozenset[int]] = []
        for node in self.nodes:
            own = {node.operator.entry} if isinstance(node.operator, Source) else set()
            self.tables_below.append(frozenset(own.union(*(self.tables_below[i] for i in node.inputs))))
        self._arranged = {n.operator.state: n.id for n in self.nodes if isinstance(n.operator, Arrange)}
        self._joined = {state for n in self.nodes if isinstance(n.operator, Join) for state in n.operator.looks_up}
        self._ends = {n.id for n in self.nodes if isinstance(n.operator, ViewRows)}

    def states(self, nodes: Collection[int] | None = None) -> frozenset[str]:
        """Return the state of ``nodes``, error bags apart; by default of all."""
        return frozenset(s for n in self.nodes if nodes is None or n.id in nodes for s in n.operator.states)

    def tables(self, nodes: Collection[int] | None = None) -> frozenset[int]:
        """Return the entries of the sources among ``nodes``; by default of all."""
        return frozenset(
            n.operator.entry for n in self.nodes if isinstance(n.operator, Source) and (nodes is None or n.id in nodes)
        )

    def reached(self, stops: Collection[int]) -> tuple[set[int], set[int]]:
        """Return the nodes from which views get their rows without passing ``stops``, and those of ``stops`` met."""
        found: set[int] = set()
        waiting = [*self._ends]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += [] if at in stops else [*self.nodes[at].inputs, *self._looked_up(self.nodes[at].operator)]
        met = found & set(stops)
        return found - met, met

    def is_kept(self, node: int, kept: Collection[str], failing: Collection[str]) -> bool:
        """Return whether all state by which the output of ``node`` is known is kept by others, and lacks no row."""
        below = self.states_below(node)
        return below <= set(kept) and not below & set(failing)

    def rows_to_keep(self, kept: Collection[str], failing: Collection[str]) -> frozenset[str]:
        """Return fingerprints of the operators whose rows can be read from state that others keep.

        Of operators that rest on a table that is read elsewhere too, the highest one is given up first: those below it
        may do.
        """
        able = {
            n.id
            for n in self.nodes
            if isinstance(n.operator, Keeper) and self.tables_below[n.id] and self.is_kept(n.id, kept, failing)
        }
        while True:
            read, met = self.reached(able)
            places = Counter(table for node in met for table in self.tables_below[node])
            elsewhere = {t for t, count in places.items() if count > 1} | self.tables(read)
            torn = [node for node in met if self.tables_below[node] & elsewhere]
            if not torn:
                return frozenset(self.nodes[node].fingerprint for node in met)
            able.remove(max(torn))

    def is_complete(self, node: int, tables: Collection[int]) -> bool:
        """Return whether the output of ``node`` is that of the complete ``tables`` alone."""
        below = self.tables_below[node]
        return bool(below) and below <= set(tables)

    def preference(self, node: int) -> tuple[bool, int]:
        """Order arrangements: first those by which a piece makes no more rows than it has, of a join the right side.

        A unique one gives each row of the other side one partner at most, and a semi join makes no pairs; where its
        left side were complete, its right side would have to be filled.
        """
        operator = self.nodes[node].operator
        assert isinstance(operator, Arrange)
        return operator.state in self._joined and not operator.is_unique, -node

    def states_below(self, node: int) -> set[str]:
        """Return the state that keeps the output of ``node`` up to date, its own and that which joins look up."""
        found: set[int] = set()
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += [*self.nodes[at].inputs, *self._looked_up(self.nodes[at].operator)]
        return {state for i in found for state in states_of_operator(self.nodes[i].operator)}

    def _looked_up(self, operator: AnyOperator) -> Iterable[int]:
        return (self._arranged[state] for state in operator.looks_up)

    def live(self, tables: Collection[int], usable: Collection[str]) -> set[int] | None:
        """Return the nodes that a fill runs while ``tables`` are complete; None where that would not be right.

        Args:
            tables: entries of sources.
            usable: the arrangements that may be borrowed.
        """
        live = set(self._ends)
        for node in reversed(self.nodes):
            if node.id not in live:
                continue
            complete = [number for number, i in enumerate(node.inputs) if self.is_complete(i, tables)]
            if not self._may_be_silent(node.operator, complete, len(node.inputs), usable):
                return None
            live |= {i for number, i in enumerate(node.inputs) if number not in complete}
            live |= self._filled(node.operator, complete, usable)
        return live

    @staticmethod
    def _may_be_silent(operator: AnyOperator, complete: list[int], inputs: int, usable: Collection[str]) -> bool:
        if not complete:
            return True
        if len(complete) == inputs or not isinstance(operator, Join | SemiJoin):
            return False
        (side,) = complete
        arranged = operator.right if side else operator.left
        return arranged.state in usable and (bool(side) or isinstance(operator, Join) or not operator.anti)

    def _filled(self, operator: AnyOperator, complete: list[int], usable: Collection[str]) -> set[int]:
        """Return the arrangements that ``operator`` looks up and that are filled.

        Of a complete side no rows come, so where there is one the other side's arrangement can be borrowed as well. But
        a semi join whose left side is complete looks up of its right side whether a key had a row before the piece.
        """
        if not isinstance(operator, Join | SemiJoin):
            return set(self._looked_up(operator))
        if isinstance(operator, SemiJoin) and complete == [0]:
            return {self._arranged[operator.right.state]}
        if complete:
            (side,) = complete
            other = operator.left if side else operator.right
            return set() if other.state in usable else {self._arranged[other.state]}
        return {self._arranged[operator.left.state], self._arranged[operator.right.state]}
