"""What holds for all tests: Spark's run in one worker, and `make check` stays quick.

Two sessions would fight for two cores. A test that starts Python, half a second each time, is marked ``slow`` or
``spark``, or it fails. The others that take long are named in the summary: how long is nothing that a test may fail by.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator

import pytest

QUICK_SECONDS = 2.0
# Javas of tests live for a minute and share two cores with their tests: what the second compiler and G1's threads would
# win later they take now, a third of the processor time of Spark's tests. Answers do not depend on it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
_started: list[str] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.forkpty" or (event == "subprocess.Popen" and sys.executable in map(str, arguments[:1])):
        _started.append(event)


sys.addaudithook(_note)


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is None and item.get_closest_marker("slow") is None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests marked ``spark`` into one group (pytest-xdist, ``--dist loadgroup``)."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a quick test say so in its report, and note from now on what it starts."""
    _started.clear()
    if _is_quick(item):
        item.user_properties.append(("quick", True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that starts Python and does not say so."""
    yield
    if _started and _is_quick(item):
        pytest.fail(f"It starts Python ({_started[0]}): mark it slow, so that make check stays quick.", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the run tells beside its outcome."""
    _print_kills(terminalreporter)
    _print_long_ones(terminalreporter)


def _print_long_ones(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests that should be quick and take long."""
    seconds: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport) and ("quick", True) in report.user_properties:
            seconds[report.nodeid] += report.duration
    long = [(name, taken) for name, taken in seconds.most_common() if taken > QUICK_SECONDS]
    if long:
        terminalreporter.section(f"more than {QUICK_SECONDS:g} s and not marked slow")
        for name, taken in long:
            terminalreporter.write_line(f"{taken:5.1f} s  {name}")


def _print_kills(terminalreporter: pytest.TerminalReporter) -> None:
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
