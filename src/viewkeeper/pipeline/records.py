"""What publishing records beside the rows: cadences with their epochs and positions, and the state of each view.

All of it stands in one sub-database of the views space and changes in the same transaction as the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.zset.keys import after

DATABASE = "published"
# Of the names of cadences in which views are filled.
BUILD_PREFIX = "build-"
# What waits for a row while its view is FAILED: that it goes, or what its new value begins with.
DELETED, ROW = b"\x00", b"\x01"
_COUNT = b"count"
_NAMES = b"names"
_CADENCE = b"cadence/"
_VIEW = b"view/"

T = TypeVar("T")


@dataclass(frozen=True)
class Build:
    """How far the filling of a new view is.

    Args:
        position: the log position as of which base tables are read; -1 before that is fixed.
        table: which of its base tables is being read (index), all before it being done.
        after_key: the last key of that table that has been published, in hexadecimal.
        rows_done: base rows published so far.
        rows_total: base rows there were when it began.
        views: ids of the views that it fills; empty in the records of earlier programs.
    """

    position: int
    table: int
    after_key: str | None
    rows_done: int
    rows_total: int
    views: tuple[int, ...] = ()

    @property
    def is_begun(self) -> bool:
        """Whether it is fixed as of which position base tables are read."""
        return self.position >= 0

    @staticmethod
    def not_begun() -> Build:
        """Return the state of a build whose position is yet to be fixed."""
        return Build(-1, -1, None, 0, 0)


@dataclass(frozen=True)
class Loan:
    """State of another cadence that a build looks up in place of state of its own.

    The build's own tables of these names hold what has changed there since the build's position (views/borrowed.py).

    Args:
        lender: the cadence that keeps the state.
        states: its state tables, without the cadence's name.
        tables: ids of the base tables, and entries of the kept rows, that the build need not read: all that it wants of
            them is in that state.
        kept_rows: fingerprints of the operators whose rows it reads from that state like those of a table, in order.
        marks: positions at which it may stop on its way to where the lender stands, the first being where the loan
            began; empty in the records of earlier programs.
    """

    lender: str
    states: tuple[str, ...]
    tables: tuple[int, ...]
    kept_rows: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class CadenceRecord:
    """A cadence as published.

    Args:
        name: its name, and the prefix of its state tables.
        epoch: how many epochs it has published.
        position: the log position up to which it has read.
        build: set while its state is filled from base tables.
        loan: set where a view is filled with the help of another cadence's state, until it joins that cadence.
    """

    name: str
    epoch: int
    position: int
    build: Build | None = None
    loan: Loan | None = None


@dataclass(frozen=True)
class Failure:
    """A row that a view's query cannot be computed for."""

    reason: str
    key: dict[str, object]


@dataclass(frozen=True)
class ViewRecord:
    """A view as published.

    Args:
        view: its id.
        state: the state table with its visible rows.
        pending: the state table with the rows that wait while it is FAILED.
        position: the log position that its visible rows show.
        epoch: the epoch of its cadence that they are from.
        published_seconds: when they were published, in seconds since 1970.
        failures: some of the rows that cannot be computed; empty for a good view.
        failure_count: how many there are.
        executor: which executor ran that epoch.
        way: whether that epoch stepped it or recomputed it, ``INCREMENTAL`` or ``FULL``; empty for one that filled it.
        why: why, see ``policy.Choice``.
        layout: the layout of the state behind the rows (``operators/layouts.py``); empty where a program wrote it that
            did not record it yet.
        rows: the form of the rows (``views/row_form.py``), so that a program with another plan can read them.
    """

    view: int
    state: str
    pending: str
    position: int
    epoch: int
    published_seconds: float
    failures: tuple[Failure, ...] = ()
    failure_count: int = 0
    executor: str = ""
    way: str = ""
    why: str = ""
    layout: str = ""
    rows: bytes = b""

    @property
    def is_failed(self) -> bool:
        """Whether rows that cannot be computed hold it at its last good epoch."""
        return self.failure_count > 0


def publishing_count(txn: ReadTransaction) -> int:
    """Return how many publishings the store has seen."""
    raw = txn.get(DATABASE, _COUNT)
    return 0 if raw is None else int.from_bytes(raw, "big")


def count_publishing(txn: WriteTransaction) -> int:
    """Count one more publishing and return the count."""
    count = publishing_count(txn) + 1
    txn.put(DATABASE, _COUNT, count.to_bytes(8, "big"))
    return count


def names_version(txn: ReadTransaction) -> int:
    """Return a version of the catalog that no view has been renamed since: while it stands, a name means its view."""
    raw = txn.get(DATABASE, _NAMES)
    return 0 if raw is None else int.from_bytes(raw, "big")


def note_names(txn: WriteTransaction, version: int) -> None:
    """Note that views have their names of a version of the catalog, after the catalog has it.

    Args:
        txn: a transaction of the views space.
        version: the present one, so that what was looked up in an earlier one is looked up anew.
    """
    if names_version(txn) != version:
        txn.put(DATABASE, _NAMES, version.to_bytes(8, "big"))


def read_cadence(txn: ReadTransaction, name: str) -> CadenceRecord | None:
    """Return the record of cadence ``name``, None before it exists."""
    return _read(txn, _CADENCE + name.encode(), CadenceRecord)


def read_cadences(txn: ReadTransaction) -> list[CadenceRecord]:
    """Return the records of all cadences, by name."""
    return list(_all(txn, _CADENCE, CadenceRecord))


def borrowers_of(txn: ReadTransaction, cadence: str) -> list[CadenceRecord]:
    """Return the records of the builds to which ``cadence`` lends state."""
    builds = _all(txn, _CADENCE + BUILD_PREFIX.encode(), CadenceRecord)
    return [record for record in builds if record.loan is not None and record.loan.lender == cadence]


def write_cadence(txn: WriteTransaction, record: CadenceRecord) -> None:
    """Write the record of a cadence."""
    txn.put(DATABASE, _CADENCE + record.name.encode(), msgspec.msgpack.encode(record))


def supersede(txn: WriteTransaction, cadence: str) -> None:
    """Give up the epoch of ``cadence`` that may be running: state that it looks up goes in this transaction."""
    record = read_cadence(txn, cadence)
    if record is not None:
        write_cadence(txn, replace(record, epoch=record.epoch + 1))


def delete_cadence(txn: WriteTransaction, name: str) -> None:
    """Forget cadence ``name``."""
    txn.delete(DATABASE, _CADENCE + name.encode())


def read_view(txn: ReadTransaction, view: int) -> ViewRecord | None:
    """Return the record of ``view``, None before it was first published."""
    return _read(txn, _VIEW + view.to_bytes(8, "big"), ViewRecord)


def read_views(txn: ReadTransaction) -> list[ViewRecord]:
    """Return the records of all views, by id."""
    return list(_all(txn, _VIEW, ViewRecord))


def write_view(txn: WriteTransaction, record: ViewRecord) -> None:
    """Write the record of a view."""
    txn.put(DATABASE, _VIEW + record.view.to_bytes(8, "big"), msgspec.msgpack.encode(record))


def delete_view(txn: WriteTransaction, view: int) -> None:
    """Forget ``view``."""
    txn.delete(DATABASE, _VIEW + view.to_bytes(8, "big"))


def _read(txn: ReadTransaction, key: bytes, kind: type[T]) -> T | None:
    raw = txn.get(DATABASE, key)
    return None if raw is None else msgspec.msgpack.decode(raw, type=kind)


def _all(txn: ReadTransaction, prefix: bytes, kind: type[T]) -> Iterator[T]:
    for _, raw in txn.scan(DATABASE, prefix, after(prefix)):
        yield msgspec.msgpack.decode(raw, type=kind)
