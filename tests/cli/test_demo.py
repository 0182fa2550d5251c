from __future__ import annotations

from pathlib import Path

from tests.cli.command import run


def test_the_days_are_those_of_a_year() -> None:
    assert run("demo", "--days", "0").exit_code == 2
    assert run("demo", "--days", "366").exit_code == 2


def test_a_store_of_somebody_elses_is_left_alone(store: Path) -> None:
    result = run("demo", store, "--days", "1", "--fresh")
    assert result.exit_code == 1
    assert result.stderr.startswith("[DEMO_STORE_FOREIGN] ")
    assert (store / "viewkeeper.json").exists()
