"""Who reads what: an epoch's part of the log, of a base table or of kept rows, in about equal shares for its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.log import reader
from viewkeeper.pipeline.differences import Part, key_ranges
from viewkeeper.pipeline.epoch import EpochPlan, TableScan
from viewkeeper.pipeline.intake import Share
from viewkeeper.pipeline.kept_rows import split_kept
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.scans import KeyRange, split_table
from viewkeeper.store.tables import format_of

# About 50 ms of reading: a read transaction must not stay open for much longer.
ROWS_PER_SHARE = 131_072
# Below this many rows the start of a second reading costs more than it saves.
ROWS_WORTH_SPLITTING = 1_024


def shares_of(
    base: ReadTransaction, views: ReadTransaction, plan: EpochPlan, partitions: int
) -> tuple[tuple[Share, ...], ...]:
    """Return for each partition what it reads, together all of the epoch.

    Args:
        base: a read transaction of the base space.
        views: a read transaction of the views space.
        plan: the epoch.
        partitions: how many tasks the first stage has.
    """
    wanted = _parts(plan.rows, partitions)
    if plan.scan is not None:
        shares = [Share(keys=keys) for keys in _key_ranges(base, views, plan, plan.scan, wanted)]
        return _dealt(shares, partitions)
    circuit = plan.members.circuit
    ranges = reader.split(base, plan.after, plan.to, wanted, circuit.tables) if circuit.tables else []
    dealt = [_dealt([Share(log=log) for log in ranges], partitions)]
    for table_id in circuit.whole_tables:
        # All of a table, each its own deal: so every task gets a part of every table that is worth dividing.
        table = plan.members.tables[table_id]
        keys = split_table(base, table, _parts(base.count(format_of(table).database), partitions))
        dealt.append(_dealt([Share(keys=each, table=table_id) for each in keys], partitions))
    return tuple(tuple(share for some in column for share in some) for column in zip(*dealt, strict=True))


def comparisons_of(txn: ReadTransaction, plan: EpochPlan, partitions: int) -> tuple[tuple[Part, ...], ...]:
    """Return for each partition what it compares of what was recomputed; nothing where no view was.

    Args:
        txn: a read transaction of the views space.
        plan: the epoch.
        partitions: how many tasks a stage has.
    """
    mixed = plan.members.mixed
    if mixed is None:
        return ()
    dealt: list[list[Part]] = [[] for _ in range(partitions)]
    for number, part in enumerate(mixed.parts):
        cuts = 1 if part.keys is None or txn.count(part.stored) < ROWS_WORTH_SPLITTING else partitions
        ranges = [part.keys] if cuts == 1 else key_ranges(txn, part.stored, cuts)
        for place, keys in enumerate(ranges):
            dealt[(number + place) % partitions].append(replace(part, keys=keys))
    return tuple(map(tuple, dealt))


def _parts(rows: int, partitions: int) -> int:
    """Return into how many shares so many rows are cut."""
    if rows < ROWS_WORTH_SPLITTING:
        return 1
    return partitions * -(-rows // (partitions * ROWS_PER_SHARE))


def _key_ranges(
    base: ReadTransaction, views: ReadTransaction, plan: EpochPlan, scan: TableScan, parts: int
) -> list[KeyRange]:
    """Cut the scanned piece into about equal parts."""
    if scan.is_empty:
        return [KeyRange()]
    piece = KeyRange(scan.start, scan.stop)
    kept, borrowed = plan.members.circuit.kept_rows.get(scan.entry), plan.members.borrowed
    if kept is not None and borrowed is not None:
        lent = borrowed.lent_as[kept.keeper.kept_in]
        return list(split_kept(views, lent, kept.keeper, piece, parts, plan.rows))
    return split_table(base, plan.members.tables[scan.entry], parts, piece)


def _dealt(shares: Sequence[Share], partitions: int) -> tuple[tuple[Share, ...], ...]:
    """Deal neighbouring shares to one partition."""
    cuts = [len(shares) * i // partitions for i in range(partitions + 1)]
    if len(shares) < partitions:
        cuts = [min(i, len(shares)) for i in range(partitions + 1)]
    return tuple(tuple(shares[cuts[i] : cuts[i + 1]]) for i in range(partitions))
