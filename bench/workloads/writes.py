"""Base writes by one writer flat out, with five async views and without; the maintainer is a child process."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import EVENTS
from bench.harness import Bench, Row

VIEW = (
    "CREATE MATERIALIZED VIEW v{0} AS SELECT g % {1} AS bucket, SUM(v) AS s, COUNT(*) AS n FROM events GROUP BY g % {1}"
)
VIEWS = 5
ROWS_A_TRANSACTION = 100
BASE_ROWS = 100_000


def run(bench: Bench) -> None:
    """Measure rows a second with and without views, under two durabilities and both executors."""
    for durability, executors in (("none", ("local", "auto")), ("commit", ("local",))):
        alone, _ = _writing(bench, durability, "local", 0)
        details = {"seconds": bench.scale.writes_a_phase_seconds}
        what = "base rows written a second, no views"
        bench.add(Row("writes", what, alone, "rows/s", "", durability, "", details))
        for executor in executors:
            with_views, behind = _writing(bench, durability, executor, VIEWS)
            what = f"base rows written a second, {VIEWS} async views"
            bench.add(Row("writes", what, with_views, "rows/s", executor, durability, "", details))
            what = f"{VIEWS} async views ÷ no views"
            bench.add(Row("writes", what, with_views / alone, "×", executor, durability, "writes"))
            what = "until the views show the last write"
            bench.add(Row("writes", what, behind, "s", executor, durability, "lag"))


def _writing(bench: Bench, durability: str, executor: str, views: int) -> tuple[float, float]:
    """Return rows a second, and the seconds that the views take at the end."""
    seconds = bench.scale.writes_a_phase_seconds
    settings: dict[str, Any] = {"durability": durability, "executor": executor}
    with bench.temporary("writes") as folder, vk.connect(folder / "writes.vk", **settings) as db:
        db.sql(EVENTS)
        ids = np.arange(BASE_ROWS)
        db.put_batch("events", pa.table({"id": ids, "g": ids % 10_000, "v": ids}))
        for number in range(views):
            db.sql(VIEW.format(number, 1_000 + number))
        if not views:
            return _flat_out(db, seconds)[0], 0.0
        with db.maintain():
            _flat_out(db, min(1.0, seconds))  # the maintainer warms
            rate, position = _flat_out(db, seconds)
            started = time.perf_counter()
            db.wait_for(position, timeout_seconds=600.0)
            return rate, time.perf_counter() - started


def _flat_out(db: vk.Database, seconds: float) -> tuple[float, vk.Position]:
    """Write transactions of 100 rows, 60 % new keys, until the time is up."""
    random = np.random.default_rng(3)
    batches = [
        pa.table({
            "id": np.where(random.random(ROWS_A_TRANSACTION) < 0.6, random.integers(0, 1 << 40, ROWS_A_TRANSACTION),
                           random.integers(0, BASE_ROWS, ROWS_A_TRANSACTION)),
            "g": random.integers(0, 10_000, ROWS_A_TRANSACTION),
            "v": random.integers(0, 100_000, ROWS_A_TRANSACTION),
        })
        for _ in range(500)
    ]  # fmt: skip
    started = time.perf_counter()
    count = 0
    while time.perf_counter() - started < seconds:
        position = db.put_batch("events", batches[count % len(batches)])
        count += 1
    return count * ROWS_A_TRANSACTION / (time.perf_counter() - started), position
