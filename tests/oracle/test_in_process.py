"""Scripts in process on the memory store: what once failed, and four hundred drawn from the whole grammar.

A thousand of its core run in ``test_thousand``. The first hundred of these belong to `make check`; `make sim` goes on
with fresh seeds.
"""

from pathlib import Path

import pytest

from viewkeeper.testing.draws import run_oracle
from viewkeeper.testing.duck import DuckDb
from viewkeeper.testing.oracle import Run, in_memory
from viewkeeper.testing.scripts import Script

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))
SEEDS, PART, QUICK_SEEDS = 16, 25, 4


@pytest.mark.parametrize("path", REGRESSIONS, ids=[path.stem for path in REGRESSIONS])
def test_regression(path):
    script = Script.from_json(path.read_text(encoding="utf-8"))
    with in_memory(script.time_zone) as database:
        Run(script, database, DuckDb()).all_steps()


def check_drawn(seed):
    assert run_oracle(seed, PART, DuckDb())["oracle views after epochs"] > 50


@pytest.mark.parametrize("seed", range(QUICK_SEEDS))
def test_drawn_from_the_whole_grammar(seed):
    check_drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(QUICK_SEEDS, SEEDS))
def test_more_drawn_from_the_whole_grammar(seed):
    check_drawn(seed)
