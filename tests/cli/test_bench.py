"""``viewkeeper bench`` measures what it says; no time is judged."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.command import run
from viewkeeper.cli import bench, benchmark
from viewkeeper.cli.benchmark import check_equal
from viewkeeper.errors import ViewFailed

FIGURES = [
    *(f"{view}_{name}" for view in ("sums", "joined") for name in ("changes", "refresh", "recompute", "ratio")),
    "fresh_p50", "fresh_p99", "get_p50", "get_p99",
]  # fmt: skip


@pytest.mark.slow
def test_all_is_measured_and_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compared: list[str] = []

    def also_count(view: str, shown: pa.Table, expected: pa.Table) -> None:
        compared.append(view)
        assert len(expected) > 0
        check_equal(view, shown, expected)

    monkeypatch.setattr(benchmark, "check_equal", also_count)
    result = run("bench", "--rows", 2_000, "--seconds", 0, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [figure["name"] for figure in found["figures"]] == FIGURES
    assert all(figure["value"] > 0 and figure["executor"] == "local" for figure in found["figures"])
    assert found["orders"] == 2_000
    assert {"cpu", "cores", "memory_gib", "viewkeeper", "python"} <= found["machine"].keys()
    assert compared == ["sums", "joined"]
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_a_line_a_figure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    figures = [
        benchmark.Figure("sums_changes", "sums by customer: changes maintained", "local", 123_456.7, "changes/s"),
        benchmark.Figure("get_p50", "get by key, p50", "spark", 3.456, "µs"),
    ]
    monkeypatch.setattr(benchmark, "measured", lambda folder, executor, *rest: figures[executor == "spark" :][:1])
    bench.bench(executor="both")
    printed = capsys.readouterr()
    first, second = printed.out.splitlines()[-2:]
    assert first.split()[-3:] == ["local", "123,457", "changes/s"]
    assert second.split()[-3:] == ["spark", "3.46", "µs"]
    assert "default settings; 200,000 orders" in printed.out
    assert "equal" in printed.err


def test_a_view_that_differs_ends_it() -> None:
    right = pa.table({"customer": [2, 1], "total": [7, 5]})
    check_equal("sums", right, pa.table({"customer": [1, 2], "total": [5, 7]}))
    with pytest.raises(ViewFailed) as raised:
        check_equal("sums", right, pa.table({"customer": [1, 2], "total": [5, 8]}))
    assert raised.value.code == "VIEW_WRONG"


def test_what_is_not_understood_is_refused() -> None:
    assert run("bench", "--rows", 10).exit_code == 2
    result = run("bench", "--executor", "flink")
    assert result.exit_code == 2
    assert "--executor is one of local, spark, both, not 'flink'." in result.stderr
