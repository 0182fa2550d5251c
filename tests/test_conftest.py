"""The suite's own promise: Spark's tests meet in one worker, whatever versions of pytest and pytest-xdist do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import os
from pathlib import Path
import pytest

@pytest.mark.spark
@pytest.mark.parametrize("number", range(6))
def test_with_spark(number):
    Path(f"spark-{number}").write_text(str(os.getpid()))

@pytest.mark.parametrize("number", range(6))
def test_without(number):
    Path(f"other-{number}").write_text(str(os.getpid()))
"""


def test_spark_tests_run_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(SUITE.replace("spark-", f"spark-{name}-").replace("other-", f"other-{name}-"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    spark: needs a session\n")
    # The inner run is a suite of its own, not a part of the worker that this test may run in.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    suite = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert suite.returncode == 0, suite.stdout
    assert len(list(tmp_path.glob("other-*"))) == 12
    workers = [path.read_text() for path in tmp_path.glob("spark-*")]
    assert len(workers) == 12
    assert len(set(workers)) == 1
