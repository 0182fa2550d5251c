"""The local executor: an epoch in this process, without Spark. For small deltas, tests and the simulation."""

from __future__ import annotations

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.log.reader import check_not_purged
from viewkeeper.operators.state import StepContext, WriteSet
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, fence
from viewkeeper.pipeline.intake import epoch_deltas
from viewkeeper.store.key_value import Space
from viewkeeper.views.lookups import SpaceLookups


class LocalExecutor:
    """Runs epochs in the calling process.

    Args:
        base: the base space, for the log.
        views: the views space, for published state.
        clock: bounds how long read transactions stay open.
    """

    name = "local"

    def __init__(self, base: Space, views: Space, clock: Clock = SYSTEM_CLOCK) -> None:
        self._base = base
        self._views = views
        self._clock = clock

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run ``plan`` and return its write set."""
        writes = WriteSet()
        deltas = epoch_deltas(self._base, plan)
        # Asked afterwards: the log is purged from its beginning, so what is there now was there all the time; and what
        # somebody else has published may be purged.
        with self._views.read() as txn:
            fence(plan)(txn)
        if plan.scan is None:
            with self._base.read() as txn:
                check_not_purged(txn, plan.after)
        with SpaceLookups(self._views, fence(plan), self._clock) as lookups:
            plan.members.compilation.circuit.step(deltas, StepContext(lookups, writes))
        return EpochResult([writes], self.name)

    def clear(self, plan: EpochPlan) -> None:
        """Do nothing: nothing is staged outside this process."""
