"""Memory by size: one transaction of many rows that Spark follows, and statements that change a whole table.

What is looked at runs in a process of its own, and its memory, with that of its Java process and its Python workers, is
counted from outside meanwhile. Counted are the pages that belong to a process; what it only maps, as the store's file,
the system takes back when it needs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.database import connect

ROWS_A_GROUP = 10
VALUES = 1_000
SMALL = VALUES // 100
SLACK = 0.1
# LMDB keeps the pages that a transaction writes until it is committed: of a row here about 130 bytes, in the table and
# twice in the log; MERGE keeps its source, too. A row that is held as Python objects would add more than is left.
BYTES_A_ROW_MAX = 300
_LOOKS_APART_SECONDS = 0.05
_EVENTS = "CREATE TABLE events (id BIGINT, g BIGINT, v BIGINT, PRIMARY KEY (id))"
_SUMS = "CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(v) AS total, COUNT(*) AS n FROM events GROUP BY g"
_FEW = f"CREATE MATERIALIZED VIEW few AS SELECT id, v FROM events WHERE v < {SMALL}"
_FOLLOW = "import sys; from viewkeeper.testing.sizes import follow; follow(sys.argv[1], int(sys.argv[2]))"
_CHANGE = "import sys; from viewkeeper.testing.sizes import change; change(sys.argv[1])"
_COPY = "CREATE TABLE copy (id BIGINT, g BIGINT, v BIGINT, PRIMARY KEY (id))"
_STATEMENTS = (
    "UPDATE events SET v = v + 1",
    "INSERT INTO copy SELECT id + 1, g, v FROM events",
    """MERGE INTO events USING copy ON events.id = copy.id WHEN MATCHED THEN UPDATE SET v = copy.v + 2
        WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *""",
    "DELETE FROM events WHERE id % 2 = 0",
)
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Followed:
    """How a large transaction was followed.

    Args:
        memory_bytes: the setting: what they may use.
        peak_bytes: the most that all processes used together.
        seconds: from the start of the process to its end.
    """

    memory_bytes: int
    peak_bytes: int
    seconds: float

    def check(self) -> None:
        """Hold the peak to the setting; a transaction is one epoch, however large, so nothing could adapt.

        Raises:
            AssertionError: with both figures.
        """
        assert self.peak_bytes <= (1 + SLACK) * self.memory_bytes, str(self)


def follow_large_transaction(folder: Path, rows: int, memory_bytes: int) -> Followed:
    """Put ``rows`` rows in one transaction, let a process of its own follow it by Spark, and check what its views show.

    Args:
        folder: where the store is made.
        rows: how many rows.
        memory_bytes: the setting of that name.

    Raises:
        AssertionError: the process fails, or a view shows something else than the rows give.
    """
    groups, values = _scattered(rows)
    store = folder / "large.vk"
    with connect(store, executor="local", durability="none") as database:
        for statement in (_EVENTS, _SUMS, _FEW):
            database.sql(statement)
        with database.transaction() as transaction:
            for batch in _batches(groups, values):
                transaction.put_batch("events", batch)
    begun = SYSTEM_CLOCK.monotonic_seconds()
    peak = _peak_bytes(_FOLLOW, store, memory_bytes)
    seconds = SYSTEM_CLOCK.monotonic_seconds() - begun
    with connect(store, executor="local", durability="none") as database:
        _check(database.table("sums").to_arrow(), database.table("few").to_arrow(), groups, values)
    return Followed(memory_bytes, peak, seconds)


def follow(store: str, memory_bytes: int) -> None:
    """Follow what waits, by Spark: what the process does that is looked at.

    Args:
        store: its path.
        memory_bytes: the setting.
    """
    with connect(store, executor="spark", durability="none", memory_bytes=memory_bytes) as database:
        done = database.refresh()
    assert "spark" in done.executors, done


def growth_of_statements(folder: Path, few: int, many: int) -> float:
    """Return how many bytes each more row costs a process that changes a whole table: UPDATE, INSERT, MERGE, DELETE.

    Args:
        folder: where the stores are made.
        few: rows of one table, more than what a statement holds at once.
        many: rows of another.

    Raises:
        AssertionError: a process fails, or it is more than ``BYTES_A_ROW_MAX``.
    """
    peaks = [_peak_of_statements(folder, rows) for rows in (few, many)]
    growth = (peaks[1] - peaks[0]) / (many - few)
    assert growth <= BYTES_A_ROW_MAX, f"{peaks} bytes for {few} and {many} rows"
    return growth


def _peak_of_statements(folder: Path, rows: int) -> int:
    store = folder / f"changed-{rows}.vk"
    with connect(store, executor="local", durability="none") as database:
        database.sql(_EVENTS)
        database.sql(_COPY)
        for batch in _batches(*_scattered(rows)):
            database.put_batch("events", batch)
    return _peak_bytes(_CHANGE, store)


def change(store: str) -> None:
    """Change all rows: what the process does that is looked at.

    Args:
        store: its path.
    """
    with connect(store, executor="local", durability="none") as database:
        for statement in _STATEMENTS:
            database.sql(statement)


def _peak_bytes(code: str, *arguments: object) -> int:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=variables)
    peak = 0
    while child.poll() is None:
        peak = max(peak, tree_bytes(child.pid))
        SYSTEM_CLOCK.sleep(_LOOKS_APART_SECONDS)
    assert child.returncode == 0, "the process that is looked at has failed"
    return peak


def tree_bytes(process: int) -> int:
    """Return the memory that belongs to a process and those below it; those that end meanwhile count nothing."""
    below: dict[int, list[int]] = {}
    own: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            figures = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        below.setdefault(int(figures["PPid"]), []).append(int(figures["Pid"]))
        own[int(figures["Pid"])] = int(figures.get("RssAnon", "0").split()[0]) << 10
    found = [process]
    for each in found:
        found += below.get(each, ())
    return sum(own.get(each, 0) for each in found)


def _scattered(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a group and a value for each row, in no order that a table or a log could make use of."""
    mixed = np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
    groups = (mixed % np.uint64(max(rows // ROWS_A_GROUP, 1))).astype(np.int64)
    return groups, (mixed >> np.uint64(24)).astype(np.int64) % VALUES


def _batches(groups: np.ndarray, values: np.ndarray) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(groups), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(groups))
        columns = {"id": np.arange(start, stop), "g": groups[start:stop], "v": values[start:stop]}
        yield pa.RecordBatch.from_pydict(columns)


def _check(sums: pa.Table, few: pa.Table, groups: np.ndarray, values: np.ndarray) -> None:
    counts = np.bincount(groups)
    there = np.flatnonzero(counts)
    totals = np.bincount(groups, values).astype(np.int64)
    order = np.argsort(sums.column("g").to_numpy())
    assert np.array_equal(sums.column("g").to_numpy()[order], there)
    assert np.array_equal(sums.column("n").to_numpy()[order], counts[there])
    assert np.array_equal(sums.column("total").to_numpy()[order], totals[there])
    small = np.flatnonzero(values < SMALL)
    order = np.argsort(few.column("id").to_numpy())
    assert np.array_equal(few.column("id").to_numpy()[order], small)
    assert np.array_equal(few.column("v").to_numpy()[order], values[small])
