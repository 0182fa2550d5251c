"""The files of the project, as the architecture tests see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "viewkeeper"

# Written by runs, not by people.
GENERATED = {"__pycache__", "results"}


def python_files(*folders: str) -> Iterator[Path]:
    """Yield the Python files below these folders of the project."""
    for folder in folders:
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if not GENERATED & set(path.parts))


def text_files() -> Iterator[Path]:
    """Yield every text file that belongs to the project; no git is asked, since a plain copy must pass too."""
    folders = ("src", "tests", "bench", "tools", "docs", ".ci")
    nested = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    for path in sorted([*ROOT.iterdir(), *nested]):
        if path.is_file() and not {"__pycache__", ".git"} & set(path.parts) and b"\0" not in path.read_bytes()[:4096]:
            yield path


def name_of(path: Path) -> str:
    """Return the path as it is written in the project."""
    return path.relative_to(ROOT).as_posix()
