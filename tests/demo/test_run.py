"""The demo as a whole: started afresh, stopped by Ctrl-C, killed, finished, repeated; and when a view is wrong."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from viewkeeper.demo.data import load
from viewkeeper.demo.events import FlightEvents, final_flights
from viewkeeper.demo.run import EXIT_DIFFERENT, EXIT_EQUAL, EXIT_INTERRUPTED, run_demo
from viewkeeper.demo.store import begin, open_demo, prepare, stage_of
from viewkeeper.demo.threads import SparkStart
from viewkeeper.demo.views import VIEWS
from viewkeeper.pipeline.records import read_view

DAYS = 2
SOURCE = Path(__file__).resolve().parents[2] / "src"
RUN = (
    "import sys; from pathlib import Path; from rich.console import Console; from viewkeeper.demo.run import run_demo; "
    f"sys.exit(run_demo(Path(sys.argv[1]), {DAYS}, Console(width=200), fresh='fresh' in sys.argv))"
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with SparkStart() as starting:
        yield starting.session()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "flights.vk"


def stopped(path: Path, number: int, seen: str, *arguments: str) -> tuple[int, str]:
    """Run the demo in a process of its own, send a signal when its output shows ``seen``; return status and output."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if seen in line:
            process.send_signal(number)
            break
    lines += process.stdout
    process.stdout.close()
    return process.wait(), "".join(lines)


def run(path: Path, spark: Any, **options: Any) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=200)
    status = run_demo(path, DAYS, console, plain=True, spark=spark, **options)
    return status, console.file.getvalue()  # type: ignore[attr-defined]


def next_transaction(path: Path) -> int:
    with open_demo(path) as db:
        stage = stage_of(db)
    assert stage is not None
    return stage.next_transaction


def test_stopped_and_killed_it_goes_on_and_every_view_is_right(path: Path, spark: Any) -> None:
    data = load()
    with open_demo(path) as db:  # an earlier demo, of more days
        prepare(db, data)
        begin(db, FlightEvents(data, DAYS + 1), DAYS + 1)
    status, said = stopped(path, signal.SIGINT, "First live rows", "fresh")
    assert status == EXIT_INTERRUPTED, said
    assert "Run the same command again" in said
    assert "Traceback" not in said
    first = next_transaction(path)
    assert first > 0

    status, said = stopped(path, signal.SIGKILL, "Going on at")
    assert status == -signal.SIGKILL, said
    assert f"transaction {first:,}." in said
    second = next_transaction(path)
    assert second >= first

    status, said = run(path, spark)
    assert status == EXIT_EQUAL, said
    assert f"transaction {second:,}." in said
    assert "Every view equals its query." in said
    assert "spark" in said.split("Played in")[1].splitlines()[0]
    assert "viewkeeper sql" in said
    assert all(view.name in said for view in VIEWS)
    flights, known = final_flights(data, DAYS), set(data.planes["tailnum"].to_pylist())
    counted = sum(number in known for number in flights["tailnum"].to_pylist())
    assert counted < flights.num_rows
    assert "delay_by_plane is an inner join, so it leaves out flights for which table planes" in said
    assert f"delay_by_plane counts {counted:,} of {flights.num_rows:,} flights: its inner join has no" in said
    assert next_transaction(path) == FlightEvents(data, DAYS).transaction_count
    with open_demo(path) as db:
        assert db.table("flights").to_arrow().equals(final_flights(data, DAYS))
        assert [view["behind"] for view in db.status()["views"]] == [0] * len(VIEWS)


def test_a_finished_store_is_only_verified_and_a_wrong_view_is_named(path: Path, spark: Any) -> None:
    before = next_transaction(path)
    with open_demo(path) as db:
        engine = db._engine
        view = engine.coordinator.catalog().view("delay_by_route")
        with engine.store.views.write() as txn:
            record = read_view(txn, view.id)
            assert record is not None
            txn.delete(record.state, next(iter(txn.scan(record.state)))[0])
    status, said = run(path, spark)
    assert status == EXIT_DIFFERENT
    assert f"All {DAYS} days are in" in said
    assert "--fresh" in said
    assert "The last day's refresh" in said
    assert "1 missing" in said
    assert "These views differ from their queries, which is a bug: delay_by_route." in said
    assert next_transaction(path) == before
