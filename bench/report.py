"""results.md: the machine, our figures beside their targets, the peers' in their clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.harness import Bench, Row, shown
from bench.targets import TARGETS

CLOCKS = """\
changes/s: changes of the log ÷ seconds from an epoch's planning to its publishing, the log written beforehand; an
update is one change (two delta rows in the log). Executor and durability are those of the row. Core-seconds are the
processor time of all our processes in that time: what a busy machine distorts least.
"""
PEERS_CLOCK = """\
The peers' clock: batches of 100,000 changes handed over one after the other, ingest included, until the last view is
complete and readable. Viewkeeper's variants name executor and durability; no other peer is durable in these runs.
"""
_RATES = ("W1", "W2", "W3")
_MILLISECONDS = ("W4", "W5")


def write(bench: Bench) -> Path:
    """Write the report and return its path."""
    path = bench.results / "results.md"
    path.write_text("\n".join(_lines(bench)) + "\n")
    return path


def _lines(bench: Bench) -> Iterator[str]:
    yield "# Results\n"
    yield "Written by `python -m bench`. " + "; ".join(f"{key}: {value}" for key, value in bench.about.items()) + ".\n"
    if max(bench.about["load_at_start"]) > 1:
        yield "The machine was not quiet when this run began (see load_at_start): its figures are too low.\n"
    if bench.rows:
        yield CLOCKS
        yield from _own(bench.rows)
    if bench.peers:
        yield "\n## Peers\n"
        yield PEERS_CLOCK
        yield from _peers(bench.peers)


def _own(rows: Sequence[Row]) -> Iterator[str]:
    yield "| measure | what | figure | executor | durability | core-seconds | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        target = TARGETS[row.target].text if row.target else ""
        cores = f"{row.details['core_seconds']:.2f}" if "core_seconds" in row.details else ""
        cells = [row.measure, row.what, f"{shown(row.value)} {row.unit}", row.executor, row.durability, cores, target]
        yield f"| {' | '.join(cells)} | {row.verdict} |"


def _peers(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    workloads = dict.fromkeys(r["workload"] for r in results if r["workload"] != "all")
    for workload in workloads:
        yield f"\n| {workload} | {_unit(workload)} | peak memory MiB | executor, durability |"
        yield "| --- | --- | --- | --- |"
        for result in sorted((r for r in results if r["workload"] == workload), key=_order):
            kind = ", ".join(str(result[key]) for key in ("executor", "durability") if key in result)
            name = f"{result['peer']} {result['variant']}".strip()
            yield f"| {name} | {_figure(result)} | {result.get('rss_mb', '')} | {kind} |"
    yield ""
    for result in results:
        if result["workload"] == "all":
            yield f"- {result['peer']}: {result['result']} ({result['needs']} is not set)"


def _unit(workload: str) -> str:
    if workload in _RATES:
        return "changes/s"
    return "p50 / p99 ms" if workload in _MILLISECONDS else "ms a batch, by base rows"


def _order(result: dict[str, Any]) -> float:
    if "changes_per_s" in result:
        return -float(result["changes_per_s"])
    return float(result.get("p50_ms", min(result.get("batch_ms", {"": 1e9}).values(), default=1e9)))


def _figure(result: dict[str, Any]) -> str:
    if "result" in result:
        return str(result["result"]).replace("\n", " ").replace("|", "/")[-120:]
    if "changes_per_s" in result:
        return f"{result['changes_per_s']:,}"
    if "p50_ms" in result:
        return f"{result['p50_ms']:.4g} / {result['p99_ms']:.4g}"
    return ", ".join(f"{int(size):,}: {ms:.4g}" for size, ms in result["batch_ms"].items())
