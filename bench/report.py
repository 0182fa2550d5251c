"""results.md: the machine, the goals, our figures beside their targets, the peers' in their clock beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.harness import Bench, Row, median, shown
from bench.suites import comparison
from bench.suites.known import SUITES
from bench.targets import GOALS, TARGETS

CLOCKS = """\
changes/s: changes of the log ÷ seconds from an epoch's planning to its publishing, the log written beforehand; an
update is one change (two delta rows in the log). Executor and durability are those of the row. Core-seconds are the
processor time of all our processes in that time: what a busy machine distorts least.
"""
PEERS_CLOCK = """\
The peers' clock: batches of 100,000 changes handed over one after the other, ingest included, until the last view is
complete and readable; every result is compared with DuckDB's full query. Viewkeeper's variants name executor and
durability (none, or every commit forced to disk); no other system is durable in these runs. A figure is the median of
its runs, with the least and the greatest. "Ours" are the ratios of Viewkeeper's speed to that of the row: above 1 ours
is faster, below 1 the other is.
"""
SUITE = """\
Each query is a view of its own, refreshed alone. A round is one transaction, one epoch, planned to published, by the
local executor, the larger ones also by Spark's. Ratios stand in the order of the epochs: above 1 the epoch (of the
local executor; of Spark's where the query needs it) is faster than recomputing. Crossover: the part at which both take
the same time.
"""
OURS = ("spark", "spark-commit", "local", "local-commit")
_HEADINGS = {
    "W1": "SUM and COUNT by 10,000 groups, changes/s",
    "W2": "SUM and COUNT by a million possible groups, changes/s",
    "W3": "join on a foreign key and sums by region, both sides changing, changes/s",
    "W4": "one change → the view's row is readable, ms",
    "W5": "reads of a view's row by key, ms",
    "W6": "1,000 changes, ms by base rows",
}


def write(bench: Bench) -> Path:
    """Write the report and return its path."""
    path = bench.results / "results.md"
    path.write_text("\n".join(_lines(bench)) + "\n")
    return path


def _lines(bench: Bench) -> Iterator[str]:
    slices = [each["run"] for each in bench.journal.slices]
    about = {key: value for key, value in bench.about.items() if key not in ("date", "load_at_start")}
    yield "# Results\n"
    yield "Written by `python -m bench`. " + "; ".join(f"{key}: {value}" for key, value in about.items()) + ".\n"
    loads = ", ".join(f"{each['date']} (load {each['load_at_start'][0]:.2f})" for each in slices)
    yield f"Measured from {loads}.\n"
    if max(each["load_at_start"][0] for each in slices) > 1:
        yield "The machine was not quiet each time that measuring began (see the loads): figures may be too low.\n"
    yield "## Goals\n"
    yield from _goals(bench.rows)
    if bench.rows:
        yield "\n## Our figures\n"
        yield CLOCKS
        yield from _own(bench.rows)
    for suite in SUITES:
        if compared := list(comparison.lines(bench.rows, suite)):
            yield f"\n## {suite.title}\n"
            yield SUITE + suite.about
            yield from compared
    if bench.peers:
        yield "\n## Peers\n"
        yield PEERS_CLOCK
        yield from _peers(bench.peers)
    if bench.journal.seconds:
        yield "\n## What the measuring took\n"
        yield ", ".join(f"{name} {seconds:.0f} s" for name, seconds in bench.journal.seconds.items()) + "."


def _goals(rows: Sequence[Row]) -> Iterator[str]:
    yield "| goal | target | figure | executor, durability | |"
    yield "| --- | --- | --- | --- | --- |"
    for goal in GOALS:
        for target in goal.targets:
            found = [row for row in rows if row.target == target]
            for row in found:
                kind = ", ".join(filter(None, (row.executor, row.durability)))
                figure = f"{row.what}: {shown(row.value)} {row.unit}"
                yield f"| {goal.what} | {TARGETS[target].text} | {figure} | {kind} | {row.verdict} |"
            if not found:
                yield f"| {goal.what} | {TARGETS[target].text} | not measured in this run | | |"
        if goal.later:
            yield f"| {goal.what} | | {goal.later} | | |"


def _own(rows: Sequence[Row]) -> Iterator[str]:
    yield "| measure | what | figure | executor | durability | core-seconds | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        target = TARGETS[row.target].text if row.target else ""
        cores = f"{row.details['core_seconds']:.2f}" if "core_seconds" in row.details else ""
        cells = [row.measure, row.what, f"{shown(row.value)} {row.unit}", row.executor, row.durability, cores, target]
        yield f"| {' | '.join(cells)} | {row.verdict} |"


class PeerRuns:
    """What one variant of a system has said about one workload, all runs together.

    Args:
        runs: its results.
    """

    def __init__(self, runs: Sequence[dict[str, Any]]) -> None:
        self.workload = str(runs[0]["workload"])
        self.peer = str(runs[0]["peer"])
        self.variant = str(runs[0]["variant"])
        self.right = [run for run in runs if "result" not in run]
        self.last = runs[-1]

    @property
    def name(self) -> str:
        """System and variant."""
        return f"{self.peer} {self.variant}".strip()

    def figures(self) -> dict[str, list[float]]:
        """Return what was measured, by name: the rate, the percentiles, or the times by base size."""
        found: dict[str, list[float]] = {}
        for run in self.right:
            if "batch_ms" in run:
                values = {f"{int(size):,}": ms for size, ms in run["batch_ms"].items()}
            else:
                values = {key: run[key] for key in ("changes_per_s", "p50_ms", "p99_ms") if key in run}
            for key, value in values.items():
                found.setdefault(key, []).append(float(value))
        return found

    def speeds(self) -> dict[str, float]:
        """Return what to compare by: the greater, the faster."""
        middles = {key: median(values) for key, values in self.figures().items() if key != "p99_ms"}
        return {key: value if key == "changes_per_s" else 1 / value for key, value in middles.items()}


def peer_runs(results: Sequence[dict[str, Any]]) -> list[PeerRuns]:
    """Return the results by workload, system and variant; words of absence yield to what was measured."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["workload"], result["peer"], result["variant"]), []).append(result)
    return [PeerRuns([run for run in runs if "needs" not in run] or runs) for runs in groups.values()]


def _peers(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    all_runs = peer_runs(results)
    for workload in sorted({runs.workload for runs in all_runs}):
        some = sorted((runs for runs in all_runs if runs.workload == workload), key=_order)
        ours = {runs.variant: runs.speeds() for runs in some if runs.peer == "viewkeeper" and runs.right}
        columns = [variant for variant in OURS if variant in ours]
        yield f"\n### {workload}: {_HEADINGS[workload]}\n"
        heads = "".join(f" ours {variant} |" for variant in columns)
        yield f"| system | version | median (least – greatest) | runs |{heads} peak memory MiB |"
        yield "| --- " * (5 + len(columns)) + "|"
        for runs in some:
            ratios = "".join(f" {_ratio(ours[variant], runs.speeds())} |" for variant in columns)
            memory = max((run.get("rss_mb", 0) for run in runs.right), default=0) or ""
            version = runs.last.get("version", "")
            yield f"| {runs.name} | {version} | {_figure(runs)} | {len(runs.right)} |{ratios} {memory} |"


def _order(runs: PeerRuns) -> float:
    speeds = runs.speeds()
    return -speeds[max(speeds, key=_size)] if speeds else 1.0


def _size(key: str) -> int:
    digits = key.replace(",", "")
    return int(digits) if digits.isdigit() else 0


def _ratio(ours: dict[str, float], theirs: dict[str, float]) -> str:
    ratios = [ours[key] / value for key, value in theirs.items() if key in ours]
    return " / ".join(f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}" for ratio in ratios)


def _figure(runs: PeerRuns) -> str:
    if not runs.right:
        told = f"{runs.last['result']}: {runs.last['needs']}" if "needs" in runs.last else str(runs.last["result"])
        return " ".join(told.replace("|", "/").split())[-200:]
    parts = []
    for key, values in runs.figures().items():
        name = "" if key == "changes_per_s" else f"{key.removesuffix('_ms')}: "
        spread = f" ({shown(min(values))} – {shown(max(values))})" if len(values) > 1 else ""
        parts.append(f"{name}{shown(median(values))}{spread}")
    return "; ".join(parts)
