"""Freshness of one write: from the moment when put returns until get shows it, with a maintainer in a child process."""

from __future__ import annotations

import time

import viewkeeper as vk
from bench.feeding import EVENTS
from bench.harness import Bench, Row
from bench.targets import TARGETS
from bench.workloads.throughput import SUM_COUNT
from viewkeeper.cli.instruments import percentile, seconds_until

WRITES_A_SECOND = 10
GROUPS = 1_000
WARM_WRITES = 5
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def run(bench: Bench) -> None:
    """Measure single writes at a steady pace, by the local executor and by Spark."""
    for executor in bench.scale.executors:
        with bench.temporary("fresh") as folder:
            seconds = _single_writes(bench, str(folder / "fresh.vk"), executor)
        details = {"writes": len(seconds), "milliseconds": [round(s * 1e3, 3) for s in seconds]}
        for name, part in PERCENTILES.items():
            target = f"fresh_{executor}_{name}"
            what = f"put returns → get shows it, {name} of {len(seconds)} writes, {WRITES_A_SECOND} a second"
            value = percentile(seconds, part) * 1e3
            bench.add(
                Row(
                    "freshness",
                    what,
                    value,
                    "ms",
                    executor,
                    "none",
                    target if target in TARGETS else "",
                    details if name == "p50" else {},
                )
            )


def _single_writes(bench: Bench, path: str, executor: str) -> list[float]:
    seconds: list[float] = []
    with vk.connect(path, durability="none", executor=executor) as db:
        db.sql(EVENTS)
        db.put_batch("events", [{"id": number, "g": number % GROUPS, "v": number} for number in range(10 * GROUPS)])
        db.sql(SUM_COUNT)
        db.refresh()
        with db.maintain():
            counts = [10] * GROUPS
            for number in range(WARM_WRITES + bench.scale.fresh_writes):
                began = time.perf_counter()
                group = number * 7 % GROUPS
                counts[group] += 1
                db.put("events", {"id": 10**6 + number, "g": group, "v": 1})
                taken = seconds_until(db, "agg", group, {"n": counts[group]})
                if number >= WARM_WRITES:
                    seconds.append(taken)
                time.sleep(max(0.0, began + 1 / WRITES_A_SECOND - time.perf_counter()))
    return seconds
