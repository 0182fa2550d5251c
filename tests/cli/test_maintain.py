"""``maintain`` and the child of ``db.maintain()``, as real processes: they work, say so, and end when they should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.cli.command import WAIT_SECONDS, Terminal, environment, run, start, wait_for_line
from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.database import Database, connect
from viewkeeper.errors import StoreError
from viewkeeper.pipeline.records import read_view
from viewkeeper.settings import Settings

pytestmark = pytest.mark.slow


def write(db: Database, key: int) -> None:
    """Put a row and wait until the maintainer has shown it in the view."""
    position = db.put("t", {"k": key, "a": "new", "v": key})
    db.wait_for(position, "s", timeout_seconds=WAIT_SECONDS)
    assert db.get("s", "new") is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_it_maintains_until_a_signal(store: Path, number: int) -> None:
    with start("maintain", store) as process, connect(store) as db:
        wait_for_line(process, "Maintaining ")
        write(db, 10)
        maintainer = db.status()["maintainer"]
        process.send_signal(number)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, err
        assert maintainer["process_id"] == process.pid
        assert db.status()["maintainer"] is None
    assert "cadence=continuous epoch=" in out
    assert "executor=local" in out
    assert err.startswith("Ended after ")


def test_epochs_are_lines_of_json(store: Path) -> None:
    with start("maintain", store, "--json") as process, connect(store) as db:
        # The first epoch passes what the setup has logged; it also says that the maintainer is there.
        wait_for_line(process, "continuous", "stdout")
        write(db, 10)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert (process.returncode, err) == (0, "")
    last = json.loads(out.splitlines()[-1])
    assert (last["cadence"], last["log_rows"], last["view_rows"], last["executor"]) == ("continuous", 1, 1, "local")
    assert last["behind"] == 0


def test_a_second_one_is_refused_and_a_standby_takes_over(store: Path) -> None:
    with start("maintain", store) as first, connect(store) as db:
        wait_for_line(first, "Maintaining ")
        refused = run("maintain", store)
        assert refused.exit_code == 1
        assert refused.stderr.startswith("[MAINTAINER_RUNNING] ")
        assert str(first.pid) in refused.stderr
        with start("maintain", store, "--standby") as second:
            wait_for_line(second, f"Waiting for process {first.pid} ")
            first.kill()
            wait_for_line(second, "Maintaining ")
            write(db, 11)
            second.send_signal(signal.SIGTERM)
            assert second.wait(WAIT_SECONDS) == 0


def test_the_screen_shows_cadences_and_ctrl_c_ends_it(store: Path, tmp_path: Path) -> None:
    with Terminal("maintain", store, home=tmp_path) as terminal, connect(store) as db:
        terminal.expect("Maintaining ")
        write(db, 12)
        terminal.expect("continuous")
        terminal.type("\x03")
        assert terminal.status() == 0
        assert "Ended after" in terminal.seen


def test_waiting_can_be_interrupted(store: Path) -> None:
    with ProcessLock(store / "maintainer.lock"), start("maintain", store, "--standby") as process:
        wait_for_line(process, f"Waiting for process {os.getpid()} ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, err) == (130, "Interrupted.\n")


def child(location: Path, settings: Settings) -> subprocess.Popen[str]:
    """Start the child as ``db.maintain()`` does."""
    encoded = msgspec.json.encode(settings).decode()
    command = [sys.executable, "-m", "viewkeeper.cli.maintain_child", str(location), encoded]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def test_the_child_ends_with_its_parent(store: Path) -> None:
    with child(store, Settings(durability="none")) as process, connect(store, durability="none") as db:
        write_when_maintained(db, process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(WAIT_SECONDS) == 0
        assert db.status()["maintainer"] is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_the_child_ends_by_a_signal(store: Path, number: int) -> None:
    with child(store, Settings()) as process, connect(store) as db:
        write_when_maintained(db, process)
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == 0


def write_when_maintained(db: Database, process: subprocess.Popen[str]) -> None:
    """Write when ``process`` has taken the lock, which the system tells by the second maintainer being refused."""
    while (db.status()["maintainer"] or {}).get("process_id") != process.pid:
        assert process.poll() is None, process.communicate()[1]
        os.sched_yield()
    write(db, 13)


def test_the_child_says_why_it_cannot(store: Path, tmp_path: Path) -> None:
    missing = child(tmp_path / "none.vk", Settings())
    assert missing.communicate(timeout=WAIT_SECONDS)[1].splitlines()[-1].startswith("[STORE_NOT_FOUND] ")
    assert missing.returncode == 1
    with connect(store) as db, db.maintain():
        second = child(store, Settings())
        assert second.communicate(timeout=WAIT_SECONDS)[1].splitlines()[-1].startswith("[MAINTAINER_RUNNING] ")
        assert second.returncode == 1


def test_a_connection_tells_why_its_child_has_not_started(store: Path, tmp_path: Path) -> None:
    with connect(store) as db:
        store.rename(tmp_path / "elsewhere.vk")
        with pytest.raises(StoreError, match=r"MAINTAINER_FAILED.*did not start: \[STORE_NOT_FOUND\]"):
            db.maintain()


def test_a_connection_maintains_in_the_background(store: Path) -> None:
    with connect(store) as db:
        with db.maintain() as maintainer:
            assert db.status()["maintainer"]["process_id"] == maintainer.process_id
            write(db, 14)
        assert db.status()["maintainer"] is None


def test_an_idle_one_finds_a_damaged_view(store: Path) -> None:
    with connect(store, scrub_interval_seconds=0.01) as db:
        with db._engine.store.views.write() as txn:
            record = read_view(txn, db._engine.coordinator.catalog().view("s").id)
            assert record is not None
            txn.delete(record.state, next(iter(txn.scan(record.state)))[0])
        with db.maintain():
            while not db.status()["troubles"]:
                assert db.status()["maintainer"] is not None
    printed = run("status", store)
    assert "checking view s: [VIEW_WRONG] View 's' is not what its query gives" in printed.stdout
    assert "1 missing: {'a': 'x', " in printed.stdout
