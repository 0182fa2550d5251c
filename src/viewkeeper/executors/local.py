"""The local executor: an epoch in this process, without Spark. For small deltas, tests and the simulation."""

from __future__ import annotations

from viewkeeper.clock import SYSTEM_CLOCK, Clock
from viewkeeper.errors import ConflictError
from viewkeeper.log.reader import check_not_purged
from viewkeeper.operators.circuit import Compute
from viewkeeper.operators.probe import Probe
from viewkeeper.operators.state import StepContext
from viewkeeper.pipeline.costs import Measured
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, fence
from viewkeeper.pipeline.intake import epoch_deltas
from viewkeeper.pipeline.loans import published_state, written_by
from viewkeeper.pipeline.recompute import lookups_for, settled
from viewkeeper.store.key_value import Space


class LocalExecutor:
    """Runs epochs in the calling process.

    Args:
        base: the base space, for the log.
        views: the views space, for published state.
        clock: bounds how long read transactions stay open.
        compute: computes expressions that only Spark can; None where none are.
    """

    name = "local"

    def __init__(self, base: Space, views: Space, clock: Clock = SYSTEM_CLOCK, compute: Compute | None = None) -> None:
        self._base = base
        self._views = views
        self._clock = clock
        self._compute = compute

    def run(self, plan: EpochPlan) -> EpochResult:
        """Run ``plan`` and return its write set."""
        borrowed = plan.members.borrowed
        writes = written_by(borrowed)
        started = self._clock.monotonic_seconds()
        probe = Probe(self._clock.monotonic_seconds)
        probe.begin()
        with published_state(self._views, borrowed, plan.after, fence(plan), self._clock) as lookups:
            try:
                deltas = epoch_deltas(self._base, lookups, plan, probe)
            except ConflictError:
                # What others have published may be purged: then that is the reason.
                self._check_fence(plan)
                raise
            # Asked afterwards: the log is purged from its beginning, so what is there now was there all the time; and
            # what somebody else has published may be purged.
            self._check_fence(plan)
            if plan.scan is None:
                with self._base.read() as txn:
                    check_not_purged(txn, plan.after)
            probe.begin()
            context = StepContext(lookups_for(plan.members.mixed, lookups), writes)
            plan.members.circuit.step(deltas, context, probe, self._compute)
        stepped = self._clock.monotonic_seconds()
        wanted = settled(self._views, fence(plan), plan.members.mixed, [writes])
        settling = self._clock.monotonic_seconds() - stepped
        measured = Measured(probe.seconds, probe.rows, stepped - started, settling)
        return EpochResult(wanted, self.name, measured=measured)

    def _check_fence(self, plan: EpochPlan) -> None:
        with self._views.read() as txn:
            fence(plan)(txn)

    def clear(self, plan: EpochPlan) -> None:
        """Do nothing: nothing is staged outside this process."""
