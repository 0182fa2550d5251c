"""Where an epoch's deltas come from: its range of the log, or base tables.

Of those all rows for views that are recomputed, a piece of one table, or of kept rows, while a view is filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeeper.log import as_of, reader
from viewkeeper.operators.circuit import Source, whole_entry
from viewkeeper.operators.probe import Probe
from viewkeeper.operators.state import Lookups
from viewkeeper.pipeline.epoch import EpochPlan
from viewkeeper.store.key_value import Space
from viewkeeper.store.scans import KeyRange
from viewkeeper.zset.delta import Delta


@dataclass(frozen=True)
class Share:
    """What one task reads of an epoch: a range of the log, or a key range of a table.

    Args:
        log: the range of the log.
        keys: the key range.
        table: the table that is read as a whole, by many; None for what an epoch of a build scans.
    """

    log: reader.LogRange | None = None
    keys: KeyRange | None = None
    table: int | None = None


def whole_shares(plan: EpochPlan) -> tuple[Share, ...]:
    """Return everything that the epoch reads, for one task."""
    if plan.scan is not None:
        return (Share(keys=KeyRange(plan.scan.start, plan.scan.stop)),)
    circuit = plan.members.circuit
    base = [Share(keys=KeyRange(), table=table) for table in circuit.whole_tables]
    return (*([Share(log=reader.range_of(plan.after, plan.to))] if circuit.tables else []), *base)


def share_deltas(base: Space, published: Lookups, plan: EpochPlan, share: Share) -> dict[int, Delta]:
    """Return the deltas of ``share`` as ``Circuit.step`` takes them.

    Args:
        base: the base space.
        published: the state before the epoch, for kept rows.
        plan: the epoch.
        share: the task's part of it.
    """
    if share.log is not None:
        tables = {id_: plan.members.tables[id_] for id_ in plan.members.circuit.tables}
        with base.read() as txn:
            return reader.read_many(txn, tables, share.log)
    if share.keys is None:
        return {}
    if share.table is not None:
        # The cadence itself holds the log, from before the position that is read.
        return {whole_entry(share.table): _rows_as_of(base, plan, share.table, plan.to, share.keys)}
    if plan.scan is None or plan.scan.is_empty:
        return {}
    entry = plan.scan.entry
    kept = plan.members.circuit.kept_rows.get(entry)
    if kept is not None:
        return {entry: kept.between(published, share.keys.start, share.keys.stop)}
    # The coordinator holds the log for the whole build.
    return {entry: _rows_as_of(base, plan, entry, plan.after, share.keys)}


def _rows_as_of(base: Space, plan: EpochPlan, table_id: int, position: int, keys: KeyRange) -> Delta:
    table = plan.members.tables[table_id]
    batches = as_of.scan_as_of(base, table, position, keys, register=False)
    return Delta.concat([Delta.from_rows(batch) for batch in batches], table.schema.to_arrow())


def deltas_of(
    base: Space, published: Lookups, plan: EpochPlan, shares: Sequence[Share], probe: Probe | None = None
) -> dict[int, Delta]:
    """Return the deltas of several shares together.

    Args:
        base: the base space.
        published: the state before the epoch.
        plan: the epoch.
        shares: each read in transactions of its own.
        probe: measures the reading, as part of the circuit's sources.
    """
    sources = {n.operator.entry: n for n in plan.members.circuit.nodes if isinstance(n.operator, Source)}
    parts: dict[int, list[Delta]] = {}
    for share in shares:
        found = share_deltas(base, published, plan, share)
        for entry, delta in found.items():
            parts.setdefault(entry, []).append(delta)
        if probe is not None and found:
            probe.divided({sources[entry].id: delta.num_rows for entry, delta in found.items()})
    return {entry: Delta.concat(some, sources[entry].operator.schema.to_arrow()) for entry, some in parts.items()}


def epoch_deltas(base: Space, published: Lookups, plan: EpochPlan, probe: Probe | None = None) -> dict[int, Delta]:
    """Return all deltas of an epoch, for running it in one process."""
    return deltas_of(base, published, plan, whole_shares(plan), probe)
