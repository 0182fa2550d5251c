"""get by key from a view, warm, keys uniform."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import EVENTS, fill
from bench.harness import Bench, Row, percentile
from bench.workloads.throughput import INDEX

GETS = 200_000


def run(bench: Bench) -> None:
    """Measure single gets in process."""
    rows = bench.scale.view_rows
    random = np.random.default_rng(5)
    with bench.temporary("reads") as folder, vk.connect(folder / "reads.vk", durability="none") as db:
        db.sql(EVENTS)
        fill(db, "events", pa.table({"id": np.arange(rows), "g": random.integers(0, 100, rows), "v": np.arange(rows)}))
        db.sql(INDEX)
        db.refresh()
        gets = min(GETS, 2 * rows)
        for key in random.integers(0, rows, gets).tolist():  # warm
            db.get("by_id", key)
        nanoseconds = _gets(db, random.integers(0, rows, gets).tolist())
    for name, part, target in (("p50", 0.5, "get"), ("p99", 0.99, "")):
        what = f"get by key, {name} of {gets:,}, uniform over {rows:,} rows"
        bench.add(Row("reads", what, percentile(nanoseconds, part) / 1e3, "µs", "", "none", target))


def _gets(db: vk.Database, keys: list[int]) -> list[float]:
    taken: list[float] = []
    clock = time.perf_counter_ns
    for key in keys:
        started = clock()
        row = db.get("by_id", key)
        taken.append(clock() - started)
        if row is None or row["v"] != key:
            raise AssertionError(f"get({key}) returned {row}")
    return taken
