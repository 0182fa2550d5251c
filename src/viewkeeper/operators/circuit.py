"""CIRCUIT: the operators of all views of a cadence, wired, cut into levels, and stepped in order.

    level 0                     level 1                          level 2
    source -> filter -> ... ->| exchange -> join -> partial ->| exchange -> aggregate -> view rows
                              |                               |
                              +-- rows move to their key's owner here

A level is what one task does without rows moving. In one process the levels simply run one after the other; on Spark
each is a stage, and what an exchange holds travels between them. The circuit is the same object in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from viewkeeper.operators.base import Operator, Stateless
from viewkeeper.operators.catalyst import Catalyst
from viewkeeper.operators.exchange import Exchange
from viewkeeper.operators.kept_rows import KeptRows
from viewkeeper.operators.probe import Probe
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Source(Stateless):
    """Where the changes of a base table enter, or rows that are kept.

    Args:
        table: the table's id; for kept rows a negative number, see ``kept_entry``.
        schema: the columns.
        is_whole: whether all of the table enters in place of its changes, as for views that are recomputed.
        kept: what enters in place of a table's rows, as for views that are filled.
    """

    table: int
    schema: Schema
    is_whole: bool = False
    kept: KeptRows | None = None

    @property
    def entry(self) -> int:
        """Under which number its rows are handed to ``Circuit.step``."""
        return whole_entry(self.table) if self.is_whole else self.table


def whole_entry(table: int) -> int:
    """Return the number under which all rows of ``table`` are handed to ``Circuit.step``: no table has it as its id."""
    return ~table


def kept_entry(number: int) -> int:
    """Return the number under which the kept rows ``number`` are handed to ``Circuit.step``.

    Views that are filled read no table as a whole, so these numbers may be those of ``whole_entry``.
    """
    return -2 - number


AnyOperator: TypeAlias = Source | Operator
Compute: TypeAlias = Callable[[Catalyst, Delta], Delta]
"""What computes the rows that reach a way through Spark, and returns them as they come back."""


@dataclass(frozen=True)
class Node:
    """An operator in its place.

    Args:
        id: its position in the circuit.
        operator: what it does.
        inputs: ids of the nodes that it reads, all smaller than ``id``.
        level: the stage in which it runs.
        fingerprint: equal for equal subplans, in any circuit.
    """

    id: int
    operator: AnyOperator
    inputs: tuple[int, ...]
    level: int
    fingerprint: str


@dataclass(frozen=True)
class Circuit:
    """Nodes in an order in which inputs come first."""

    nodes: tuple[Node, ...]

    def beside(self, other: Circuit) -> Circuit:
        """Return both circuits as one, each as if it were alone: the nodes of ``other`` follow."""
        count = len(self.nodes)
        moved = (replace(n, id=n.id + count, inputs=tuple(i + count for i in n.inputs)) for n in other.nodes)
        return Circuit((*self.nodes, *moved))

    def of_whole_tables(self) -> Circuit:
        """Return the circuit with all of each table entering in place of its changes."""
        nodes = (
            replace(n, operator=replace(n.operator, is_whole=True)) if isinstance(n.operator, Source) else n
            for n in self.nodes
        )
        return Circuit(tuple(nodes))

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return 1 + max((node.level for node in self.nodes), default=0)

    @cached_property
    def tables(self) -> tuple[int, ...]:
        """Ids of the base tables whose changes it reads."""
        sources = (n.operator for n in self.nodes if isinstance(n.operator, Source))
        return tuple(source.table for source in sources if not source.is_whole and source.kept is None)

    @cached_property
    def whole_tables(self) -> tuple[int, ...]:
        """Ids of the base tables that it reads as a whole."""
        return tuple(n.operator.table for n in self.nodes if isinstance(n.operator, Source) and n.operator.is_whole)

    @cached_property
    def kept_rows(self) -> Mapping[int, KeptRows]:
        """The rows that it reads from state, by entry."""
        sources = (n.operator for n in self.nodes if isinstance(n.operator, Source))
        return {source.entry: source.kept for source in sources if source.kept is not None}

    @cached_property
    def crossings(self) -> tuple[Node, ...]:
        """The exchanges, and the ways through Spark, whose rows move to another level."""
        return tuple(n for n in self.nodes if self._crosses(n))

    def _crosses(self, node: Node) -> bool:
        return isinstance(node.operator, Exchange | Catalyst) and self.nodes[node.inputs[0]].level != node.level

    def step(
        self,
        deltas: Mapping[int, Delta],
        context: StepContext,
        probe: Probe | None = None,
        compute: Compute | None = None,
    ) -> dict[int, Delta]:
        """Run one epoch in one process.

        Args:
            deltas: the changes by table id (all rows: by ``whole_entry``, kept rows: by ``kept_entry``); absent tables
                have not changed.
            context: published state and the write set to fill.
            probe: measures each operator.
            compute: computes what only Spark can; None where no rows reach such an expression.

        Returns:
            What changes in the output of each node that no other reads.
        """
        values: dict[int, Delta] = {}
        for node in self.nodes:
            if compute is not None and isinstance(node.operator, Catalyst) and values[node.inputs[0]].num_rows:
                arrived = compute(node.operator, values[node.inputs[0]])
                values[node.id] = node.operator.step((arrived,), context)
            else:
                values[node.id] = self._run(node, values, deltas, context)
            if probe is not None:
                probe.passed(node.id, values[node.id].num_rows)
            for done in self._done_at[node.id]:
                del values[done]
        return values

    @cached_property
    def _done_at(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the nodes whose rows nobody reads after it: they need not be kept any longer."""
        last: dict[int, int] = {}
        for node in self.nodes:
            last.update(dict.fromkeys(node.inputs, node.id))
        done: list[list[int]] = [[] for _ in self.nodes]
        for node_id, at in last.items():
            done[at].append(node_id)
        return tuple(map(tuple, done))

    def step_level(
        self,
        level: int,
        arrived: Mapping[int, Delta],
        deltas: Mapping[int, Delta],
        context: StepContext,
        probe: Probe | None = None,
    ) -> dict[int, Delta]:
        """Run one level with what has arrived at its exchanges.

        Args:
            level: which level.
            arrived: the rows that earlier levels sent, by exchange id.
            deltas: the changes by table id (level 0).
            context: published state and the write set to fill.
            probe: measures each operator.

        Returns:
            The rows that leave for later levels, by exchange id.
        """
        values: dict[int, Delta] = {}
        for node in self.nodes:
            if node.level != level:
                continue
            if isinstance(node.operator, Exchange | Catalyst) and self._crosses(node):
                delta = _known(arrived.get(node.id), node.operator.arrives)
                values[node.id] = node.operator.step((delta,), context)
            elif self._matters(node, values):
                values[node.id] = self._run(node, values, deltas, context)
            else:
                values[node.id] = Delta.empty(node.operator.schema.to_arrow())
            if probe is not None:
                probe.passed(node.id, values[node.id].num_rows)
        sent = ((e.id, values[e.inputs[0]]) for e in self.crossings if e.inputs[0] in values)
        return {exchange: delta for exchange, delta in sent if delta.num_rows}

    def _matters(self, node: Node, values: Mapping[int, Delta]) -> bool:
        """Tasks skip operators without rows: only the first epoch (in one process) must run them all."""
        return not node.inputs or any(values[i].num_rows for i in node.inputs)

    def _run(self, node: Node, values: Mapping[int, Delta], deltas: Mapping[int, Delta], context: StepContext) -> Delta:
        operator = node.operator
        if isinstance(operator, Source):
            return _known(deltas.get(operator.entry), operator.schema)
        return operator.step(tuple(values[i] for i in node.inputs), context)

    def whole(self, tables: Mapping[int, Delta]) -> dict[int, Delta]:
        """Return the output of every node over complete tables, by the plain twins: the local full recomputation.

        Raises:
            EvaluationError: an expression cannot be computed for some row.
        """
        values: dict[int, Delta] = {}
        for node in self.nodes:
            operator = node.operator
            if isinstance(operator, Source):
                values[node.id] = _known(tables.get(operator.table), operator.schema)
            else:
                values[node.id] = operator.whole(tuple(values[i] for i in node.inputs))
        return values


def _known(delta: Delta | None, schema: Schema) -> Delta:
    return Delta.empty(schema.to_arrow()) if delta is None else delta
