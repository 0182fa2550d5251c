"""Users' functions where another process maintains: code that came with the store, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.cli.command import COMMAND, environment

pytestmark = pytest.mark.slow

MODULE = "def score(v):\n    return None if v is None else 10 * v\n"
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import rules
import viewkeeper as vk

rate = 3
with vk.connect({store!r}, executor="local") as db:
    db.sql("CREATE TABLE t (k BIGINT, v INT, PRIMARY KEY (k))")
    db.register_function("score", rules.score, "INT", deterministic=True)
    db.register_function("rated", lambda v: None if v is None else v * rate, "INT", deterministic=True)
    db.sql("CREATE MATERIALIZED VIEW scores AS SELECT k, score(v) AS n FROM t")
    db.sql("CREATE MATERIALIZED VIEW rates AS SELECT SUM(rated(v)) AS n FROM t")
"""


def maintainer(store: str, **variables: str) -> subprocess.Popen[str]:
    """Start ``viewkeeper maintain`` and return when it maintains."""
    process = subprocess.Popen(
        [*COMMAND, "maintain", store], env=environment() | variables, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert "Maintaining" in process.stderr.readline()
    return process


def ended(process: subprocess.Popen[str], number: signal.Signals) -> str:
    os.kill(process.pid, number)
    return process.communicate(timeout=120)[1]


def test_a_maintainer_runs_what_others_have_registered(tmp_path: Path) -> None:
    store, folder = str(tmp_path / "store"), str(tmp_path)
    (tmp_path / "rules.py").write_text(MODULE)
    subprocess.run(
        [sys.executable, "-c", SCRIPT.format(folder=folder, store=store)], env=environment(), check=True, timeout=120
    )
    with_rules = {"PYTHONPATH": f"{environment()['PYTHONPATH']}{os.pathsep}{folder}"}
    with vk.connect(store, executor="local") as db:
        process = maintainer(store, **with_rules)
        position = db.put("t", {"k": 1, "v": 2})
        db.wait_for(position, timeout_seconds=120)
        assert (db.get("scores", 1), next(db.scan("rates"))) == ({"k": 1, "n": 20}, {"n": 6})
        ended(process, signal.SIGKILL)

        # Without the module: what was kept as code goes on, what needs the module waits and is not lost.
        process = maintainer(store)
        position = db.put("t", {"k": 2, "v": 3})
        db.wait_for(position, "rates", timeout_seconds=120)
        assert next(db.scan("rates")) == {"n": 15}
        assert db.get("scores", 2) is None
        said = ended(process, signal.SIGTERM)
        assert "FUNCTION_NOT_LOADABLE" in said
        assert process.returncode == 0

        process = maintainer(store, **with_rules)
        db.wait_for(position, timeout_seconds=120)
        assert db.get("scores", 2) == {"k": 2, "n": 30}
        ended(process, signal.SIGTERM)
