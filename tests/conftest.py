"""What holds for all tests: those that need Spark run in one worker, since two sessions would fight for two cores."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests marked ``spark`` into one group (pytest-xdist, ``--dist loadgroup``)."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often which process was killed, and where (the property ``kills`` of a test: name and count)."""
    kills: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", ()):
            if name == "kills" and report.when == "call":
                kills[str(value[0])] += int(value[1])
    if kills:
        terminalreporter.section(f"{kills.total()} processes killed by SIGKILL, all stores right afterwards")
        for name, count in sorted(kills.items()):
            terminalreporter.write_line(f"{count:5}  {name}")
