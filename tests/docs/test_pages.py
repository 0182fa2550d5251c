"""The documents name what is there: links, files, error codes, and the parts of each decision."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.project import ROOT, SOURCE, python_files
from tests.docs.markdown import anchor_of, links_of, marked_in, pages
from tools.docs import PAGES as GENERATED
from tools.docs import outdated

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
DECISION_PARTS = ("## Problem", "## Choice", "## Refused", "## How tested")

_FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]+\.\w+|[a-z_]+\.py")
_CODE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# A file that a reader is told to make; a code that is put together of two parts.
NOT_YET = {"operators/asof_join.py"}
COMPOSED = {"BINARY_ARITHMETIC_OVERFLOW"}


@cache
def file_names() -> set[str]:
    """Return the names of the Python files of the project."""
    return {path.name for path in python_files("src", "tests", "tools", "bench")}


@cache
def words_of_the_source() -> set[str]:
    """Return every word of the code; the benchmarks' variables, which tell where other systems are, among them."""
    return {word for path in python_files("src", "bench") for word in re.findall(r"\w+", path.read_text())}


@cache
def out_of_date() -> set[Path]:
    return set(outdated(ROOT / "docs"))


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        place, _, fragment = link.partition("#")
        if "://" in place:
            continue
        target = (page.parent / place).resolve() if place else page
        text = target.read_text() if fragment and target.is_file() else ""
        headings = {anchor_of(heading) for heading in _HEADING.findall(text)}
        if not target.exists() or (fragment and fragment not in headings):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_files_that_are_named_exist(page: Path) -> None:
    names = {text.strip() for text in marked_in(page) if _FILE.fullmatch(text.strip()) and "NAME" not in text} - NOT_YET
    places = (ROOT, SOURCE, page.parent)
    assert {n for n in names if not any((place / n).exists() for place in places)} - file_names() == set()


@pytest.mark.parametrize("page", pages(), ids=named)
def test_codes_that_are_named_exist(page: Path) -> None:
    words = {word for text in marked_in(page) for word in _CODE.findall(text)}
    assert words - COMPOSED - words_of_the_source() == set()


@pytest.mark.parametrize("page", DECISIONS, ids=named)
def test_decisions_have_their_four_parts(page: Path) -> None:
    text = page.read_text()
    assert [part for part in DECISION_PARTS if part not in text] == []
    assert text.startswith(f"# {page.name[:4]}")


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_decisions_that_the_code_refers_to_exist() -> None:
    told = {n for path in python_files("src") for n in re.findall(r"docs/decisions/(\d{4})", path.read_text())}
    assert told <= {page.name[:4] for page in DECISIONS}


def test_every_package_has_its_row_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name for name in packages if f"| `{name}` |" not in text} == set()


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_are_as_the_code_says(name: str) -> None:
    assert ROOT / "docs" / name not in out_of_date()
