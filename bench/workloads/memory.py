"""Peak memory of a process that catches up by Spark, with its JVM and its Python workers, against ``memory_bytes``."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

import viewkeeper as vk
from bench.feeding import EVENTS, catch_up, fill
from bench.harness import Bench, Row
from bench.workloads.throughput import SUM_COUNT
from viewkeeper.settings import Settings

SAMPLE_SECONDS = 0.1
_CHILD = "import sys; from bench.workloads.memory import catch_up_alone; catch_up_alone(sys.argv[1])"
# So many times the changes of W1 wait: more than one epoch should take at once.
TIMES = 4
ROWS_A_TRANSACTION = 10_000


def run(bench: Bench) -> None:
    """Write a long log, then catch up in a process of its own and look at the memory of its whole tree."""
    rows = TIMES * bench.scale.changes
    random = np.random.default_rng(9)
    with bench.temporary("memory") as folder:
        store = folder / "memory.vk"
        with vk.connect(store, durability="none") as db:
            db.sql(EVENTS)
            db.sql(SUM_COUNT)
            groups, values = random.integers(0, 1_000_000, rows), random.integers(0, 100_000, rows)
            fill(db, "events", pa.table({"id": np.arange(rows), "g": groups, "v": values}), ROWS_A_TRANSACTION)
        peak, said = _watched(store)
    bound = Settings().memory_bytes
    details = {**peak, "memory_bytes": bound, "log_rows": rows, "epochs": said}
    what = f"peak RSS of driver, JVM and workers ÷ memory_bytes, {rows:,} log rows, 1 M groups"
    bench.add(Row("memory", what, peak["total"] / bound, "×", "spark", "none", "memory", details))
    bench.add(Row("memory", "peak RSS of driver, JVM and workers", peak["total"] / 2**20, "MiB", "spark", "none"))
    what = "of it the process's own pages, without the store's mapped file"
    bench.add(Row("memory", what, peak["own"] / 2**20, "MiB", "spark", "none"))


class _Watch(threading.Thread):
    """Samples the memory of a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._over = threading.Event()
        self.peak = {"total": 0, "own": 0, "jvm": 0, "python": 0}

    def run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            now = dict.fromkeys(self.peak, 0)
            try:
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for process in tree:
                try:
                    memory, name = process.memory_info(), process.name()
                except psutil.Error:
                    continue
                now["total"] += memory.rss
                now["own"] += memory.rss - memory.shared
                now["jvm" if name.startswith("java") else "python"] += memory.rss
            self.peak = {key: max(value, now[key]) for key, value in self.peak.items()}

    def stop(self) -> dict[str, int]:
        self._over.set()
        self.join()
        return self.peak


def _watched(store: Path) -> tuple[dict[str, int], int]:
    command = [sys.executable, "-c", _CHILD, str(store)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = _Watch(child.pid)
    watch.start()
    said = child.communicate()[0]
    peak = watch.stop()
    if child.returncode:
        raise RuntimeError(f"the process that was to catch up has failed: {said}")
    return peak, int(said.split()[-1])


def catch_up_alone(store: str) -> None:
    """Catch up and say how many epochs it took: what the watched process does."""
    with vk.connect(store, executor="spark", durability="none") as db:
        print(len(catch_up(db).outcomes))
