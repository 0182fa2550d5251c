"""``status``, ``verify``, ``explain``, ``refresh`` and ``doctor``."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import done, json_of, run
from viewkeeper.adapters.lmdb.locks import ProcessLock
from viewkeeper.cli.inspect import _reader
from viewkeeper.database import connect
from viewkeeper.evaluation.moments import EvaluationContext
from viewkeeper.evaluation.verify import VerifyReport, verify_view
from viewkeeper.java import find_java
from viewkeeper.operators.layouts import FORMATS


def test_status_tells_lag_and_what_to_run(store: Path) -> None:
    with connect(store) as db:
        db.put("t", {"k": 4, "a": "x", "v": 1})
        db.put("t", {"k": 5, "a": "x", "v": 1})
    result = run("status", store)
    assert "Nobody maintains this store: run `viewkeeper maintain`" in result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith("s "))
    assert line.split()[1:3] == ["ACTIVE", "CONTINUOUS"]
    assert " ago " in line
    [view] = json_of("status", store)["views"]
    assert (view["rows_behind"], view["executor"]) == (2, "local")
    assert line.split()[6] == "2"


def test_status_of_views_that_are_fresh_and_maintained(store: Path) -> None:
    done("refresh", store)
    with ProcessLock(store / "maintainer.lock"):
        result = run("status", store)
    assert f"Maintained by process {os.getpid()} on " in result.stdout
    assert "up to date" in result.stdout
    assert result.stderr == ""


def test_status_tells_which_way_a_view_went_and_why(store: Path) -> None:
    with connect(store, executor="local") as db:
        db.put("t", {"k": 4, "a": "x", "v": 1})
        db.refresh()
    assert done("status", store).splitlines()[-1].split()[-1] == "INCREMENTAL"
    with connect(store, executor="local") as db:
        ways = db._engine.coordinator.ways
        ways.judge, ways.quick_seconds = (lambda group, executors, fits: ("FULL", "TRIED")), 0.0
        db.put("t", {"k": 5, "a": "x", "v": 1})
        db.refresh()
    printed = done("status", store)
    # With seconds where the machine was so busy that an epoch before was worth measuring.
    assert re.search(r"s: FULL: 5 base rows.* against 1 changed rows.*, done to measure it", printed)
    [view] = json_of("status", store)["views"]
    assert (view["policy"], view["way"], view["why"]) == ("AUTO", "FULL", "TRIED")
    shown = done("sql", store, "-e", "SHOW REFRESH DECISIONS FOR s")
    assert "TRIED" in shown


def test_explain_analyze_refreshes_and_compares(store: Path) -> None:
    with connect(store) as db:
        db.put("t", {"k": 4, "a": "x", "v": 1})
    printed = done("sql", store, "-e", "EXPLAIN ANALYZE MATERIALIZED VIEW s")
    assert "INCREMENTAL by local, 1 rows of 1 predicted" in printed


def test_status_names_the_rows_that_cannot_be_computed(store: Path) -> None:
    with connect(store) as db:
        db.sql("CREATE MATERIALIZED VIEW q AS SELECT k, 10 / v AS share FROM t")
        db.put("t", {"k": 6, "a": "z", "v": 0})
    result = run("refresh", store)
    assert (result.exit_code, result.stderr.partition("] ")[0]) == (1, "[VIEW_FAILED")
    printed = done("status", store)
    assert "FAILED" in printed
    assert "last good epoch" in printed
    assert "q: 1 row cannot be computed, first DIVIDE_BY_ZERO at " in printed
    doctored = run("doctor", store)
    assert doctored.exit_code == 1
    assert doctored.stderr == (
        "[CHECKS_FAILED] Not as it must be: views. 'found' tells what to change; then run it again.\n"
    )


def test_status_names_the_oldest_reader(store: Path) -> None:
    assert "Oldest reader" not in done("status", store)
    with connect(store) as db, db.snapshot() as moment:
        assert moment.get("t", 1) is not None
        assert re.search(rf"Oldest reader: process {os.getpid()} reads for \d+ ms\.", done("status", store))
    found = {"process_id": 7, "age_seconds": -1.0}
    assert _reader(found) == "process 7 reads, for how long is not known"


def test_refresh_says_what_it_did(store: Path) -> None:
    with connect(store) as db:
        db.put("t", {"k": 4, "a": "w", "v": 1})
    printed = done("refresh", store, "s")
    assert printed.startswith("1 epoch in ")
    assert "by local: 1 row read, 1 view row changed." in printed
    assert done("refresh", store).startswith("Nothing was waiting: position ")
    with connect(store) as db:
        db.put("t", {"k": 5, "a": "w", "v": 2})
    found = json_of("refresh", "s", store=store)
    assert (found["epochs"], found["log_rows"], found["executor"]) == (1, 1, "local")
    assert "[VIEW_NOT_FOUND]" in run("refresh", store, "nothing").stderr


def test_refresh_in_full(store: Path) -> None:
    assert json_of("refresh", store, "s", "--full")["epochs"] > 0
    assert done("export", store, "s") == '"a","n","total"\n"x",2,8\n"y",1,4\n'


def test_explain(store: Path) -> None:
    assert "Aggregate by a" in done("explain", store, "SELECT a, MAX(v) AS m FROM t GROUP BY a")
    assert "Aggregate by a" in done("explain", "SELECT a, MAX(v) AS m FROM t GROUP BY a", store=store)
    assert run("explain", store).exit_code == 2
    assert run("explain", store, "SELECT nothing FROM t").stderr.startswith("[UNRESOLVED_COLUMN] ")


@pytest.mark.spark
def test_verify_recomputes_by_spark(store: Path) -> None:
    [found] = json_of("verify", store)
    assert found.pop("seconds") > 0
    checks = found.pop("checks")
    assert found == {"view": "s", "result": "right", "missing": 0, "unexpected": 0, "different": 0}
    kinds = [check["checked"].split()[0] for check in checks]
    assert kinds == ["view", "groups", "errors", "rows", "pending"]
    assert {check["result"] for check in checks} == {"right"}
    lines = done("verify", store).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("s ")] == kinds
    [found] = json_of("verify", store, "--rows-only")
    assert [check["checked"] for check in found["checks"]] == ["view"]


@pytest.mark.spark
def test_verify_repairs_what_is_wrong_by_verifying_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(store) as db:
        db.sql("CREATE MATERIALIZED VIEW still AS SELECT k FROM t; ALTER MATERIALIZED VIEW still SUSPEND")
        db.put("t", {"k": 4, "a": "z", "v": 1})
        db.refresh()
        views = db._engine.store.views
        with views.read() as txn:
            state = next(name for name in txn.databases() if name.startswith("continuous/v"))
        with views.write() as txn:
            txn.delete_range(state, None, None, 1)
    verified = []

    def counting(context: EvaluationContext, name: str, **options: Any) -> VerifyReport:
        verified.append(name)
        return verify_view(context, name, **options)

    monkeypatch.setattr("viewkeeper.database.script.verify_view", counting)
    assert run("verify", store).stderr.startswith("[VIEW_WRONG] Not what their queries give: s. ")
    verified.clear()
    found = json_of("verify", store, "--repair")
    assert {row["view"]: row["result"] for row in found} == {"s": "repaired", "still": "not checked"}
    assert verified == ["s", "still"]
    printed = " ".join(done("verify", store).split())
    assert "ALTER MATERIALIZED VIEW still RESUME fills it anew" in printed
    assert {row["view"]: row["result"] for row in json_of("verify", store)} == {"s": "right", "still": "not checked"}


def test_verify_of_a_view_that_is_not_there(store: Path) -> None:
    assert run("verify", store, "nothing").stderr.startswith("[VIEW_NOT_FOUND] ")


@pytest.mark.parametrize(("views", "done"), [(["nothing"], "0/?"), (["nothing", "s"], "0/2")])
def test_verify_shows_on_a_terminal_which_view_it_is_at(
    store: Path, monkeypatch: pytest.MonkeyPatch, views: list[str], done: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar, _, error = run("verify", store, *views).stderr.partition("[VIEW_NOT_FOUND]")
    assert "Verifying" in bar
    assert done in bar
    assert "nothing" in bar
    assert error


def test_doctor_says_which_java_is_used() -> None:
    printed = done("doctor")
    assert str(find_java().path) in printed
    assert "store" not in printed


def test_doctor_fails_where_something_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    result = run("doctor", tmp_path / "none.vk", "--json")
    assert result.exit_code == 1
    assert result.stderr.startswith("[CHECKS_FAILED] Not as it must be: ")
    assert "store" in result.stderr
    assert '"found":"[STORE_NOT_FOUND]' in result.stdout


def test_doctor_looks_at_the_store(store: Path) -> None:
    found = {check["name"]: check for check in json_of("doctor", store)}
    assert "1 table, 1 view" in found["store"]["found"]
    assert found["maintainer"]["result"] == "note"
    assert found["views"]["result"] == "ok"


def test_state_of_another_version_is_told_with_what_to_do(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "groups", FORMATS["groups"] + 1)
    reason = "STATE_OUTDATED: another version of Viewkeeper wrote its state"
    found = {check["name"]: check for check in json.loads(run("doctor", store, "--json").stdout)}
    assert found["views"]["result"] == "failed"
    assert found["views"]["found"] == f"s is NEEDS_REBUILD ({reason}): ALTER MATERIALIZED VIEW s RESUME"
    assert f"s: {reason}" in done("status", store)
    done("sql", store, "-e", "INSERT INTO t VALUES (4, 'x', 6)")
    refreshed = run("refresh", store)
    assert refreshed.exit_code == 1
    assert "[NEEDS_REBUILD]" in refreshed.stderr
    done("sql", store, "-e", "ALTER MATERIALIZED VIEW s RESUME")
    assert json_of("sql", store, "-e", "SELECT total FROM s WHERE a = 'x'") == [{"total": 14}]
    found = {check["name"]: check for check in json_of("doctor", store)}
    assert found["views"]["result"] == "ok"
