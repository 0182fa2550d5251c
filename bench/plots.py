"""The run's plots, one question each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl

from bench.harness import Bench
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
        "peers": _peers,
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
    rows = [row for row in bench.rows if row.measure == "views" and row.unit == "ms"]
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


def _peers(bench: Bench, axes: Any) -> bool:
    results = [r for r in bench.peers if "changes_per_s" in r and "result" not in r]
    names = list(dict.fromkeys(f"{r['peer']} {r['variant']}" for r in results))
    for number, workload in enumerate(("W1", "W2", "W3")):
        rates = {f"{r['peer']} {r['variant']}": r["changes_per_s"] for r in results if r["workload"] == workload}
        places = [place + 0.25 * (number - 1) for place in range(len(names))]
        axes.barh(places, [rates.get(name, 0) / 1e6 for name in names], height=0.25, label=workload)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("M changes/s in the peers' clock, ingest in")
    if results:
        axes.legend()
    return bool(results)
