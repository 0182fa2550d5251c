"""get by key from a view, warm, keys uniform."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import EVENTS, fill
from bench.harness import Bench, Row
from bench.workloads.throughput import INDEX, maintained
from viewkeeper.cli.instruments import get_seconds, percentile

GETS = 200_000


def run(bench: Bench) -> None:
    """Measure single gets in process."""
    rows = bench.scale.view_rows
    random = np.random.default_rng(5)
    with bench.temporary("reads") as folder, vk.connect(folder / "reads.vk", durability="none") as db:
        db.sql(EVENTS)
        fill(db, "events", pa.table({"id": np.arange(rows), "g": random.integers(0, 100, rows), "v": np.arange(rows)}))
        db.sql(maintained("by_id", INDEX))
        db.refresh()
        gets = min(GETS, 2 * rows)
        for key in random.integers(0, rows, gets).tolist():  # warm
            row = db.get("by_id", key)
            if row is None or row["v"] != key:
                raise AssertionError(f"get({key}) returned {row}")
        seconds = get_seconds(db, "by_id", random.integers(0, rows, gets).tolist())
    for name, part, target in (("p50", 0.5, "get"), ("p99", 0.99, "")):
        what = f"get by key, {name} of {gets:,}, uniform over {rows:,} rows"
        bench.add(Row("reads", what, percentile(seconds, part) * 1e6, "µs", "", "none", target))
