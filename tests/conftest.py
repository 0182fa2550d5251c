"""What holds for all tests: those that need Spark run in one worker, since two sessions would fight for two cores."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests marked ``spark`` into one group (pytest-xdist, ``--dist loadgroup``)."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))
