"""The systems of bench/peers on W1 to W6, in their clock (batches of 100,000, ingest in); an absent one says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import viewkeeper
from bench.data import peer_data
from bench.harness import Bench
from bench.systems import SYSTEMS, System, variables
from viewkeeper.java import java_environment

TIMEOUT_SECONDS = 600
MEASURE = "peers-"


def measurements() -> dict[str, Callable[[Bench], None]]:
    """Return one measurement a workload, so that the systems stand side by side in time too."""
    return {MEASURE + workload: _measurement(workload) for workload in ("W1", "W2", "W3", "W4", "W5", "W6")}


def _measurement(workload: str) -> Callable[[Bench], None]:
    def measure(bench: Bench) -> None:
        _run(bench, workload)

    measure.__doc__ = f"{workload} of bench/peers on every system, ours among them, in their clock."
    return measure


def _run(bench: Bench, workload: str) -> None:
    """Run the workload on each system in turn, then again: a busy minute does not hit one of them only."""
    for number in range(bench.scale.peer_repeats):
        for system, variant in _runners(bench, workload):
            if len(_had(bench, workload, system.name, variant)) > number:
                continue  # a run that was broken off goes on
            lacks = system.lacks(bench.environments, variant)
            if lacks and number:
                continue  # said already
            result: dict[str, Any] = {"peer": system.name, "variant": variant, "workload": workload}
            if lacks:
                result |= {"result": "not installed", "needs": lacks}
            else:
                result = {**_measured(bench, system, variant, workload), **result}
                result["version"] = system.version(bench.environments)
            bench.add_peer(result)
            bench.note("  " + _told(result))


def _runners(bench: Bench, workload: str) -> Iterator[tuple[System, str]]:
    for system in SYSTEMS:
        if not bench.systems or system.name in bench.systems:
            yield from ((system, variant) for variant, workloads in system.variants.items() if workload in workloads)


def _had(bench: Bench, workload: str, peer: str, variant: str) -> list[dict[str, Any]]:
    wanted = (workload, peer, variant)
    return [r for r in bench.peers if (r["workload"], r["peer"], r["variant"]) == wanted and "needs" not in r]


def _measured(bench: Bench, system: System, variant: str, workload: str) -> dict[str, Any]:
    """Run one script; what it cannot do is its result, too."""
    load = os.getloadavg()[0]
    data = peer_data(bench)
    with bench.temporary("peer") as folder:
        out, errors = folder / "out.jsonl", folder / "errors.txt"
        command = [*system.command(bench.environments), "--workload", workload, "--variant", variant]
        command += ["--data", data, "--out", str(out)]
        with (
            errors.open("w") as file,
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file, env=_environment(bench)) as process,
        ):
            failure = _wait(process)
        lines = out.read_text().splitlines() if out.exists() else []
        said = errors.read_text().strip().rpartition("\n")[2][-300:]  # a traceback would name this machine's folders
    if lines:
        return {**json.loads(lines[-1]), "load": load}
    return {"result": f"failed: {failure or said or f'exit status {process.returncode}'}", "load": load}


def _wait(process: subprocess.Popen[bytes]) -> str:
    """Wait for a script; one that takes too long is asked to end, so that it ends what it has started."""
    try:
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait()
        return f"over {TIMEOUT_SECONDS} s"
    except BaseException:
        process.send_signal(signal.SIGTERM)
        raise
    return ""


def _environment(bench: Bench) -> dict[str, str]:
    root = str(Path(viewkeeper.__file__).parents[1])
    paths = [root, *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])]
    added = {"PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **java_environment(), **variables(bench.environments), **added}


def _told(result: dict[str, Any]) -> str:
    figures = [
        f"{key} {result[key]}" for key in ("changes_per_s", "p50_ms", "batch_ms", "result", "needs") if key in result
    ]
    return f"{result['workload']} {result['peer']} {result['variant']}: {', '.join(figures)}"
