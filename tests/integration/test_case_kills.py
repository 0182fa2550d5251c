"""The cases of tests/cases, way 3 with real processes: killed between steps, or within one, and started anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.integration.killing import KILLED, Report, ended
from tests.integration.nursery import Nursery, nursery
from tests.test_cases import FOLDER
from viewkeeper.testing.cases import check_step, create_tables, create_view, load_case

pytestmark = pytest.mark.slow

# The ways of tests/test_cases take all of them.
SAMPLE = sorted(FOLDER.glob("*.json"))[::4]
# Where each step's process dies, in turn; the first ones at its end.
POINTS = ("", "", "commit:after", "publish:before-commit", "publish:after")


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.stem)
def test_each_step_in_a_process_that_is_killed(children: Nursery, tmp_path: Path, kills: Report, path: Path) -> None:
    case, store = load_case(path), tmp_path / "case.vk"
    with vk.connect(store, executor="local", durability="none") as database:
        create_tables(database, case)
        for name, sql, _ in case.views:
            create_view(database, name, sql)
    for number in range(len(case.steps)):
        child = children.start("step", POINTS[number % len(POINTS)], path=str(store), case=str(path), number=number)
        said = [child.hear(), child.hear()]
        if said[-1] == "fresh":
            child.kill()
        assert ended(child)[0] == KILLED, said
        with vk.connect(store, executor="local", durability="none") as database:
            if said[-1] != "fresh":
                database.refresh()
            check_step(database, case, number, [name for name, _, _ in case.views])
    kills("the process of a case's step", len(case.steps))
