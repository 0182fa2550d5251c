"""``python -m bench``: measure ours and the peers, compare, and write bench/results."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench import plots, report
from bench.harness import FULL, QUICK, SMOKE, Bench, Options, Scale
from bench.journal import OtherRunError
from bench.systems import DEFAULT_FOLDER, SYSTEMS
from bench.workloads import FAMILIES, NAMES, chosen
from viewkeeper.clock import SYSTEM_CLOCK

RESULTS = Path(__file__).parent / "results"


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, some minutes")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does everything run?")
    there = ", ".join([*NAMES, *FAMILIES])
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {there}")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the results that are there: skip what is done"
    )
    parser.add_argument("--minutes", type=float, help="begin no measurement after so many minutes; --resume goes on")
    parser.add_argument(
        "--peers", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="where the peers are installed"
    )
    systems = ", ".join(system.name for system in SYSTEMS)
    parser.add_argument(
        "--systems", default="", metavar="NAME,...", help=f"which run the peers' workloads, of {systems}"
    )
    parser.add_argument("--write-seconds", type=float, help="how long the flat-out writer runs; the full measure is 60")
    parser.add_argument("--repeats", type=int, help="how often each epoch is measured")
    parser.add_argument("--peer-repeats", type=int, help="how often each peer runs a workload")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--work", type=Path, help="a folder for stores and data; a temporary one by default")
    parser.add_argument("--scale-factor", type=float, help="of TPC-H's data; 1 is 1.5 million orders")
    parser.add_argument(
        "--kept", type=Path, metavar="DIR", help="where TPC-H's data and store stay for later slices; not kept else"
    )
    options = parser.parse_args(arguments)
    try:
        options.measurements = chosen(options.only)
    except KeyError as error:
        parser.error(f"there is no measurement {error.args[0]}; there are {there}")
    options.systems = frozenset(filter(None, options.systems.split(",")))
    if unknown := options.systems - {system.name for system in SYSTEMS}:
        parser.error(f"there is no system {', '.join(sorted(unknown))}; there are {systems}")
    return options


def scale_of(options: argparse.Namespace) -> Scale:
    scale = SMOKE if options.smoke else QUICK if options.quick else FULL
    changed = {
        "writes_a_phase_seconds": options.write_seconds,
        "repeats": options.repeats,
        "peer_repeats": options.peer_repeats,
        "scale_factor": options.scale_factor,
    }
    return replace(scale, **{name: value for name, value in changed.items() if value})


def measures_ours(options: argparse.Namespace) -> bool:
    """Return whether any code of ours is measured: not where only other systems run the peers' workloads."""
    are_peers = set(options.measurements) <= set(FAMILIES["peers"])
    return not (are_peers and options.systems and "viewkeeper" not in options.systems)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if options.work is not None:
        Path(options.work).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        more = Options(options.peers, options.systems, kept=options.kept, measures_ours=measures_ours(options))
        try:
            bench = Bench(scale_of(options), Path(folder), options.results, more, options.resume)
        except OtherRunError as error:
            print(error, file=sys.stderr)
            return 2
        failed = [name for name in _to_measure(bench, options) if not _measure(bench, name)]
        path = report.write(bench)
    missed = [row for row in bench.rows if row.verdict.startswith("missed")]
    bench.note(f"{path}: {len(bench.rows)} figures, {len(missed)} targets missed, {len(failed)} measurements failed")
    return 1 if failed else 0


def _to_measure(bench: Bench, options: argparse.Namespace) -> Iterator[str]:
    """Yield what is to be measured next, until the time is up."""
    started = SYSTEM_CLOCK.monotonic_seconds()
    # What is named singly is measured anew, of a family what is missing.
    named = set(options.only.split(","))
    skipped = set(bench.journal.seconds) - set(FAMILIES["peers"]) if options.only else set(bench.journal.seconds)
    skipped |= set() if options.only else bench.scale.left_out
    names = [name for name in options.measurements if name in named or name not in skipped]
    for number, name in enumerate(names):
        if options.minutes and SYSTEM_CLOCK.monotonic_seconds() - started > 60 * options.minutes:
            bench.note(f"the time is up; --resume goes on with {', '.join(names[number:])}")
            return
        # A peer's result stands by itself: these are filled up to the repeats wanted. Ours are made in one piece.
        if name not in FAMILIES["peers"]:
            bench.journal.begin(name)
        yield name


def _measure(bench: Bench, name: str) -> bool:
    """Make a measurement; a failure is told, the others are still worth having."""
    started = SYSTEM_CLOCK.monotonic_seconds()
    bench.note(f"{name}: {(NAMES[name].__doc__ or '').strip()}")
    try:
        NAMES[name](bench)
    except Exception as error:
        bench.note(f"  {name} has failed: {type(error).__name__}: {error}")
        return False
    finally:
        # After each, so that a run that is broken off leaves what it has.
        report.write(bench)
        plots.write(bench)
    seconds = SYSTEM_CLOCK.monotonic_seconds() - started
    if name not in FAMILIES["peers"] or not bench.systems:  # some systems are not all
        bench.journal.done(name, seconds)
    bench.note(f"  ({seconds:.0f} s)")
    return True


if __name__ == "__main__":
    # So that a run that is ended from outside ends what it has started, and removes its folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
