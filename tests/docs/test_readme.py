"""README is true: its Python prints what its comments say, its commands run, its first session needs no Java."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.project import ROOT
from tests.cli.command import COMMAND, environment, run
from tests.docs.markdown import Block, blocks_of, pages

README = ROOT / "README.md"
WAIT_SECONDS = 240
SESSION_LINES = 10

_COMMENTED = re.compile(r"^\s*print\(.*\)  # (.*)$")
_REPORT_MODULES = """
import sys
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j"}))
"""


def snippets(path: Path, needs_spark: bool) -> list[Block]:
    """Return the Python blocks of a document."""
    return [b for b in blocks_of(path) if b.language == "python" and ("spark" in b.words) is needs_spark]


def promised(text: str) -> list[str]:
    """Return what the comments behind ``print`` say."""
    return [match[1] for line in text.splitlines() if (match := _COMMENTED.match(line))]


def printed(text: str, folder: Path, variables: dict[str, str] | None = None) -> list[str]:
    """Run a script in a process of its own and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        cwd=folder, env=environment() | (variables or {}), capture_output=True, text=True, timeout=WAIT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def script(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks)


def commands(needs_spark: bool) -> list[list[str]]:
    """Return the commands of README, split into words."""
    blocks = [b for b in blocks_of(README) if b.language == "sh" and ("spark" in b.words) is needs_spark]
    return [shlex.split(line) for block in blocks for line in block.text.splitlines()]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a folder with the store that README's sessions make."""
    printed(script(snippets(README, needs_spark=False)), tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_first_session_is_short_and_starts_no_java(tmp_path: Path) -> None:
    session = snippets(README, needs_spark=False)[0].text
    assert len(session.strip().splitlines()) == SESSION_LINES
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/java-was-started\n")
    java.chmod(0o755)
    variables = {"JAVA_HOME": str(java.parent.parent), "PATH": f"{java.parent}{os.pathsep}{os.environ['PATH']}"}
    lines = printed(session + _REPORT_MODULES, tmp_path, variables)
    assert lines == [*promised(session), "[]"]
    assert not (tmp_path / "java-was-started").exists()


@pytest.mark.slow
def test_the_package_alone_loads_neither_spark_nor_pandas(tmp_path: Path) -> None:
    text = "import sys, viewkeeper\nprint(sorted({'pyspark', 'pandas', 'pyarrow', 'lmdb'} & set(sys.modules)))"
    assert printed(text, tmp_path) == ["[]"]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_snippets_print_what_their_comments_say(page: Path, tmp_path: Path) -> None:
    blocks = snippets(page, needs_spark=False)
    if blocks:
        text = script(blocks)
        assert printed(text, tmp_path) == promised(text)


@pytest.mark.spark
@pytest.mark.xdist_group("own-spark")
@pytest.mark.slow
def test_snippets_that_need_spark_print_what_their_comments_say(shop: Path) -> None:
    text = "import viewkeeper as vk\n" + script(snippets(README, needs_spark=True))
    # As in an environment that was activated: the workers of a plain session run the python3 of PATH.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert promised(text)
    assert printed(text, shop, {"PATH": path}) == promised(text)


@pytest.mark.slow
def test_commands_run(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop)
    mine = [words for words in commands(needs_spark=False) if words[0] == "viewkeeper"]
    assert len(mine) > 3
    for words in mine:
        result = run(*words[1:])
        # The machine may lack an extra or room on its disk; then doctor says so, and that is its work.
        assert result.exit_code == 0 or words[1] == "doctor", (words, result.output)
    assert (shop / "by_city.csv").read_text().splitlines()[0].replace('"', "") == "city,n,total"


@pytest.mark.slow
def test_the_maintainer_runs_until_it_is_told_to_end(shop: Path) -> None:
    assert "`viewkeeper maintain`" in README.read_text()
    process = subprocess.Popen([*COMMAND, "maintain", "shop.vk"], cwd=shop, env=environment(), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stderr is not None
    assert "Maintaining" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert "Ended after" in process.communicate(timeout=WAIT_SECONDS)[1]
    assert process.returncode == 0


@pytest.mark.spark
@pytest.mark.xdist_group("own-spark")
@pytest.mark.slow
def test_commands_that_need_spark_run(shop: Path) -> None:
    mine = commands(needs_spark=True)
    assert mine
    for words in mine:
        done = subprocess.run([*COMMAND, *words[1:]], cwd=shop, env=environment(), capture_output=True, text=True,
                              timeout=WAIT_SECONDS)  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.spark
@pytest.mark.xdist_group("own-spark")
@pytest.mark.slow
def test_the_demo_plays_three_days(tmp_path: Path) -> None:
    assert ["make", "demo"] in commands(needs_spark=False)
    assert "viewkeeper demo $(if $(DAYS),--days $(DAYS))" in (ROOT / "Makefile").read_text()
    done = subprocess.run([*COMMAND, "demo", "--days", "3", "--plain"], cwd=tmp_path, env=environment(),
                          capture_output=True, text=True, timeout=2 * WAIT_SECONDS)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every view equals its query." in done.stdout


def test_what_make_is_asked_for_can_be_made() -> None:
    goals = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {words[1] for words in commands(needs_spark=False) if words[0] == "make"}
    told = {goal for page in pages() for goal in re.findall(r"`make ([a-z]+)", page.read_text())}
    assert asked == {"demo", "test"}
    assert told - goals == set()
