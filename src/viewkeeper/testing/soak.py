"""``python -m viewkeeper.testing.soak``: long runs with fresh seeds, all printed: oracle, simulation, sizes, kills.

Some scripts of each seed have their epochs run by Spark. Then the memory of a transaction of ten million rows, and of
statements over a table of two millions, is held to its bounds.
A failure prints its seed and the shortened script, ready for ``regressions`` of ``tests/simulation`` or ``oracle``.
The kill tests need the repository's ``tests`` folder in the working directory; elsewhere they are left out, and that is
said.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from viewkeeper.clock import SYSTEM_CLOCK
from viewkeeper.executors.spark.session import spark_session
from viewkeeper.settings import Settings
from viewkeeper.testing.actions import generate, generate_sharing
from viewkeeper.testing.draws import run_oracle
from viewkeeper.testing.duck import DuckDb
from viewkeeper.testing.simulation import SimulationFailed, shortest, simulate
from viewkeeper.testing.sizes import follow_large_transaction, growth_of_statements
from viewkeeper.testing.spark_epochs import drawn_scripts, run_by_spark

KILL_TESTS = Path("tests", "integration")
ORACLE_CASES, SIMULATIONS = 40, 4
SPARK_CASES = 10
LARGE_ROWS = 10_000_000
TABLE_ROWS = 200_000, 2_000_000
KILLS = 20


def soak(seconds: float, seed: int, actions: int = 40, spark: Any = None) -> Counter[str]:
    """Run simulations and oracle cases for some time, with one seed after the other.

    Args:
        seconds: how long.
        seed: the first one.
        actions: how many actions a simulation has.
        spark: a SparkSession for the oracle's last word, and for the epochs of some scripts; None to leave both out.

    Returns:
        How often what happened.

    Raises:
        SimulationFailed: after printing the seed and the shortened script.
        OracleFailure: with the shortened script.
    """
    counts: Counter[str] = Counter()
    duckdb = DuckDb()
    end = SYSTEM_CLOCK.monotonic_seconds() + seconds
    while SYSTEM_CLOCK.monotonic_seconds() < end:
        _say(f"seed {seed}")
        try:
            for number in range(seed * SIMULATIONS, (seed + 1) * SIMULATIONS):
                counts += simulate(number, actions, generate_sharing if number % SIMULATIONS == 0 else generate)
        except SimulationFailed as failed:
            _say(f"Simulation {number} failed: {failed}\n{json.dumps(shortest(failed.script, number), indent=1)}")
            raise
        counts += run_oracle(seed, ORACLE_CASES, duckdb, spark)
        if spark is not None:
            with TemporaryDirectory(prefix="viewkeeper-soak-") as folder:
                counts += run_by_spark(seed, drawn_scripts(seed, SPARK_CASES), Path(folder), spark)
        counts["seeds"] += 1
        seed += 1
    return counts


def check_sizes(rows: int) -> None:
    """Follow one transaction of so many rows, and change tables of two sizes; print what it took.

    Args:
        rows: how many.

    Raises:
        AssertionError: a view is wrong, or the processes used more than they may.
    """
    with TemporaryDirectory(prefix="viewkeeper-soak-") as folder:
        followed = follow_large_transaction(Path(folder), rows, Settings().memory_bytes)
    _say(f"{rows} rows in one transaction: {followed.seconds:.0f} s, {followed.peak_bytes >> 20} MiB at most")
    followed.check()
    with TemporaryDirectory(prefix="viewkeeper-soak-") as folder:
        grown = growth_of_statements(Path(folder), *TABLE_ROWS)
    _say(f"Statements over {TABLE_ROWS} rows: {grown:.0f} bytes more for each row more")


def run_kills(kills: int, seed: int) -> int:
    """Run the kill tests, those by Spark too; return pytest's exit status.

    Args:
        kills: hits at each place.
        seed: of what is written, and of the moments at which processes die.
    """
    if not KILL_TESTS.is_dir():
        _say(f"No {KILL_TESTS} here: kill tests left out.")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", str(KILL_TESTS), "-p", "no:xdist"]
    _say(f"Kills of seed {seed}; again, and nothing else: --seconds 0 --rows 0 --seed {seed}")
    chosen = {"VIEWKEEPER_TEST_KILLS": str(kills), "VIEWKEEPER_TEST_SEED": str(seed)}
    return subprocess.run(command, env={**os.environ, **chosen}, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m viewkeeper.testing.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long oracle and simulation run")
    parser.add_argument("--seed", type=int, help="the first seed; by default a fresh one")
    parser.add_argument("--rows", type=int, default=LARGE_ROWS, help="of the large transaction; 0 leaves sizes out")
    parser.add_argument("--kills", type=int, default=KILLS, help="hits at each failpoint; 0 leaves the kill tests out")
    chosen = parser.parse_args(arguments)
    seed = chosen.seed if chosen.seed is not None else int(SYSTEM_CLOCK.now_seconds() * 1000) % 1_000_000_000
    spark = spark_session()
    try:
        counts = soak(chosen.seconds, seed, spark=spark)
    finally:
        spark.stop()
    _say("\n".join(f"{count:8}  {name}" for name, count in sorted(counts.items())))
    if chosen.rows:
        check_sizes(chosen.rows)
    return run_kills(chosen.kills, seed) if chosen.kills else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
