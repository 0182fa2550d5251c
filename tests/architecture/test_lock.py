"""The lock file is complete, exact and free of addresses."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.architecture.project import ROOT
from tools.environment import BUILD_TOOLS, requirements

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def normal(name: str) -> str:
    """Return a package's name as lock files write it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()  # type: ignore[index]


def test_each_entry_has_a_version_and_hashes() -> None:
    entries = dict(requirements(LOCK))
    assert len(entries) > 40
    for name, entry in entries.items():
        assert re.match(rf"{re.escape(name)}==[\w.]+ ", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_it_says_nothing_of_where_packages_come_from() -> None:
    assert re.findall(r"://|--index|--extra-index|--find-links", LOCK) == []


@pytest.mark.parametrize("group", ["dependencies", *PROJECT["optional-dependencies"]])
def test_it_has_all_that_the_project_names(group: str) -> None:
    wanted = PROJECT["dependencies"] if group == "dependencies" else PROJECT["optional-dependencies"][group]
    locked = {name for name, _ in requirements(LOCK)}
    assert {normal(requirement) for requirement in wanted} - locked == set()


def test_it_has_the_tools_that_build_the_rest() -> None:
    assert {name for name, _ in requirements(LOCK)} >= BUILD_TOOLS
