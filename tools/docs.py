"""Write the pages that the code knows best: ``python -m tools.docs``; with ``--check``, say which ones are out of date.

``docs/cli.md`` comes from the command line's own declarations, ``docs/settings.md`` from the table of settings,
``docs/limitations.md`` from the table of refusals, ``docs/spark_functions.md`` from the catalogue of functions,
``docs/errors.md`` from the places where errors are made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.docs_cli import command_page
from tools.docs_errors import error_page

ROOT = Path(__file__).resolve().parent.parent


def settings_page() -> str:
    """Return ``docs/settings.md``."""
    from viewkeeper.settings import SETTINGS

    table: Iterable[object] = SETTINGS.values()
    lines = [
        "# Settings",
        "",
        "Written from `src/viewkeeper/settings.py` by `make docs`.",
        "",
        "| setting | default | unit | what it does |",
        "| --- | --- | --- | --- |",
    ]
    for setting in table:
        name, default, unit, meaning = (getattr(setting, part) for part in ("name", "default", "unit", "help"))
        meaning = str(meaning).replace("|", "\\|")
        lines.append(f"| `{name}` | `{default}` | {unit or ''} | {meaning} |")
    return "\n".join(lines) + "\n"


def limitations_page() -> str:
    """Return ``docs/limitations.md``."""
    from viewkeeper.plan.refusals import limitations_page as page

    return page()


def functions_page() -> str:
    """Return ``docs/spark_functions.md``."""
    from viewkeeper.plan.function_catalog import functions_page as page

    return page()


def errors_page() -> str:
    """Return ``docs/errors.md``."""
    return error_page(ROOT / "src" / "viewkeeper")


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": command_page,
    "errors.md": errors_page,
    "spark_functions.md": functions_page,
    "limitations.md": limitations_page,
    "settings.md": settings_page,
}


def outdated(folder: Path) -> dict[Path, str]:
    """Return the pages in ``folder`` that differ from what the code says, each with what it should hold."""
    pages = {folder / name: page() for name, page in PAGES.items()}
    return {path: text for path, text in pages.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    check: bool = parser.parse_args().check
    changed = outdated(ROOT / "docs")
    for path, text in changed.items():
        print(f"{path.relative_to(ROOT)} {'is out of date: run make docs' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
