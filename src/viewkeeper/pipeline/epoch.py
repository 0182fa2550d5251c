"""An epoch, planned: which cadence, which range of the log, over which circuit. Everything that a task needs to know.

epoch E = pure function of ( log range (S(E-1), S(E)], the state published at E-1 )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.errors import ConflictError
from viewkeeper.log import reader
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.records import Build, CadenceRecord, read_cadence
from viewkeeper.plan.compile import Compilation
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.model import Table


@dataclass(frozen=True)
class Members:
    """The views of a cadence, compiled.

    Args:
        cadence: its name.
        catalog_version: the catalog that it was compiled from.
        signature: changes when the views or their tables do: an epoch planned under another signature is void.
        compilation: the circuit.
        tables: the base tables that it reads, by id.
        needs_spark: whether some expression is not portable.
    """

    cadence: str
    catalog_version: int
    signature: str
    compilation: Compilation
    tables: Mapping[int, Table]
    needs_spark: bool = False


@dataclass(frozen=True)
class TableScan:
    """The piece of a base table that an epoch of a build reads, as of the build's position.

    Args:
        table: the table's id; -1 for a first epoch that reads nothing and makes the rows of global aggregates.
        start: its first key bytes; None from the table's beginning.
        stop: the key bytes before which it ends; None at the table's end.
    """

    table: int
    start: bytes | None
    stop: bytes | None


@dataclass(frozen=True)
class EpochPlan:
    """One epoch of one cadence.

    Args:
        members: the cadence's views.
        number: the epoch's number, one more than the published one.
        after: S(E-1), exclusive.
        to: S(E), inclusive.
        rows: about how many log rows the range holds.
        build: while a view is filled: how far the base tables will have been read when this epoch is published.
        scan: while a view is filled: the piece of a base table that is read instead of the log.
    """

    members: Members
    number: int
    after: int
    to: int
    rows: int
    build: Build | None = None
    scan: TableScan | None = None


@dataclass(frozen=True)
class EpochResult:
    """What running an epoch brought, before publishing.

    Args:
        writes: the write sets of its tasks.
        executor: which executor ran it.
    """

    writes: list[WriteSet]
    executor: str


def plan_epoch(
    base: ReadTransaction,
    views: ReadTransaction,
    members: Members,
    rows_max: int,
    limit: int | None = None,
    memory: MemoryBound | None = None,
) -> EpochPlan | None:
    """Plan the next epoch of a cadence, None where nothing waits.

    Args:
        base: a read transaction of the base space.
        views: a read transaction of the views space.
        members: the cadence.
        rows_max: about how many log rows an epoch may hold; one transaction is never split.
        limit: a log position that the epoch must not pass.
        memory: what the epoch may use of memory; None for any amount.

    Raises:
        ConflictError: ``LOG_PURGED`` where the range is no longer in the log.
    """
    record = read_cadence(views, members.cadence)
    if record is None or record.build is not None:
        return None
    head = reader.head(base)
    last = head if limit is None else min(head, limit)
    if last <= record.position:
        return None
    reader.check_not_purged(base, record.position)
    to = reader.position_for_rows(base, record.position, last, min(rows_max, _fitting_rows(base, record, last, memory)))
    stop = reader.ddl_between(base, record.position, to, tuple(members.tables))
    if stop is not None:
        to = stop
    rows = reader.rows_waiting(base, record.position, to)
    return EpochPlan(members, record.epoch + 1, record.position, to, rows)


@dataclass(frozen=True)
class MemoryBound:
    """How large an epoch may be.

    Args:
        total_bytes: for driver and workers together.
        fixed_bytes: what they use for no row at all.
        factor: bytes of memory per byte of the log, found by measuring.
    """

    total_bytes: int
    fixed_bytes: int
    factor: float


def _fitting_rows(base: ReadTransaction, record: CadenceRecord, last: int, memory: MemoryBound | None) -> int:
    """Return how many of the waiting rows fit the memory bound, by their mean size in the log."""
    waiting = reader.rows_waiting(base, record.position, last)
    size = reader.bytes_waiting(base, record.position, last)
    if memory is None or not size:
        return max(waiting, 1)
    room = max(memory.total_bytes - memory.fixed_bytes, 0) / memory.factor
    return max(int(waiting * room / size), 1)


def fence(plan: EpochPlan) -> Fence:
    """Return the check that a task makes in each of its read transactions of the views space."""
    return Fence(plan.members.cadence, plan.number - 1)


@dataclass(frozen=True)
class Fence:
    """Checks that a cadence still stands at the epoch that a plan builds on; picklable, as tasks carry it."""

    cadence: str
    epoch: int

    def __call__(self, txn: ReadTransaction) -> None:
        """Raise ConflictError ``EPOCH_SUPERSEDED`` where somebody else has published."""
        self.check(read_cadence(txn, self.cadence))

    def check(self, record: CadenceRecord | None) -> None:
        """Raise where ``record`` is not the one that the plan builds on."""
        if record is None or record.epoch != self.epoch:
            found = "gone" if record is None else f"at epoch {record.epoch}"
            message = f"Cadence {self.cadence!r} is {found}, the plan builds on epoch {self.epoch}: plan again."
            raise ConflictError("EPOCH_SUPERSEDED", message)
