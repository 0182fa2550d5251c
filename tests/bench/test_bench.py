"""The bench measures what it says, at tiny sizes; no time is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bench import plots, report
from bench.__main__ import main, measures_ours, parsed, scale_of
from bench.feeding import COLUMNS, Changes, transactions
from bench.harness import FULL, QUICK, SMOKE, Bench, Options, Row
from bench.journal import OtherRunError
from bench.nexmark.suite import NEXMARK
from bench.suites.comparison import Compared, compared, geometric_mean
from bench.systems import SCRIPTS, SYSTEMS, System
from bench.targets import GOALS, TARGETS
from bench.tpch.suite import TPCH
from bench.workloads import NAMES, chosen

LOCAL = replace(SMOKE, executors=("local",), changes=2_000, view_rows=500, fresh_writes=2)


QUIET = Options(is_quiet=True)


def run(tmp_path: Path, *names: str) -> Bench:
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(LOCAL, work, tmp_path / "results", QUIET)
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


@pytest.mark.slow
def test_throughput_counts_the_changes_that_waited(tmp_path: Path) -> None:
    bench = run(tmp_path, "W1", "W3", "minmax", "selection")
    ours = [row for row in bench.rows if "epochs" in row.details]
    by_name = {row.measure: row for row in ours}
    assert list(by_name) == ["W1", "W3", "minmax", "selection"]
    assert by_name["W1"].details["changes"] == 1_800
    assert by_name["W1"].details["log_rows"] > 1_800  # an update has two delta rows
    assert by_name["minmax"].details["changes"] == 500
    assert by_name["W3"].details["view_rows"] > 0
    assert all(row.executor == "local" and row.details["epochs"] == 1 and row.value > 0 for row in ours)
    # Where no peer runs the workload, recomputation stands beside the epoch, and how they compare.
    beside = [(row.measure, row.what.partition(" ")[0], row.unit) for row in bench.rows if row not in ours]
    assert beside == [
        (measure, who, unit)
        for measure in ("minmax", "selection")
        for who, unit in (("DuckDB", "ms"), ("DuckDB's", "×"))
    ]
    assert all(row.value > 0 for row in bench.rows)


@pytest.mark.slow
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
    assert [line["row"]["what"] for line in lines[1:]] == [row.what for row in bench.rows]


@pytest.mark.slow
def test_policies_are_measured_beside_each_other(tmp_path: Path) -> None:
    rows = {row.what: row for row in run(tmp_path, "policy").rows}
    assert len(rows) == 3 * (5 * 4 + 1)
    assert rows["join, 10% of 200 rows changed, FULL"].value > 0
    crossing = rows["join: recomputing is quicker from so much changed on"].value
    assert 1 <= crossing <= 400


def test_every_target_belongs_to_one_goal() -> None:
    named = [target for goal in GOALS for target in goal.targets]
    assert sorted(named) == sorted(TARGETS)
    assert all(goal.targets or goal.later for goal in GOALS)


def test_goals_stand_beside_what_was_measured(tmp_path: Path) -> None:
    bench = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET)
    bench.add(Row("get", "get by key", 4.0, "µs", "", "none", "get"))
    text = report.write(bench).read_text()
    assert "| get by key from a view | p50 ≤ 5 µs | get by key: 4 µs | none | met |" in text
    assert "| memory | peak RSS ≤ memory_bytes | not measured in this run | | |" in text
    assert "| ON COMMIT, one row, 5 views | | comes with REFRESH ON COMMIT | | |" in text


def peer(name: str, variant: str, workload: str = "W1", **figures: object) -> dict[str, object]:
    return {"peer": name, "variant": variant, "workload": workload, **figures}


def test_peers_stand_beside_ours(tmp_path: Path) -> None:
    bench = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET)
    for result in (
        peer("flink", "hashmap", result="not installed", needs="python -m bench.peers_setup .peers --only flink"),
        peer("x", "a", result="not installed", needs="installed later"),
        *(peer("x", "a", changes_per_s=rate, rss_mb=rate // 100, version="1.2") for rate in (900, 1_000, 1_200)),
        peer("viewkeeper", "local", changes_per_s=2_000, version="0.1"),
        peer("x", "a", "W4", p50_ms=4.0, p99_ms=9.0),
        peer("viewkeeper", "local", "W4", p50_ms=2.0, p99_ms=3.0),
        peer("x", "a", "W6", batch_ms={"10000": 5.0, "100000": 60.0}),
        peer("viewkeeper", "local", "W6", batch_ms={"10000": 5.0, "100000": 6.0}),
        peer("y", "", "W6", result="failed: a | b"),
    ):
        bench.add_peer(result)
    lines = report.write(bench).read_text().splitlines()
    assert "| flink hashmap |  | not installed: python -m bench.peers_setup .peers --only flink | 0 |  |  |" in lines
    assert "| x a | 1.2 | 1,000 (900 – 1,200) | 3 | 2 | 12 |" in lines
    assert "| viewkeeper local | 0.1 | 2,000 | 1 | 1 |  |" in lines
    assert lines.index("| viewkeeper local | 0.1 | 2,000 | 1 | 1 |  |") + 1 == lines.index(
        "| x a | 1.2 | 1,000 (900 – 1,200) | 3 | 2 | 12 |"
    )
    assert "| x a |  | p50: 4; p99: 9 | 1 | 2 |  |" in lines
    assert "| x a |  | 10,000: 5; 100,000: 60 | 1 | 1 / 10 |  |" in lines
    assert "| y |  | failed: a / b | 0 |  |  |" in lines
    made = plots.write(bench)
    assert {"peers_rates.png", "peers_times.png", "peers_batches.png"} <= set(made)


def test_absent_peers_say_what_they_need(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    options = Options(tmp_path / "nothing", frozenset({"pathway", "dbsp"}), is_quiet=True)
    bench = Bench(LOCAL, work, tmp_path / "results", options)
    NAMES["peers-W1"](bench)
    assert [(r["peer"], r["variant"], r["result"]) for r in bench.peers] == [
        ("dbsp", "zset", "not installed"),
        ("pathway", "upsert", "not installed"),
        ("pathway", "signed", "not installed"),
    ]
    assert bench.peers[0]["needs"] == f"python -m bench.peers_setup {tmp_path / 'nothing'} --only dbsp"


@pytest.mark.slow
def test_a_peer_is_run_and_its_result_checked(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    options = Options(tmp_path / "nothing", frozenset({"duckdb_full"}), is_quiet=True)
    bench = Bench(replace(LOCAL, peer_repeats=2), work, tmp_path / "results", options)
    bench.add_peer(peer("duckdb_full", "end", changes_per_s=1))
    NAMES["peers-W1"](bench)
    variants = [(r["variant"], r.get("ok")) for r in bench.peers]
    assert variants == [("end", None), ("each", True), ("each", True), ("end", True)]  # the run that was there counts
    assert all(r["version"] for r in bench.peers[1:])


def test_every_peer_has_its_script() -> None:
    scripts = {path.stem.removeprefix("peer_") for path in SCRIPTS.glob("peer_*.py")}
    assert scripts == {system.name for system in SYSTEMS}
    assert all(isinstance(system, System) and system.variants for system in SYSTEMS)


def test_a_run_in_slices_gives_one_table(tmp_path: Path) -> None:
    first = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET)
    for name in ("reads", "views"):
        first.journal.begin(name)
        first.add(Row(name, "the first slice", 1.0, "µs"))
    first.journal.done("reads", 3.0)
    second = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET, resumes=True)
    assert second.journal.seconds == {"reads": 3.0}
    second.journal.begin("views")
    second.add(Row("views", "the second slice", 2.0, "ms", details={"views": 1, "changes": 5}))
    third = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET, resumes=True)
    assert [(row.measure, row.what) for row in third.rows] == [
        ("reads", "the first slice"),
        ("views", "the second slice"),
    ]
    text = report.write(third).read_text()
    assert text.count("(load ") == 3
    assert "reads 3 s." in text


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    Bench(LOCAL, tmp_path, tmp_path / "results", QUIET)
    with pytest.raises(OtherRunError, match="repeats was 1, is 2"):
        Bench(replace(LOCAL, repeats=2), tmp_path, tmp_path / "results", QUIET, resumes=True)


def test_a_slice_of_peers_goes_with_any_code_of_ours(tmp_path: Path) -> None:
    ours, others = (parsed(["--only", "peers", "--systems", names]) for names in ("dbsp,viewkeeper", "dbsp"))
    assert (measures_ours(ours), measures_ours(others)) == (True, False)
    assert measures_ours(parsed(["--only", "W1", "--systems", "dbsp"]))
    assert Bench(LOCAL, tmp_path, tmp_path / "results", replace(QUIET, measures_ours=False)).about["source"] == ""
    mine = Bench(LOCAL, tmp_path, tmp_path / "results", QUIET, resumes=True)
    assert len(mine.about["source"]) == 16
    lines = (tmp_path / "results" / "results.jsonl").read_text().replace(mine.about["source"], "0" * 16)
    (tmp_path / "results" / "results.jsonl").write_text(lines)
    with pytest.raises(OtherRunError, match="source was 0000000000000000, is "):
        Bench(LOCAL, tmp_path, tmp_path / "results", QUIET, resumes=True)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scale_of(parsed([])) == FULL
    assert scale_of(parsed(["--quick"])) == QUICK
    assert scale_of(parsed(["--write-seconds", "60", "--repeats", "1"])) == replace(
        FULL, writes_a_phase_seconds=60.0, repeats=1
    )
    with pytest.raises(SystemExit):
        parsed(["--only", "W1,W9"])
    assert "there is no measurement W9" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parsed(["--systems", "oracle"])
    assert "there is no system oracle" in capsys.readouterr().err
    assert chosen("peers") == [name for name in NAMES if name.startswith("peers-")]
    assert chosen("reads,W1") == ["W1", "reads"]
    assert chosen("") == list(NAMES)


def test_what_is_done_is_not_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--smoke", "--results", str(tmp_path / "r"), "--work", str(tmp_path)]
    assert main([*places, "--only", "reads"]) == 0
    path = tmp_path / "r" / "results.jsonl"
    assert "get by key" in (tmp_path / "r" / "results.md").read_text()
    assert sum('"row"' in line for line in path.read_text().splitlines()) == 2
    assert main([*places, "--resume", "--minutes", "1e-9"]) == 0
    said = capsys.readouterr().out
    assert "--resume goes on with W1, W2" in said
    assert "reads" not in said.partition("--resume goes on with")[2].partition("\n")[0]
    assert main([*places, "--resume", "--only", "reads", "--repeats", "7"]) == 2
    assert "is of another run (repeats was 1, is 7)" in capsys.readouterr().err


def test_every_workload_says_what_it_measures() -> None:
    assert [name for name, measurement in NAMES.items() if not measurement.__doc__] == []
    assert set(COLUMNS) == {"events", "orders", "customers"}


@pytest.mark.slow
def test_tpch_measures_epochs_beside_recomputation(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    kept = Options(is_quiet=True, kept=tmp_path / "kept")
    bench = Bench(replace(LOCAL, scale_factor=0.002), tmp_path / "work", tmp_path / "results", kept)
    for name in ("tpch-q01", "tpch-q16", "tpch-summary"):
        NAMES[name](bench)
    with pytest.raises(RuntimeError, match="has been through its rounds"):
        NAMES["tpch-q01"](bench)
    (first, second) = compared(bench.rows, TPCH)
    assert (first.name, second.name) == ("q01", "q16")
    assert list(first.epochs) == [0.0001, 0.001, 0.01, 0.1]
    assert first.by_spark == {}
    assert set(first.recomputed) == {"duckdb"}
    assert 0 < first.state_ratio < 0.1 < second.state_ratio
    text = report.write(bench).read_text()
    assert "| geometric mean |" in text
    assert "duckdb's recomputation ÷ our epoch, 0.10% of the orders changed: geometric mean" in text


@pytest.mark.spark
@pytest.mark.slow
def test_nexmark_measures_epochs_beside_recomputation(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    kept = Options(is_quiet=True, kept=tmp_path / "kept")
    bench = Bench(replace(LOCAL, executors=("spark", "local")), tmp_path / "work", tmp_path / "results", kept)
    for name in ("nexmark-q18", "nexmark-q21", "nexmark-summary"):
        NAMES[name](bench)
    (last_bids, channels) = compared(bench.rows, NEXMARK)
    assert list(last_bids.epochs) == list(channels.epochs) == [0.001, 0.01]
    assert list(last_bids.by_spark) == [0.01]
    assert list(channels.by_spark) == [0.01]
    assert set(last_bids.recomputed) == {"spark", "duckdb"}
    assert "## Nexmark" in report.write(bench).read_text()
    assert "nexmark.png" in plots.write(bench)


def test_crossovers_are_interpolated() -> None:
    def query(*milliseconds: float) -> Compared:
        return Compared("q01", dict(zip((0.001, 0.01, 0.1), milliseconds, strict=True)), {}, {"spark": 20}, 1, 1)

    assert query(1, 2, 200).crossover("spark") == pytest.approx(0.01 * 10**0.5)
    assert query(1, 2, 3).crossover("spark") == float("inf")
    assert query(21, 22, 23).crossover("spark") == 0
    assert query(1, 2, 3).crossover("duckdb") is None
    assert query(1, 2, 3).ratio("spark", 0.01) == 10
    assert geometric_mean([1, 100]) == pytest.approx(10)


@pytest.mark.spark
@pytest.mark.slow
def test_epochs_by_spark(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(replace(LOCAL, executors=("spark",)), work, tmp_path / "results", QUIET)
    NAMES["W3"](bench)
    (row,) = bench.rows
    assert (row.executor, row.durability, row.target) == ("spark", "none", "W3")
    assert row.details["log_rows"] > row.details["changes"] > 0
