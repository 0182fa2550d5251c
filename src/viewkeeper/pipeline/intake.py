"""Where an epoch's deltas come from: its range of the log, or, while a view is filled, a piece of a base table."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.log import as_of, reader
from viewkeeper.pipeline.epoch import EpochPlan
from viewkeeper.store.key_value import Space
from viewkeeper.store.scans import KeyRange
from viewkeeper.zset.delta import Delta


@dataclass(frozen=True)
class Share:
    """What one task reads of an epoch: a range of the log, or a key range of the scanned table."""

    log: reader.LogRange | None = None
    keys: KeyRange | None = None


def whole_share(plan: EpochPlan) -> Share:
    """Return everything that the epoch reads, for one task."""
    if plan.scan is not None:
        return Share(keys=KeyRange(plan.scan.start, plan.scan.stop))
    return Share(log=reader.range_of(plan.after, plan.to))


def share_deltas(base: Space, plan: EpochPlan, share: Share) -> dict[int, Delta]:
    """Return the deltas of ``share`` by table id.

    Args:
        base: the base space.
        plan: the epoch.
        share: the task's part of it.
    """
    if share.log is not None:
        with base.read() as txn:
            return reader.read_many(txn, plan.members.tables, share.log)
    if plan.scan is None or plan.scan.table < 0 or share.keys is None:
        return {}
    table = plan.members.tables[plan.scan.table]
    # The coordinator holds the log for the whole build, so tasks need not register.
    batches = as_of.scan_as_of(base, table, plan.after, share.keys, register=False)
    parts = [Delta.from_rows(batch) for batch in batches]
    return {table.id: Delta.concat(parts, table.schema.to_arrow())}


def epoch_deltas(base: Space, plan: EpochPlan) -> dict[int, Delta]:
    """Return all deltas of an epoch, for running it in one process."""
    return share_deltas(base, plan, whole_share(plan))
