"""Every message of an error says what to do: behind a colon, in a sentence of its own, or by naming what may stand."""

from __future__ import annotations

import re

from tests.architecture.project import ROOT
from tools.docs_errors import entries_in

_REMEDY = re.compile(r"[:;] *\S|[.?!] +\S")
_NAMES_WHAT_MAY_STAND = re.compile(r"\b(takes?|must be|needs?|one of|both|can stand only|goes with|come as)\b|, not ")
# Messages that are put together elsewhere, by what says it.
_ELSEWHERE = re.compile(r"^\{[^}]*\}$|^$|\{hint\}|\{_TOO_MANY_ROWS\}")


def test_each_message_says_what_to_do() -> None:
    entries = entries_in(ROOT / "src" / "viewkeeper")
    assert len(entries) > 250
    without = sorted(
        f"{entry.module}: {entry.code}: {entry.message}"
        for entry in entries
        if not _ELSEWHERE.search(entry.message)
        and not _REMEDY.search(entry.message)
        and not _NAMES_WHAT_MAY_STAND.search(entry.message)
    )
    assert without == []
