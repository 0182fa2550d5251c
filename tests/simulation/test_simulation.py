"""The simulation: scripts that once failed, then new ones by seed; and that the auditor does see what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from viewkeeper.pipeline.failpoints import NAMES
from viewkeeper.pipeline.records import read_cadences, read_views, write_view
from viewkeeper.testing.actions import QUERIES, generate
from viewkeeper.testing.simulation import Simulation, SimulationFailed, shortest, simulate

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))
SEEDS, PART, ACTIONS = 240, 20, 22


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_a_script_that_once_failed(path: Path) -> None:
    Simulation(json.loads(path.read_text(encoding="utf-8"))).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_seeds(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + PART):
        counts += simulate(seed, ACTIONS)
    # Something has happened: this is a test, not a stroll.
    assert counts["crashes"] > 5
    assert counts["interferences"] > 2
    assert counts["comparisons"] > 50


def test_a_script_runs_the_same_way_twice() -> None:
    def state(seed: int) -> list[object]:
        simulation = Simulation(generate(seed, ACTIONS), seed)
        simulation.run()
        with simulation.views.read() as txn:
            return [(name, list(txn.scan(name))) for name in txn.databases()]

    assert generate(7) == generate(7)
    assert state(7) == state(7)


WRITES = {"do": "write", "operations": [["put", "orders", {"id": 1, "customer": 2, "amount": 5, "x": 1}]]}
CREATE = {"do": "sql", "text": f"CREATE MATERIALIZED VIEW grouped AS {QUERIES['grouped'][0]}"}


def test_a_wrong_row_is_seen() -> None:
    simulation = Simulation([WRITES, CREATE])
    simulation.run()
    with simulation.views.write() as txn:
        (record,) = read_views(txn)
        key, _ = next(iter(txn.scan(record.state)))
        txn.delete(record.state, key)
    with pytest.raises(AssertionError, match=r"view grouped .* unexpected \[\], missing \['\(2, 1, 5\)'\]"):
        simulation.auditor.check()


def test_a_position_that_goes_back_is_seen() -> None:
    simulation = Simulation([CREATE, WRITES, {"do": "refresh", "views": []}])
    simulation.run()
    with simulation.views.write() as txn:
        (record,) = read_views(txn)
        write_view(txn, type(record)(**{**vars(record), "position": record.position - 1}))
    with pytest.raises(AssertionError, match="went back"):
        simulation.auditor.check()


def test_a_lost_write_is_seen() -> None:
    simulation = Simulation([WRITES])
    simulation.run()
    simulation.auditor.committed(99, lambda tables: tables["orders"].update({7: {"id": 7}}))
    with pytest.raises(AssertionError, match=r"table orders: unexpected \[\], missing \['\(7, None, None, None\)'\]"):
        simulation.auditor.check()


def test_a_failing_script_is_shortened() -> None:
    script = [*generate(3, 8), {"do": "sql", "text": "SELECT nonsense FROM orders"}, *generate(4, 4)]
    with pytest.raises(SimulationFailed, match="after 9 actions"):
        Simulation(script).run()
    assert shortest(script) == [{"do": "sql", "text": "SELECT nonsense FROM orders"}]


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("stage")])
def test_a_crash_at_each_failpoint_leaves_a_right_store(name: str) -> None:
    crash = {"name": name, "arrival": 1, "then": "crash"}
    script = [
        WRITES,
        {**CREATE, "at": crash},
        {**CREATE},
        {**WRITES, "at": crash},
        {"do": "refresh", "views": [], "at": crash},
        {"do": "sql", "text": "ALTER MATERIALIZED VIEW grouped SUSPEND", "at": crash},
        {"do": "sql", "text": "ALTER MATERIALIZED VIEW grouped RESUME"},
        {"do": "refresh", "views": []},
    ]
    simulation = Simulation(script)
    assert simulation.run()["crashes"] >= 1
    assert len(simulation.auditor.at(10**6)["orders"]) == 1
    with simulation.views.read() as txn:
        assert [record.build for record in read_cadences(txn)] == [None]
