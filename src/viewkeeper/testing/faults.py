"""Faults for the simulation: a process that dies at a failpoint, and an executor whose tasks are lost and run twice."""

from __future__ import annotations

from collections.abc import Callable

from viewkeeper.clock import SYSTEM_CLOCK, Chance, Clock
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.executors.spark.packing import pack
from viewkeeper.executors.spark.payload import from_payload
from viewkeeper.executors.spark.shares import shares_of
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, fence
from viewkeeper.pipeline.intake import Share, deltas_of
from viewkeeper.pipeline.loans import published_state, written_by
from viewkeeper.pipeline.recompute import lookups_for, settled
from viewkeeper.pipeline.ring import Ring
from viewkeeper.store.key_value import Space
from viewkeeper.zset.delta import Delta


class SimulatedCrash(BaseException):
    """The simulated process dies here; like a real death, no ``except Exception`` stops it."""


class At:
    """What happens from the n-th arrival at a failpoint on; given to ``failpoints.hooked``.

    Args:
        name: the failpoint.
        arrival: which arrival, from 1.
        then: what happens there.
        times: how often.
    """

    def __init__(self, name: str, arrival: int, then: Callable[[], None], times: int = 1) -> None:
        self.name = name
        self.left = arrival
        self.then = then
        self.times = times

    def __call__(self, name: str) -> None:
        """Count an arrival."""
        if name != self.name or not self.times:
            return
        self.left -= 1
        if self.left <= 0:
            # Counted first: what happens may itself come by here.
            self.times -= 1
            self.then()


def crash() -> None:
    """Let the simulated process die.

    Raises:
        SimulatedCrash: always.
    """
    raise SimulatedCrash


class FaultyExecutor:
    """Runs epochs in several tasks as Spark does: some attempts are lost, some run twice, and it must not matter.

    Each task is one owner's part of one level; what it sends travels as the packed exchange does. An epoch is also run
    once more as a whole, and both must want the same written: a step is a pure function of its plan.

    Args:
        base: the base space.
        views: the views space.
        chance: draws the number of tasks, which attempts are lost, and in which order rows arrive.
        clock: by which epochs are measured.
    """

    name = "local"

    def __init__(self, base: Space, views: Space, chance: Chance, clock: Clock = SYSTEM_CLOCK) -> None:
        self._base = base
        self._views = views
        self._chance = chance
        self._whole = LocalExecutor(base, views, clock)
        self.lost = 0

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run ``plan`` and return the write sets of the attempts that won."""
        whole = self._whole.run(plan)
        if plan.scan is not None and plan.scan.is_empty:
            return whole
        writes = settled(self._views, fence(plan), plan.members.mixed, self._tasks(plan, self._chance.randint(1, 3)))
        assert merged(writes) == merged(whole.writes), "an epoch in several tasks is another one than in one"
        return EpochResult(writes, self.name, measured=whole.measured)

    def clear(self, plan: EpochPlan) -> None:
        """Do nothing: nothing is staged outside this process."""

    def _tasks(self, plan: EpochPlan, partitions: int) -> list[WriteSet]:
        circuit, ring = plan.members.circuit, Ring(partitions)
        with self._base.read() as base, self._views.read() as views:
            shares = shares_of(base, views, plan, partitions)
        arrived: dict[tuple[int, int], list[Delta]] = {}
        writes: list[WriteSet] = []
        for level in range(circuit.levels):
            sent: dict[tuple[int, int], list[Delta]] = {}
            for partition in range(partitions):
                here = {node.id: arrived.get((partition, node.id), []) for node in circuit.crossings}
                found = {id_: self._joined(parts) for id_, parts in here.items() if parts}
                wanted = {id_: delta for id_, delta in found.items() if circuit.nodes[id_].level == level}
                for attempt in range(self._chance.choice((1, 1, 2))):
                    written, leaves = self._attempt(plan, level, wanted, shares[partition] if not level else ())
                    self.lost += attempt
                writes.append(written)
                for exchange, delta in leaves.items():
                    node = circuit.nodes[exchange]
                    for parcel in pack(node, delta, ring):
                        piece = from_payload(parcel.payload, node.operator.schema.to_arrow())
                        sent.setdefault((parcel.owner, exchange), []).append(piece)
            for place, deltas in sent.items():
                arrived.setdefault(place, []).extend(deltas)
        return writes

    def _joined(self, parts: list[Delta]) -> Delta:
        """Return what arrived, in any order of the senders."""
        shuffled = self._chance.sample(parts, len(parts))
        return Delta.concat(shuffled, parts[0].schema)

    def _attempt(
        self, plan: EpochPlan, level: int, arrived: dict[int, Delta], shares: tuple[Share, ...]
    ) -> tuple[WriteSet, dict[int, Delta]]:
        borrowed = plan.members.borrowed
        writes = written_by(borrowed)
        if not arrived and not shares:
            return writes, {}
        with published_state(self._views, borrowed, plan.after, fence(plan)) as lookups:
            read = deltas_of(self._base, lookups, plan, shares)
            context = StepContext(lookups_for(plan.members.mixed, lookups), writes)
            return writes, plan.members.circuit.step_level(level, arrived, read, context)


def merged(writes: list[WriteSet]) -> tuple[dict[str, dict[bytes, bytes | None]], dict[str, dict[bytes, int]]]:
    """Return what write sets want written, as one.

    Raises:
        AssertionError: where two of them write one key.
    """
    tables: dict[str, dict[bytes, bytes | None]] = {}
    bags: dict[str, dict[bytes, int]] = {}
    for one in writes:
        for state, pieces in one.tables.items():
            for piece in pieces:
                known = tables.setdefault(state, {})
                assert known.keys().isdisjoint(piece.keys), f"two tasks write one key of {state}"
                assert piece.keys == sorted(piece.keys), f"the keys of {state} do not ascend"
                known.update(zip(piece.keys, piece.values, strict=True))
        for state, weights in one.merges.items():
            bag = bags.setdefault(state, {})
            for text, weight in weights.items():
                bag[text] = bag.get(text, 0) + weight
    return tables, {state: {t: w for t, w in bag.items() if w} for state, bag in bags.items() if any(bag.values())}
