"""The next piece of a view that is filled: which rows an epoch of a build reads, of base tables and of kept rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.coordinator.core import Coordinator
from viewkeeper.operators.circuit import Circuit
from viewkeeper.pipeline.epoch import EpochPlan, Members, TableScan
from viewkeeper.pipeline.kept_rows import range_end
from viewkeeper.pipeline.loans import Borrowed, borrowed_by
from viewkeeper.pipeline.records import Build, CadenceRecord
from viewkeeper.plan.compile.borrowing import Compile
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog

# What of the memory for epochs a piece takes: 200,000 rows are about a quarter of what an epoch of the log is at first.
PIECE_PART = 1 / 4


def borrowed_for(record: CadenceRecord, compile_: Compile) -> Borrowed | None:
    """Return how a build reads its pieces; None where it has no loan.

    Args:
        record: the build's.
        compile_: compiles its views.
    """
    if record.loan is None:
        return None
    return borrowed_by(record, compile_(frozenset(record.loan.kept_rows)).circuit)


def rows_to_read(
    base: ReadTransaction, views: ReadTransaction, catalog: Catalog, record: CadenceRecord, compile_: Compile
) -> tuple[int, int]:
    """Return how many rows of base tables a build reads, and how many of state that others keep.

    Args:
        base: a transaction of the base space.
        views: a transaction of the views space.
        catalog: has the tables.
        record: the build's.
        compile_: compiles its views.
    """
    borrowed = borrowed_for(record, compile_)
    if borrowed is None:
        tables: Sequence[int] = compile_(frozenset()).circuit.tables
        lent: Sequence[str] = ()
    else:
        tables = borrowed.circuit.tables
        lent = [borrowed.lent_as[rows.keeper.kept_in] for rows in borrowed.circuit.kept_rows.values()]
    return sum(base.count(format_of(catalog.tables[table]).database) for table in tables), sum(map(views.count, lent))


def plan_piece(
    coordinator: Coordinator, members: Members, record: CadenceRecord, build: Build, part: float = PIECE_PART
) -> EpochPlan:
    """Plan the epoch that reads the next piece, the first one reading nothing.

    Args:
        coordinator: its store.
        members: the views that are filled, and what they borrow.
        record: the build's.
        build: how far it is.
        part: which part of the memory it may take.
    """
    entries = _entries(members.circuit)
    number, position = record.epoch + 1, build.position
    if build.table < 0:
        after = replace(build, table=0) if entries else None
        return EpochPlan(members, number, position, position, 0, after, TableScan(-1, None, None))
    entry = entries[build.table]
    start = None if build.after_key is None else bytes.fromhex(build.after_key)
    stop, rows = _piece_end(coordinator, members, entry, start, part)
    done = build.rows_done + rows
    after = None
    if stop is not None:
        after = replace(build, after_key=stop.hex(), rows_done=done)
    elif build.table + 1 < len(entries):
        after = replace(build, table=build.table + 1, after_key=None, rows_done=done)
    return EpochPlan(members, number, position, position, rows, after, TableScan(entry, start, stop))


def _entries(circuit: Circuit) -> Sequence[int]:
    """Return what is read, in an order that stays as long as a build goes on."""
    return (*sorted(circuit.tables), *sorted(circuit.kept_rows))


def _piece_end(
    coordinator: Coordinator, members: Members, entry: int, start: bytes | None, part: float
) -> tuple[bytes | None, int]:
    """Return the key before which the piece from ``start`` ends, None at the end of all, and about how many rows."""
    wanted = max(int(_piece_rows(coordinator, members) * part / PIECE_PART), 1)
    kept = members.circuit.kept_rows.get(entry)
    if kept is not None and members.borrowed is not None:
        lent = members.borrowed.lent_as[kept.keeper.kept_in]
        with coordinator.views.read() as txn:
            return range_end(txn, lent, kept.keeper, start, None, wanted)
    rows = 0
    with coordinator.base.read() as txn:
        for key in txn.scan_keys(format_of(members.tables[entry]).database, start, None):
            if rows == wanted:
                return key, rows
            rows += 1
    return None, rows


def _piece_rows(coordinator: Coordinator, members: Members) -> int:
    """Return how many rows a piece holds: large pieces pay only where Spark shares them among tasks."""
    settings = coordinator.settings
    if settings.executor == "local" and not members.needs_spark:
        return min(settings.build_rows, settings.local_rows_max)
    return settings.build_rows
