"""A program: epochs of the usual views on a Spark of its own, compared with one process. One Spark runs in a process.

usage: one_cluster.py FOLDER MASTER [kill-executor]     prints one line of JSON; kills in the last epoch
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from random import Random

import psutil

from tests.executors.spark.cadence import VIEWS, Cadence, Opener
from tests.executors.spark.test_job import changes
from viewkeeper.executors.local import LocalExecutor
from viewkeeper.executors.spark.job import SparkExecutor
from viewkeeper.executors.spark.session import spark_session


class KillExecutor:
    """Kills the Java process of the executor that first calls it."""

    def __init__(self, mark: Path, driver: int) -> None:
        self.mark = str(mark)
        self.driver = driver

    def __call__(self) -> None:
        if os.getpid() == self.driver:
            return
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        java = next(p for p in psutil.Process().parents() if p.name() == "java" or "java" in p.exe())
        os.kill(java.pid, signal.SIGKILL)


def main(folder: Path, master: str, kill: bool) -> dict[str, object]:
    spark = spark_session(master, settings={"spark.executor.memory": "512m", "spark.executor.cores": "1"})
    try:
        with Cadence(folder / "here", VIEWS) as here, Cadence(folder / "there", VIEWS) as there:
            local = LocalExecutor(here.folder.base, here.folder.views)
            first = LocalExecutor(there.folder.base, there.folder.views)
            openers = [Opener(there.folder.path)] * 2
            if kill:
                openers.append(Opener(there.folder.path, KillExecutor(folder / "killed", os.getpid())))
            equal = []
            for epoch, opener in enumerate(openers):
                operations = changes(Random(epoch), 150)
                here.commit(*operations)
                there.commit(*operations)
                plan = here.plan()
                here.publish(plan, local.run(plan))
                plan = there.plan()
                remote = SparkExecutor(lambda: spark, opener, there.folder.staging_path, 2)
                there.publish(plan, (remote if epoch else first).run(plan))
                equal.append(here.state() == there.state())
            java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
            executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
            return {"equal": equal, "java": java, "executors": executors, "killed": (folder / "killed").exists()}
    finally:
        spark.stop()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], "kill-executor" in sys.argv)))
