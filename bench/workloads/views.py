"""1, 5 and 20 views on one table: how the time of an epoch grows."""

from __future__ import annotations

from bench.feeding import EVENTS, Changes, make_feed, measure
from bench.harness import Bench, Row
from bench.workloads.throughput import ROWS_A_TRANSACTION, batches, maintained

VIEW = maintained("v{0}", "SELECT g % {1} AS bucket, SUM(v + {0}) AS s, COUNT(*) AS n FROM events GROUP BY g % {1}")
COUNTS = (1, 5, 20)
BATCHES = 2


def run(bench: Bench) -> None:
    """Measure epochs of a fifth of W1, and of one row, under different numbers of views of one shape."""
    first, *rest = batches(bench, "W1")
    one = Changes("events", first.rows.slice(0, 1))
    for executor in bench.scale.executors:
        _compare(bench, executor, first, rest[:BATCHES])
        _compare(bench, executor, first, [one])


def _compare(bench: Bench, executor: str, before: Changes, measured: list[Changes]) -> None:
    seconds: dict[int, float] = {}
    for count in COUNTS:
        views = [VIEW.format(number, 1_000 + number) for number in range(count)]
        with bench.temporary("views") as folder:
            feed = make_feed(folder, [EVENTS], views, [before], measured, ROWS_A_TRANSACTION)
            done = measure(bench, feed, executor)
        seconds[count] = done.seconds
        what = f"epoch of {feed.changes:,} change(s) under {count} view(s)"
        details = {"changes": feed.changes, "views": count, "core_seconds": done.core_seconds}
        bench.add(Row("views", what, seconds[count] * 1e3, "ms", executor, feed.durability, "", details))
    ratio = seconds[COUNTS[-1]] / seconds[COUNTS[0]]
    what = f"20 views ÷ 1 view, {feed.changes:,} change(s)"
    bench.add(Row("views", what, ratio, "×", executor, feed.durability, "views", {"seconds": seconds}))
