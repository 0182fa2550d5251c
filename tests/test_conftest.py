"""The suite's own promises: Spark's tests meet in one worker, and no test starts Python unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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


STARTS = """
import subprocess, sys
import pytest

@pytest.fixture(scope="module")
def child():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_unmarked(child):
    pass

@pytest.mark.slow
def test_marked():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_another_program():
    subprocess.run(["true"], check=True)
"""


def suite(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of these files, of its own, and not a part of the worker that this test may run in."""
    conftest = (Path(__file__).parent / "conftest.py").read_text()
    (folder / "conftest.py").write_text(conftest.replace("QUICK_SECONDS = 2.0", "QUICK_SECONDS = 0.0"))
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    spark: needs a session\n    slow: takes long\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_spark_tests_run_in_one_worker(tmp_path: Path) -> None:
    files = {
        name: SUITE.replace("spark-", f"spark-{name}-").replace("other-", f"other-{name}-")
        for name in ("test_one", "test_two")
    }
    done = suite(tmp_path, "-n", "2", "--dist", "loadgroup", **files)
    assert done.returncode == 0, done.stdout
    assert len(list(tmp_path.glob("other-*"))) == 12
    workers = [path.read_text() for path in tmp_path.glob("spark-*")]
    assert len(workers) == 12
    assert len(set(workers)) == 1


def test_what_starts_python_must_say_so_and_what_takes_long_is_named(tmp_path: Path) -> None:
    said = suite(tmp_path, test_starts=STARTS).stdout
    assert "1 failed, 2 passed" in said
    assert "FAILED test_starts.py::test_unmarked - Failed: It starts Python" in said
    long = said.partition("more than 0 s and not marked slow")[2].partition("short test summary")[0]
    assert [
        name
        for name in ("test_unmarked", "test_marked", "test_another_program")
        if f" s  test_starts.py::{name}\n" in long
    ] == [
        "test_unmarked",
        "test_another_program",
    ]
