"""The demo's store: its tables and views, and how far it has got, kept in the store itself.

Each transaction of the stream writes the index of the next one beside its flights, all or nothing. So whatever ends the
demo, at whatever moment, the next start goes on exactly where it was.
"""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from viewkeeper.database import Database, connect
from viewkeeper.demo.data import CREATE_TABLE, DemoData
from viewkeeper.demo.events import FlightEvents, HourTransaction, check_days
from viewkeeper.demo.pace import Committed
from viewkeeper.demo.views import VIEWS
from viewkeeper.errors import ConflictError, InputError

DEFAULT_STORE = "flights.vk"
STORE_VARIABLE = "VIEWKEEPER_STORE"
DURABILITY = "interval"
STREAM = "flights"
FIRST_DAY = date(2013, 1, 1)

_PROGRESS_TABLE = "demo_progress"
_CREATE_PROGRESS = f"""CREATE TABLE IF NOT EXISTS {_PROGRESS_TABLE} (
  stream STRING, days INT NOT NULL, next_transaction INT NOT NULL,
  last_day_rows INT, last_day_seconds DOUBLE, last_day_executor STRING,
  PRIMARY KEY (stream))"""


@dataclass(frozen=True)
class LastDay:
    """The refresh that brought the last day into all views at once.

    Args:
        rows: rows that the last day puts or deletes.
        seconds: how long it took.
        executor: what ran it.
    """

    rows: int
    seconds: float
    executor: str


@dataclass(frozen=True)
class Stage:
    """How far a store's demo has got.

    Args:
        days: how many days it plays.
        next_transaction: index of the transaction that is the next to be applied.
        last_day: the measured refresh of the last day, once it is done.
    """

    days: int
    next_transaction: int
    last_day: LastDay | None = None

    def row(self) -> dict[str, Any]:
        """Return it as the row that is kept."""
        found: dict[str, Any] = {
            "stream": STREAM,
            "days": self.days,
            "next_transaction": self.next_transaction,
        }
        if self.last_day is not None:
            found["last_day_rows"] = self.last_day.rows
            found["last_day_seconds"] = self.last_day.seconds
            found["last_day_executor"] = self.last_day.executor
        return found

    @staticmethod
    def of_row(row: dict[str, Any]) -> Stage:
        """Return what ``row`` made of it says."""
        measured = row["last_day_rows"], row["last_day_seconds"], row["last_day_executor"]
        last_day = None if measured[0] is None else LastDay(*measured)
        return Stage(row["days"], row["next_transaction"], last_day)


def location(given: Path | None) -> Path:
    """Return the store's folder: the one given, else that of VIEWKEEPER_STORE, else flights.vk in this folder."""
    return given or Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


def open_demo(path: Path, **settings: Any) -> Database:
    """Open the store, made where there is none; one connection a thread.

    Args:
        path: its folder.
        settings: as for ``connect``, the durability excepted, which is the demo's.
    """
    return connect(path, durability=DURABILITY, **settings)


def remove(path: Path) -> None:
    """Remove the store of an earlier demo, for a fresh start; an absent one is fine.

    Raises:
        InputError: ``DEMO_STORE_FOREIGN`` for a store that is not the demo's: it is never removed.
        ConflictError: ``STORE_IN_USE`` while some process maintains it.
        StoreError: for a folder that is no store.
    """
    if not path.exists():
        return
    with open_demo(path, create=False) as db:
        _check_ours(db, path)
        holder = db.status()["maintainer"]
        if holder is not None:
            process = holder["process_id"]
            message = f"Process {process} works on {path}: end it, then start afresh."
            raise ConflictError("STORE_IN_USE", message, {"process_id": process})
    shutil.rmtree(path)


def stage_of(db: Database) -> Stage | None:
    """Return how far the demo has got, None for a store in which it has not begun."""
    if _PROGRESS_TABLE not in db.tables():
        return None
    row = db.get(_PROGRESS_TABLE, STREAM)
    return None if row is None else Stage.of_row(row)


def check(path: Path, days: int) -> None:
    """Refuse at once, before anything is started, a store that cannot play ``days`` days.

    Raises:
        InputError: ``DEMO_STORE_FOREIGN`` for a store with other tables, ``DEMO_DAYS_FEWER`` for one that plays more
            days, ``DEMO_DAYS_INVALID``.
        StoreError: for a folder that is no store.
    """
    check_days(days)
    if not path.exists():
        return
    with open_demo(path) as db:
        _check_ours(db, path)
        stage = stage_of(db)
    if stage is not None and stage.days > days:
        message = f"The store {path} plays {stage.days} days already, you ask for {days}: add --fresh to start over."
        raise InputError("DEMO_DAYS_FEWER", message, {"days": stage.days})


def prepare(db: Database, data: DemoData) -> None:
    """Make tables and views and put the dimensions, as far as they are not there."""
    db.sql(_CREATE_PROGRESS)
    for statement in CREATE_TABLE.values():
        db.sql(statement)
    unfinished = [view["name"] for view in db.status()["views"] if view["state"] == "BUILDING"]
    if unfinished:
        db.refresh(*unfinished)
    if not db.views():
        with db.transaction() as transaction:
            for name, rows in data.dimensions().items():
                transaction.put_batch(name, rows)
    for view in VIEWS:
        db.sql(view.create_statement)


def _check_ours(db: Database, path: Path) -> None:
    tables = db.tables()
    if tables and _PROGRESS_TABLE not in tables:
        message = f"The store {path} holds other tables ({', '.join(tables[:3])}): give the demo a folder of its own."
        raise InputError("DEMO_STORE_FOREIGN", message, {"store": str(path)})


def begin(db: Database, events: FlightEvents, days: int) -> Stage:
    """Return where to go on in ``events``, and note that these are played.

    A store that has played fewer days goes on to more: its last day is played again, because in its last hours there
    flights of the next day are missing; all rows being complete images, that changes nothing that was right.
    """
    stage = stage_of(db)
    if stage is not None and stage.days == days:
        return stage
    stage = Stage(days, 0 if stage is None else min(stage.next_transaction, _first_index(events, stage.days)))
    db.put(_PROGRESS_TABLE, stage.row())
    return stage


def _first_index(events: FlightEvents, day: int) -> int:
    """Return the index of the first transaction of a day, days counted from 1."""
    wanted = FIRST_DAY + timedelta(days=day - 1)
    return bisect_left(range(events.transaction_count), wanted, key=events.date_of)


def apply(db: Database, stage: Stage, index: int, hour: HourTransaction) -> Committed:
    """Apply one transaction of the stream, with the note that it is done."""
    with db.transaction() as transaction:
        if hour.puts.num_rows:
            transaction.put_batch("flights", hour.puts)
        for key in hour.deletes.to_pylist():
            transaction.delete("flights", key)
        transaction.put(_PROGRESS_TABLE, replace(stage, next_transaction=index + 1).row())
    if transaction.position is None:
        raise AssertionError("a committed transaction has a position")
    position = transaction.position.sequence_number
    return Committed(position, hour.row_count, sum(hour.counts.values()), hour.injected, hour.date)


def note_last_day(db: Database, measured: LastDay) -> None:
    """Keep what the last day's refresh took, for a later start that only verifies."""
    stage = stage_of(db)
    if stage is not None:
        db.put(_PROGRESS_TABLE, replace(stage, last_day=measured).row())
