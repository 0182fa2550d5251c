"""What the documents hold: fenced blocks, links, and names in code marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.project import ROOT

_FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_MARK = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        page: the document, relative to the project.
        line: where its fence opens.
        language: the first word behind the fence.
        words: the other words there.
        text: what stands inside.
    """

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return the documents that users and developers read."""
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document, in order."""
    text = path.read_text()
    name = path.relative_to(ROOT).as_posix()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(name, line, match[1], tuple(match[2].split()), match[3])


def prose_of(path: Path) -> str:
    """Return a document without its fenced blocks."""
    return _FENCE.sub("", path.read_text())


def links_of(path: Path) -> Iterator[str]:
    """Yield where the links of a document point to."""
    yield from _LINK.findall(prose_of(path))


def marked_in(path: Path) -> Iterator[str]:
    """Yield what stands in code marks outside of fenced blocks."""
    yield from _MARK.findall(prose_of(path))


def anchor_of(heading: str) -> str:
    """Return the fragment by which a heading is linked."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
