"""Spark sessions: ours, started when it is first needed, and what our jobs need of somebody else's."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from pyspark import SparkContext
from pyspark.sql import SparkSession

from viewkeeper.java import java_environment

DEFAULT_MASTER = "local[2]"
MAX_FAILURES = 4

# Threads that run epochs side by side may want the first session at once.
_STARTING = Lock()

# What our jobs rely on. With adaptive execution each stage would be a job of its own, planned anew.
JOB_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.execution.arrow.compression.codec": "none",
}

# An epoch's Java code runs a few thousand times and its data pass by untouched: of its 0.5 core-seconds 0.3 went into
# compiling it at the highest level, while both cores were wanted. What loops over rows, in Spark SQL, still gets there.
_JAVA_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=20000"
    " -XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=1000000"
)

# Workers keep the memory that a step's arrays leave for the next ones: fresh pages, which the kernel clears, were a
# third of a task's time. An epoch's first task gives it back (task.py).
_WORKER_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # Arrays are added and sorted, never multiplied as matrices: no threads for that.
    "OPENBLAS_NUM_THREADS": "1",
}


def spark_session(
    master: str = DEFAULT_MASTER,
    driver_memory: str = "1g",
    shuffle_partitions: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session of ours, started by this call or before; where Spark runs here already, that one, as it is.

    Args:
        master: where it runs: ``local[cores]``, or the address of a cluster.
        driver_memory: memory of the driver's Java process, as Spark writes it.
        shuffle_partitions: partitions of shuffles in plain SQL; by default one a core.
        settings: more of Spark's settings; they win over ours.

    Raises:
        ViewkeeperError: ``JAVA_NOT_FOUND``.
    """
    with _STARTING:
        return _started(master, driver_memory, shuffle_partitions, settings)


def _started(
    master: str, driver_memory: str, shuffle_partitions: int | None, settings: Mapping[str, str] | None
) -> SparkSession:
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    os.environ.update(java_environment())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(_retrying(master)).appName("viewkeeper")
    for name, value in {**_own_settings(master, driver_memory), **(settings or {})}.items():
        builder = builder.config(name, value)
    with _quiet_launch():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if "spark.sql.shuffle.partitions" not in (settings or {}):
        partitions = shuffle_partitions or session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return session


def job_session(session: SparkSession) -> SparkSession:
    """Return a session beside ``session``, on the same context, with the settings of our jobs.

    Args:
        session: ours or the user's; its settings stay as they are.
    """
    beside = session.newSession()
    for name, value in JOB_SETTINGS.items():
        beside.conf.set(name, value)
    return beside


def _retrying(master: str) -> str:
    """Let local tasks be tried again: plain ``local[2]`` never does, and a killed worker would end the epoch."""
    cores = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{cores[1] or 1},{MAX_FAILURES}]" if cores is not None else master


def _own_settings(master: str, driver_memory: str) -> dict[str, str]:
    return {
        **JOB_SETTINGS,
        "spark.driver.memory": driver_memory,
        # Epochs of several cadences may run at once: none waits for all stages of another (job.py gives each a pool).
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.task.maxFailures": str(MAX_FAILURES),
        # Files of past exchanges go when Java collects garbage; by itself Spark would see to that every half an hour.
        "spark.cleaner.periodicGC.interval": "2min",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        # On one machine what is exchanged only goes to the page cache and back.
        "spark.shuffle.compress": str(not master.startswith("local")).lower(),
        **{f"spark.executorEnv.{name}": value for name, value in _WORKER_ENVIRONMENT.items()},
        **_python_path(),
    }


def _python_path() -> dict[str, str]:
    """Let workers import the package that runs here, where it is not installed (a checkout on PYTHONPATH)."""
    root = Path(__file__).absolute().parents[3]
    if root in {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}:
        return {}
    given = os.environ.get("PYTHONPATH")
    return {"spark.executorEnv.PYTHONPATH": os.pathsep.join([str(root), *([given] if given else [])])}


@contextmanager
def _quiet_launch() -> Iterator[None]:
    """Keep off the screen what Spark's processes write there; show it where they do not start.

    They inherit our standard error, and greet on it before any log setting counts. Later failures reach the user as
    exceptions, so nothing is lost with what they log.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        try:
            os.dup2(log.fileno(), 2)
            yield
        except BaseException:
            log.seek(0)
            os.write(kept, log.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
