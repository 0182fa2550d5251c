"""1, 5 and 20 views on one table: how the time of an epoch grows."""

from __future__ import annotations

from bench.feeding import EVENTS, Changes, make_feed, measure
from bench.harness import Bench, Row
from bench.workloads.beside import recompute
from bench.workloads.throughput import ROWS_A_TRANSACTION, batches, maintained

QUERY = "SELECT g % {1} AS bucket, SUM(v + {0}) AS s, COUNT(*) AS n FROM events GROUP BY g % {1}"
COUNTS = (1, 5, 20)
BATCHES = 2


def run(bench: Bench) -> None:
    """Measure epochs of a fifth of W1, and of one row, under different numbers of views of one shape."""
    first, *rest = batches(bench, "W1")
    one = Changes("events", first.rows.slice(0, 1))
    for measured in (rest[:BATCHES], [one]):
        seconds = {count: _epochs(bench, count, first, measured) for count in COUNTS}
        changes = sum(len(each.rows) for each in measured)
        for executor in bench.scale.executors:
            by_count = {count: seconds[count][executor] for count in COUNTS}
            ratio = by_count[COUNTS[-1]] / by_count[COUNTS[0]]
            what = f"20 views ÷ 1 view, {changes:,} change(s)"
            bench.add(Row("views", what, ratio, "×", executor, "none", "views", {"seconds": by_count}))


def _epochs(bench: Bench, count: int, before: Changes, measured: list[Changes]) -> dict[str, float]:
    """Return the seconds by executor of an epoch under ``count`` views; recomputation stands beside large ones."""
    queries = [QUERY.format(number, 1_000 + number) for number in range(count)]
    views = [maintained(f"v{number}", query) for number, query in enumerate(queries)]
    seconds: dict[str, float] = {}
    with bench.temporary("views") as folder:
        feed = make_feed(folder, [EVENTS], views, [before], measured, ROWS_A_TRANSACTION)
        for executor in bench.scale.executors:
            done = measure(bench, feed, executor)
            seconds[executor] = done.seconds
            what = f"epoch of {feed.changes:,} change(s) under {count} view(s)"
            details = {"changes": feed.changes, "views": count, "core_seconds": done.core_seconds}
            bench.add(Row("views", what, done.seconds * 1e3, "ms", executor, feed.durability, "", details))
        if feed.changes > 1:
            recompute(bench, "views", f"{count} view(s)", feed, queries, seconds)
    return seconds
