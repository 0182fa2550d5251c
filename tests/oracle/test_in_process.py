"""1,000 scripts in process on the memory store: after each refresh each view is what its query gives.

The first 100 belong to `make check`; `make sim` goes on with fresh seeds.
"""

from pathlib import Path

import pytest

from tests.oracle.seeds import run
from viewkeeper.testing.duck import DuckDb
from viewkeeper.testing.oracle import Run, in_memory
from viewkeeper.testing.scripts import Script

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=[path.stem for path in REGRESSIONS])
def test_regression(path):
    script = Script.from_json(path.read_text(encoding="utf-8"))
    with in_memory() as database:
        Run(script, database, DuckDb()).all_steps()


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_the_first_hundred(first):
    run(first, 10)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1000, 30))
def test_the_others(first):
    run(first, 30)
