"""A store with all views of a suite whose log holds rounds of changes, each view to be brought through them by itself.

The views are refreshed ON DEMAND: each has a cadence, state and position of its own, so that one after the other goes
through the same rounds, in any slice of a run. Beside the store lie the tables as the rounds leave them, as Parquet
files for Spark and as a database of DuckDB's.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

import viewkeeper as vk
from bench.feeding import fill
from bench.harness import Scale
from bench.suites.suite import Round, Stream, Suite, view_name


@dataclass(frozen=True)
class Waiting:
    """A round that waits in the log.

    Args:
        part: of the tables, how much it changes.
        changes: how many rows were put or deleted.
        position: of its transaction.
        executor: by which the views are to take it.
    """

    part: float
    changes: int
    position: int
    executor: str


@dataclass(frozen=True)
class Prepared:
    """What is prepared in a folder.

    Args:
        folder: where it lies.
        suite: of which suite it is.
    """

    folder: Path
    suite: Suite

    @property
    def store(self) -> Path:
        """The store."""
        return self.folder / f"{self.suite.name}.vk"

    @property
    def parquet(self) -> dict[str, Path]:
        """The tables as the rounds leave them."""
        return {name: self.folder / "after" / f"{name}.parquet" for name in self.suite.create_tables}

    @property
    def duckdb(self) -> Path:
        """The same as a database."""
        return self.folder / "after.duckdb"

    def rounds(self) -> list[Waiting]:
        """Return the rounds, in order; none where they are not written yet."""
        path = self.folder / "rounds.json"
        return [Waiting(**each) for each in json.loads(path.read_text())] if path.exists() else []


def prepare(
    suite: Suite, folder: Path, scale: Scale, parts: Sequence[tuple[float, str]], note: Callable[[str], None]
) -> Prepared:
    """Return the prepared store, made where it is not there yet; what was broken off goes on.

    Args:
        suite: whose tables and views.
        folder: where those of all suites and scales lie.
        scale: how much data.
        parts: of each round, how much of the tables it changes, and by which executor the views are to take it.
        note: told what is being done.
    """
    prepared = Prepared(folder / suite.folder(scale), suite)
    if prepared.rounds():
        return prepared
    stream = suite.stream(folder, scale)
    if not (prepared.folder / "loaded").exists():
        note("loading the base tables")
        shutil.rmtree(prepared.folder, ignore_errors=True)
        prepared.folder.mkdir(parents=True)
        with vk.connect(prepared.store, durability="none") as db:
            for name, statement in suite.create_tables.items():
                db.sql(statement)
                fill(db, name, stream.tables[name])
        (prepared.folder / "loaded").touch()
    with vk.connect(prepared.store, durability="none", executor="local") as db:
        for number in suite.numbers:
            if view_name(number) not in db.views():
                note(f"filling the view of query {number}")
                clauses = "REFRESH ON DEMAND REFRESH POLICY INCREMENTAL"
                db.sql(f"CREATE MATERIALIZED VIEW {view_name(number)} {clauses} AS {suite.query(number, scale)}")
        note("writing the rounds")
        waiting = [_written(db, stream, part, executor) for part, executor in parts]
    _keep_tables(prepared, stream)
    (prepared.folder / "rounds.json").write_text(json.dumps([asdict(each) for each in waiting]))
    return prepared


def _written(db: vk.Database, stream: Stream, part: float, executor: str) -> Waiting:
    changes = stream.take(part)
    return Waiting(part, changes.changes, write(db, changes).sequence_number, executor)


def write(db: vk.Database, changes: Round) -> vk.Position:
    """Write a round in one transaction and return its position."""
    with db.transaction() as tx:
        for name, keys in changes.deletes.items():
            for key in keys.to_pylist():
                tx.delete(name, key)
        for name, rows in changes.puts.items():
            tx.put_batch(name, rows)
    assert tx.position is not None
    return tx.position


def _keep_tables(prepared: Prepared, stream: Stream) -> None:
    (prepared.folder / "after").mkdir(exist_ok=True)
    prepared.duckdb.unlink(missing_ok=True)
    with duckdb.connect(str(prepared.duckdb)) as connection:
        for name, path in prepared.parquet.items():
            pq.write_table(stream.tables[name], path)
            connection.execute(f"CREATE TABLE {name} AS FROM '{path}'")
