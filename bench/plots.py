"""The run's plots, one question each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib as mpl

from bench.harness import Bench, median
from bench.report import peer_runs
from bench.suites.comparison import compared
from bench.suites.known import SUITES
from bench.suites.suite import Suite
from bench.targets import TARGETS

mpl.use("Agg")
import matplotlib.pyplot as plt

_SIZE = (8.0, 4.5)


def write(bench: Bench) -> list[str]:
    """Draw what the run has figures for; return the names of the files."""
    makers: dict[str, Callable[[Bench, Any], bool]] = {
        "throughput": _throughput,
        "views": _views,
        "base_size": _base_size,
        "freshness": _freshness,
        "peers_rates": _peer_rates,
        "peers_times": _peer_times,
        "peers_batches": _peer_batches,
        **{suite.name: partial(_suite, suite) for suite in SUITES},
    }
    made = []
    for name, draw in makers.items():
        figure, axes = plt.subplots(figsize=_SIZE)
        if draw(bench, axes):
            figure.tight_layout()
            figure.savefig(bench.results / f"{name}.png", dpi=120)
            made.append(f"{name}.png")
        plt.close(figure)
    return made


def _throughput(bench: Bench, axes: Any) -> bool:
    rows = [row for row in bench.rows if row.unit == "changes/s"]
    names = [f"{row.measure}: {row.what.split(', log')[0][:40]}\n[{row.executor}, {row.durability}]" for row in rows]
    axes.figure.set_size_inches(9, 1 + 0.55 * max(len(rows), 1))
    axes.barh(range(len(rows)), [row.value / 1e6 for row in rows], color="tab:blue")
    for place, row in enumerate(rows):
        if row.target:
            axes.plot([TARGETS[row.target].bound / 1e6] * 2, [place - 0.4, place + 0.4], color="tab:red")
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("M changes/s maintained; red: the target")
    return bool(rows)


def _views(bench: Bench, axes: Any) -> bool:
    rows = [row for row in bench.rows if row.measure == "views" and "views" in row.details]
    for executor, changes in dict.fromkeys((row.executor, row.details["changes"]) for row in rows):
        some = [row for row in rows if (row.executor, row.details["changes"]) == (executor, changes)]
        xs, ys = [row.details["views"] for row in some], [row.value for row in some]
        axes.plot(xs, ys, marker="o", label=f"{executor}, {changes:,} changes")
    axes.set(xlabel="views on one table", ylabel="ms an epoch", ylim=(0, None))
    if rows:
        axes.legend()
    return bool(rows)


def _base_size(bench: Bench, axes: Any) -> bool:
    rows = [row for row in bench.rows if row.measure == "base_size" and "base_rows" in row.details]
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        name = f"epoch, {row.executor}" if row.executor else f"{row.what.split()[0]}: full recomputation"
        lines.setdefault(name, []).append((row.details["base_rows"], row.value))
    for name, points in lines.items():
        axes.loglog(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xlabel="base rows", ylabel="ms for 1,000 changes")
    if rows:
        axes.legend()
    return bool(rows)


def _freshness(bench: Bench, axes: Any) -> bool:
    rows = [row for row in bench.rows if row.measure == "freshness" and row.details]
    for row in rows:
        values = sorted(row.details["milliseconds"])
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], label=row.executor)
    axes.set(xscale="log", xlabel="ms from put to get", ylabel="part of the writes")
    if rows:
        axes.legend()
    return bool(rows)


def _peer_rates(bench: Bench, axes: Any) -> bool:
    runs = [each for each in peer_runs(bench.peers) if "changes_per_s" in each.figures()]
    names = list(dict.fromkeys(each.name for each in runs))
    for number, workload in enumerate(("W1", "W2", "W3")):
        rates = {each.name: each.figures()["changes_per_s"] for each in runs if each.workload == workload}
        places = [place + 0.25 * (number - 1) for place in range(len(names))]
        middles = [median(rates.get(name, [0])) / 1e6 for name in names]
        least = [
            max(0.0, middle - min(rates.get(name, [0])) / 1e6) for middle, name in zip(middles, names, strict=True)
        ]
        most = [max(0.0, max(rates.get(name, [0])) / 1e6 - middle) for middle, name in zip(middles, names, strict=True)]
        axes.barh(places, middles, height=0.25, label=workload, xerr=[least, most], error_kw={"linewidth": 0.8})
    axes.figure.set_size_inches(9, 1 + 0.45 * max(len(names), 1))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("M changes/s in the peers' clock, ingest in: median, least and greatest")
    if runs:
        axes.legend()
    return bool(runs)


def _peer_times(bench: Bench, axes: Any) -> bool:
    runs = [each for each in peer_runs(bench.peers) if "p50_ms" in each.figures()]
    names = list(dict.fromkeys(each.name for each in runs))
    for number, (workload, label) in enumerate((("W4", "one change → readable"), ("W5", "read by key"))):
        some = [each for each in runs if each.workload == workload]
        places = [names.index(each.name) + 0.35 * number - 0.17 for each in some]
        axes.barh(places, [median(each.figures()["p50_ms"]) for each in some], height=0.35, label=label)
        axes.plot([median(each.figures()["p99_ms"]) for each in some], places, "k|")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="ms: median, the mark is p99")
    if runs:
        axes.legend()
    return bool(runs)


def _peer_batches(bench: Bench, axes: Any) -> bool:
    runs = [each for each in peer_runs(bench.peers) if each.workload == "W6" and each.right]
    for each in runs:
        points = [(int(size.replace(",", "")), median(values)) for size, values in each.figures().items()]
        style = "-" if each.peer == "viewkeeper" else "--"
        axes.loglog(*zip(*points, strict=True), style, marker="o", label=each.name)
    axes.set(xlabel="base rows", ylabel="ms for 1,000 changes, ingest in")
    if runs:
        axes.legend(fontsize=7)
    return bool(runs)


def _suite(suite: Suite, bench: Bench, axes: Any) -> bool:
    queries = compared(bench.rows, suite)
    parts = sorted({part for query in queries for part in query.epochs})
    for place, system in enumerate(("spark", "duckdb")):
        for part, marker in zip(parts, "osv^", strict=False):
            ratios = {query.name: query.ratio(system, part) for query in queries}
            known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
            label = f"{system} ÷ ours, {part:.2%} changed"
            axes.semilogy(list(known), list(known.values()), marker, color=f"C{place}", fillstyle="none", label=label)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(ylabel="recomputation ÷ our epoch")
    axes.tick_params("x", labelsize=7)
    if queries:
        axes.legend(fontsize=7, ncols=len(parts), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return bool(queries)
