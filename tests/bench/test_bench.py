"""The bench measures what it says, at tiny sizes; no time is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bench import report
from bench.__main__ import main, parsed, scale_of
from bench.feeding import COLUMNS, Changes, transactions
from bench.harness import FULL, QUICK, SMOKE, Bench, Row
from bench.targets import TARGETS
from bench.workloads import NAMES

LOCAL = replace(SMOKE, executors=("local",), changes=2_000, view_rows=500, fresh_writes=2)


def run(tmp_path: Path, *names: str) -> Bench:
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(LOCAL, work, tmp_path / "results", is_quiet=True)
    for name in names:
        NAMES[name](bench)
    return bench


def changes(*rows: tuple[int, int, int | None]) -> Changes:
    op, ids, values = zip(*rows, strict=True)
    return Changes("events", pa.table({"op": op, "id": ids, "g": values, "v": values}))


def test_a_transaction_comes_to_its_last_changes() -> None:
    some = changes((1, 1, 10), (0, 1, 11), (1, 2, 20), (-1, 2, None), (-1, 1, None), (1, 3, 30))
    assert [(rows.to_pylist(), gone) for rows, gone in transactions(some, 4)] == [
        ([{"id": 1, "g": 11, "v": 11}], [2]),
        ([{"id": 3, "g": 30, "v": 30}], [1]),
    ]
    assert [sorted(rows["id"].to_pylist()) + gone for rows, gone in transactions(some, 100)] == [[3, 1, 2]]


def test_targets_are_judged_in_their_direction() -> None:
    assert Row("W1", "", 2.4e6, "changes/s", target="W1").verdict == "met"
    assert Row("W1", "", 1.15e6, "changes/s", target="W1").verdict == "missed (0.50 × the bound)"
    assert Row("get", "", 4.9, "µs", target="get").verdict == "met"
    assert Row("get", "", 10.0, "µs", target="get").verdict == "missed (2.00 × the bound)"
    assert Row("get", "", 10.0, "µs").verdict == ""


def test_throughput_counts_the_changes_that_waited(tmp_path: Path) -> None:
    bench = run(tmp_path, "W1", "W3", "minmax", "selection")
    by_name = {row.measure: row for row in bench.rows}
    assert list(by_name) == ["W1", "W3", "minmax", "selection"]
    assert by_name["W1"].details["changes"] == 1_800
    assert by_name["W1"].details["log_rows"] > 1_800  # an update has two delta rows
    assert by_name["minmax"].details["changes"] == 500
    assert by_name["W3"].details["view_rows"] > 0
    assert all(row.executor == "local" and row.details["epochs"] == 1 and row.value > 0 for row in bench.rows)


def test_reads_views_freshness_and_base_sizes(tmp_path: Path) -> None:
    bench = run(tmp_path, "reads", "views", "freshness", "base_size")
    assert {row.measure for row in bench.rows} == {"reads", "views", "freshness", "base_size"}
    path = report.write(bench)
    text = path.read_text()
    assert all(row.what in text for row in bench.rows)
    assert TARGETS["get"].text in text
    lines = [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]
    assert {"date", "cores", "memory_gib", "python", "java", "pyspark", "pyarrow", "lmdb", "viewkeeper"} <= {
        *lines[0]["run"]
    }
    assert len(lines) == 1 + len(bench.rows)


def test_absent_peers_are_told(tmp_path: Path) -> None:
    bench = Bench(LOCAL, tmp_path, tmp_path / "results", is_quiet=True)
    bench.add_peer(
        {"peer": "flink", "variant": "", "workload": "all", "result": "not run here", "needs": "FLINK_PYTHON"}
    )
    bench.add_peer({"peer": "x", "variant": "a", "workload": "W1", "changes_per_s": 1_000, "rss_mb": 5})
    bench.add_peer(
        {"peer": "viewkeeper", "variant": "local", "workload": "W1", "changes_per_s": 2_000, "executor": "local"}
    )
    text = report.write(bench).read_text()
    assert "- flink: not run here (FLINK_PYTHON is not set)" in text
    assert text.index("| viewkeeper local | 2,000 |") < text.index("| x a | 1,000 |")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scale_of(parsed([])) == FULL
    assert scale_of(parsed(["--quick"])) == QUICK
    assert scale_of(parsed(["--write-seconds", "60", "--repeats", "1"])) == replace(
        FULL, writes_a_phase_seconds=60.0, repeats=1
    )
    with pytest.raises(SystemExit):
        parsed(["--only", "W1,W9"])
    assert "there is no measurement W9" in capsys.readouterr().err
    assert main(["--smoke", "--only", "reads", "--results", str(tmp_path / "r"), "--work", str(tmp_path)]) == 0
    assert "get by key" in (tmp_path / "r" / "results.md").read_text()


def test_every_workload_says_what_it_measures() -> None:
    assert [name for name, measurement in NAMES.items() if not measurement.__doc__] == []
    assert set(COLUMNS) == {"events", "orders", "customers"}


@pytest.mark.spark
@pytest.mark.slow
def test_epochs_by_spark(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(replace(LOCAL, executors=("spark",)), work, tmp_path / "results", is_quiet=True)
    NAMES["W3"](bench)
    (row,) = bench.rows
    assert (row.executor, row.durability, row.target) == ("spark", "none", "W3")
    assert row.details["log_rows"] > row.details["changes"] > 0
