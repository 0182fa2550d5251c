"""``viewkeeper bench``: what views cost and how fresh they are on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.options import JsonOption, UsageError

if TYPE_CHECKING:
    from viewkeeper.cli.benchmark import Figure

EXECUTORS = {"local": ("local",), "spark": ("spark",), "both": ("local", "spark")}


def bench(
    seconds: Annotated[
        float,
        typer.Option(min=0.0, help="About how long to measure by each executor; filling and starting come on top."),
    ] = 8.0,
    rows: Annotated[int, typer.Option(min=2_000, help="Orders in the store that is measured.")] = 200_000,
    executor: Annotated[
        str, typer.Option(help="local: in process; spark: by Spark, which needs Java; both: one after the other.")
    ] = "local",
    as_json: JsonOption = False,
) -> None:
    """Measure what views cost and how fresh they are on this machine.

    In a temporary store with the default settings: changes a second into a view of sums and into a join, a small batch
    beside computing the same view anew, freshness from a put to the view with a maintainer running, a get by key. Each
    view is compared with its query at the end. The store lies where TMPDIR says.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from viewkeeper.cli.benchmark import measured
    from viewkeeper.cli.machine import machine
    from viewkeeper.cli.output import ProgressBar, print_json

    if executor not in EXECUTORS:
        raise UsageError(f"--executor is one of {', '.join(EXECUTORS)}, not {executor!r}.")
    about = machine()
    figures: list[Figure] = []
    with ProgressBar("Measuring") as bar:
        for one in EXECUTORS[executor]:
            with TemporaryDirectory(prefix="viewkeeper-bench-") as folder:
                figures += measured(Path(folder), one, rows, seconds, bar.report)
    if as_json:
        print_json({"machine": about, "orders": rows, "figures": [asdict(figure) for figure in figures]})
    else:
        _print(about, rows, figures, executor)


def _print(about: dict[str, Any], rows: int, figures: list[Figure], executor: str) -> None:
    from viewkeeper.cli.output import console, print_table, say

    cpu, cores, memory = about["cpu"], about["cores"], about["memory_gib"]
    versions = ", ".join(f"{name} {about[name]}" for name in ("viewkeeper", "python", "pyarrow", "lmdb", "pyspark"))
    out = console()
    out.print(f"{cpu}, {cores} cores, {memory} GiB, load {about['load']} at the start; {about['system']}")
    out.print(f"{versions}; default settings; {rows:,} orders")
    lines = [(f.what, f.executor, _shown(f.value), f.unit) for f in figures]
    print_table(("measured", "executor", "figure", "unit"), lines, (False, False, True, False))
    say("Each view was compared with its query, computed anew: equal.")
    if executor == "local":
        say("`viewkeeper bench --executor both` measures the same by Spark, which does large changes.")


def _shown(value: float) -> str:
    """Return a figure with the digits that count.

    Example:
        >>> _shown(123456.7), _shown(12.34), _shown(0.01234)
        ('123,457', '12.3', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
