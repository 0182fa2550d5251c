"""``python -m bench``: measure, compare, and write bench/results."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench import plots, report
from bench.harness import FULL, QUICK, SMOKE, Bench, Scale
from bench.workloads import NAMES
from viewkeeper.clock import SYSTEM_CLOCK

RESULTS = Path(__file__).parent / "results"


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, about three minutes")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--write-seconds", type=float, help="how long the flat-out writer runs; the full measure is 60")
    parser.add_argument("--repeats", type=int, help="how often each epoch is measured")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--work", type=Path, help="a folder for stores and data; a temporary one by default")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.only.split(",") if name and name not in NAMES]
    if unknown:
        parser.error(f"there is no measurement {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return options


def scale_of(options: argparse.Namespace) -> Scale:
    scale = SMOKE if options.smoke else QUICK if options.quick else FULL
    if options.write_seconds:
        scale = replace(scale, writes_a_phase_seconds=options.write_seconds)
    return replace(scale, repeats=options.repeats) if options.repeats else scale


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    chosen = [name for name in NAMES if not options.only or name in options.only.split(",")]
    failed = []
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if options.work is not None:
        Path(options.work).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        bench = Bench(scale_of(options), Path(folder), options.results)
        for name in chosen:
            started = SYSTEM_CLOCK.monotonic_seconds()
            bench.note(f"{name}: {(NAMES[name].__doc__ or '').strip()}")
            try:
                NAMES[name](bench)
            except Exception as error:  # the others are still worth having
                failed.append(name)
                bench.note(f"  {name} has failed: {type(error).__name__}: {error}")
            bench.note(f"  ({SYSTEM_CLOCK.monotonic_seconds() - started:.0f} s)")
            # After each, so that a run that is broken off leaves what it has.
            path = report.write(bench)
            plots.write(bench)
    missed = [row for row in bench.rows if row.verdict.startswith("missed")]
    bench.note(f"{path}: {len(bench.rows)} figures, {len(missed)} targets missed, {len(failed)} measurements failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
