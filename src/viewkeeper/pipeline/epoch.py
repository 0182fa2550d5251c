"""An epoch, planned: which cadence, which range of the log, over which circuit. Everything that a task needs to know.

epoch E = pure function of ( log range (S(E-1), S(E)], the state published at E-1 )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from viewkeeper.errors import ConflictError
from viewkeeper.log import reader
from viewkeeper.operators.circuit import Circuit
from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.costs import Measured
from viewkeeper.pipeline.loans import Borrowed
from viewkeeper.pipeline.memory import NO_USE, MemoryUse
from viewkeeper.pipeline.policy import Choice
from viewkeeper.pipeline.recompute import Mixed
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
        mixed: the circuit that recomputes some of the views; None where all are stepped.
        borrowed: what a view is filled with that another cadence keeps; None where all state is its own.
    """

    cadence: str
    catalog_version: int
    signature: str
    compilation: Compilation
    tables: Mapping[int, Table]
    needs_spark: bool = False
    mixed: Mixed | None = None
    borrowed: Borrowed | None = None

    @property
    def circuit(self) -> Circuit:
        """The circuit that an epoch runs."""
        special = self.mixed or self.borrowed
        return self.compilation.circuit if special is None else special.circuit


@dataclass(frozen=True)
class TableScan:
    """The piece of a base table, or of kept rows, that an epoch of a build reads, as of the build's position.

    Args:
        entry: the table's id, or the entry of the kept rows; -1 for a first epoch that reads nothing and makes
            the rows of global aggregates.
        start: its first key bytes; None from the beginning.
        stop: the key bytes before which it ends; None at the end.
    """

    entry: int
    start: bytes | None
    stop: bytes | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is read."""
        return self.entry == -1


@dataclass(frozen=True)
class EpochPlan:
    """One epoch of one cadence.

    Args:
        members: the cadence's views.
        number: the epoch's number, one more than the published one.
        after: S(E-1), exclusive.
        to: S(E), inclusive.
        rows: about how many log rows the range holds.
        build: while a view is filled: how much will have been read when this epoch is published.
        scan: while a view is filled: the piece that is read instead of the log.
        log_bytes: how many bytes of the log the range holds.
        base_rows: how many base rows are read as of ``to``, for views that are recomputed.
        choices: by view, how it is refreshed and why; what tasks need of it stands in ``members``.
        waiting: by view that must not show where the epoch ends, a FAILED one that it reads and that shows less.
    """

    members: Members
    number: int
    after: int
    to: int
    rows: int
    build: Build | None = None
    scan: TableScan | None = None
    log_bytes: int = 0
    base_rows: int = 0
    choices: Mapping[int, Choice] = field(default_factory=dict)
    waiting: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_first_piece(self) -> bool:
        """Whether a view begins to be filled: it goes on from nothing."""
        return self.scan is not None and self.scan.is_empty

    @property
    def work_rows(self) -> int:
        """How many rows it reads, of the log and of base tables."""
        return self.base_rows + (self.rows if self.scan is not None or self.members.circuit.tables else 0)


@dataclass(frozen=True)
class EpochResult:
    """What running an epoch brought, before publishing.

    Args:
        writes: the write sets of its tasks.
        executor: which executor ran it.
        memory: what processes other than this one used for it.
        measured: what took how long; None where that was not measured.
    """

    writes: list[WriteSet]
    executor: str
    memory: MemoryUse = NO_USE
    measured: Measured | None = None


def plan_epoch(
    base: ReadTransaction,
    views: ReadTransaction,
    members: Members,
    rows_max: int,
    limit: int | None = None,
    log_bytes_max: int | None = None,
) -> EpochPlan | None:
    """Plan the next epoch of a cadence, None where nothing waits.

    Args:
        base: a read transaction of the base space.
        views: a read transaction of the views space.
        members: the cadence.
        rows_max: about how many log rows an epoch may hold; one transaction is never split.
        limit: a log position that the epoch must not pass.
        log_bytes_max: about how many bytes of the log it may take; None for any amount.

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
    fitting = _fitting_rows(base, record.position, last, log_bytes_max)
    to = reader.position_for_rows(base, record.position, last, min(rows_max, fitting))
    stop = reader.ddl_between(base, record.position, to, tuple(members.tables))
    if stop is not None:
        to = stop
    rows = reader.rows_waiting(base, record.position, to)
    size = reader.bytes_waiting(base, record.position, to)
    return EpochPlan(members, record.epoch + 1, record.position, to, rows, log_bytes=size)


def _fitting_rows(base: ReadTransaction, after: int, last: int, log_bytes_max: int | None) -> int:
    """Return how many of the waiting rows the bound leaves, by their mean size in the log."""
    waiting = reader.rows_waiting(base, after, last)
    size = reader.bytes_waiting(base, after, last)
    if log_bytes_max is None or not size:
        return max(waiting, 1)
    return max(waiting * log_bytes_max // size, 1)


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

    def check(self, record: CadenceRecord | None) -> CadenceRecord:
        """Return ``record``; raise where it is not the one that the plan builds on."""
        if record is None or record.epoch != self.epoch:
            found = "gone" if record is None else f"at epoch {record.epoch}"
            message = f"Cadence {self.cadence!r} is {found}, the plan builds on epoch {self.epoch}: refresh again."
            raise ConflictError("EPOCH_SUPERSEDED", message)
        return record
