"""The systems of bench/peers on W1 to W6, in their clock (batches of 100,000, ingest in); absent ones say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import viewkeeper
from bench.data import PEERS, peer_data
from bench.harness import Bench
from viewkeeper.java import java_environment

# What must be there for a peer to run; see bench/peers/README.md.
NEEDS = {
    "pathway": "PEER_PYTHON_PATHWAY",
    "dbsp": "CARGO_TARGET_DIR",
    "flink": "FLINK_PYTHON",
    "postgres": "PEER_PYTHON_POSTGRES",
}
HERE = ("duckdb_full", "spark_full", "viewkeeper")
TIMEOUT_SECONDS = 600
NOT_RUN = "not run here"


def run(bench: Bench) -> None:
    """Run every peer whose environment exists."""
    present = [*HERE, *(name for name, variable in NEEDS.items() if os.environ.get(variable))]
    for name, variable in NEEDS.items():
        if name not in present:
            bench.add_peer({"peer": name, "variant": "", "workload": "all", "result": NOT_RUN, "needs": variable})
            bench.note(f"  peers: {name}: {NOT_RUN} ({variable} is not set, see bench/peers/README.md)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peers.jsonl"
        command = [sys.executable, str(PEERS / "run_all.py"), "--data", peer_data(bench), "--out", str(out)]
        command += ["--only", ",".join(present), "--timeout", str(TIMEOUT_SECONDS)]
        command += ["--workloads", bench.scale.peer_workloads]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as process:
            for line in process.stdout or ():
                if line.startswith("{"):
                    bench.note("  peers: " + _told(json.loads(line)))
        for line in out.read_text().splitlines():
            bench.add_peer(json.loads(line))


def _environment() -> dict[str, str]:
    root = str(Path(viewkeeper.__file__).parents[1])
    paths = [root, *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])]
    added = {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **java_environment(), **added}


def _told(result: dict[str, object]) -> str:
    figures = [f"{key} {result[key]}" for key in ("changes_per_s", "p50_ms", "batch_ms", "result") if key in result]
    return f"{result['workload']} {result['peer']} {result['variant']}: {', '.join(figures)}"
