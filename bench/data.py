"""The peers' workloads, generated once a run."""

from __future__ import annotations

import subprocess
import sys

from bench.harness import Bench
from bench.systems import SCRIPTS


def peer_data(bench: Bench) -> str:
    """Return the folder of the generated workloads at the run's scale, made at first use."""
    path = bench.folder / "data"
    if not path.exists():
        bench.note("generating the workloads")
        command = [sys.executable, str(SCRIPTS / "gen.py"), "--out", str(path), "--scale", str(bench.scale.factor)]
        subprocess.run(command, check=True)
    return str(path)
