"""Which executor runs an epoch: a fixed, settable number of waiting rows decides."""

from __future__ import annotations

from viewkeeper.errors import StoreError
from viewkeeper.pipeline.epoch import EpochPlan
from viewkeeper.settings import Settings


def choose(plan: EpochPlan, settings: Settings, available: tuple[str, ...]) -> str:
    """Return ``local`` or ``spark``.

    Args:
        plan: the epoch.
        settings: ``executor`` fixes the answer; under ``auto`` up to ``local_rows_max`` rows run in process.
        available: the executors there are.

    Raises:
        StoreError: ``SPARK_NEEDED`` where a view cannot be evaluated without Spark and there is none.
    """
    if plan.scan is not None and plan.scan.table < 0:
        return "local"  # reads nothing: only makes the rows of global aggregates
    if plan.members.needs_spark:
        if "spark" not in available:
            names = plan.members.cadence
            message = (
                f"Views of cadence {names!r} hold expressions that only Spark evaluates: set executor to auto or spark."
            )
            raise StoreError("SPARK_NEEDED", message)
        return "spark"
    if "spark" not in available or settings.executor == "local":
        return "local"
    if settings.executor == "spark":
        return "spark"
    return "local" if plan.rows <= settings.local_rows_max else "spark"
