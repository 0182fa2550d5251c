"""Which executor runs an epoch: a fixed, settable number of waiting rows decides."""

from __future__ import annotations

from viewkeeper.errors import StoreError
from viewkeeper.pipeline.epoch import EpochPlan
from viewkeeper.settings import Settings


def choose(plan: EpochPlan, settings: Settings, available: tuple[str, ...]) -> str:
    """Return ``local`` or ``spark``.

    Args:
        plan: the epoch.
        settings: ``executor`` fixes the answer where both can; under ``auto`` up to ``local_rows_max`` rows run in
            process.
        available: the executors there are.

    Raises:
        StoreError: ``SPARK_NEEDED`` where a view cannot be evaluated without Spark and there is none.
    """
    members = plan.members
    if plan.is_first_piece and not members.needs_spark:
        return "local"  # reads nothing: only makes the rows of global aggregates
    if members.needs_spark and "spark" not in available:
        names = members.cadence
        message = (
            f"Views of cadence {names!r} hold expressions that only Spark evaluates, and it cannot read a store in "
            "memory: keep the store in a folder."
        )
        raise StoreError("SPARK_NEEDED", message)
    return executor_for(plan.work_rows, members.needs_spark, settings, available)


def executor_for(rows: int, needs_spark: bool, settings: Settings, available: tuple[str, ...]) -> str:
    """Return the executor of an epoch that reads ``rows`` rows.

    Args:
        rows: of the log, and of base tables that are read as a whole.
        needs_spark: whether an expression is not portable.
        settings: as for ``choose``.
        available: the executors there are.
    """
    if needs_spark:
        return "spark"
    if "spark" not in available or settings.executor == "local":
        return "local"
    if settings.executor == "spark":
        return "spark"
    return "local" if rows <= settings.local_rows_max else "spark"
