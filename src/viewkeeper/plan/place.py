"""Where a piece of SQL stands in the text that the user wrote, so that errors can point at it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from viewkeeper.statements.lexer import tokenize

NEAR_LENGTH = 60
_LEADING = re.compile(r"(\b(EXISTS\s*\(\s*SELECT|NOT|DISTINCT|LATERAL\s+VIEW|WITH|RECURSIVE)\s+)+$", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    r"""A query inside the user's statement.

    Args:
        text: the user's whole statement.
        offset: where the query starts in ``text``.

    Example:
        >>> Place("CREATE MATERIALIZED VIEW v AS\nSELECT x", 30).details(7, 8)
        {'line': 2, 'column': 8, 'near': 'x'}
    """

    text: str
    offset: int = 0

    def details(self, start: int, end: int) -> dict[str, object]:
        """Return line and column (from 1) and the SQL at [``start``, ``end``) of the query."""
        start, end = start + self.offset, end + self.offset
        line_start = self.text.rfind("\n", 0, start) + 1
        near = " ".join(self.text[start:end].split())
        if len(near) > NEAR_LENGTH:
            near = near[: NEAR_LENGTH - 1] + "…"
        return {"line": self.text.count("\n", 0, start) + 1, "column": start - line_start + 1, "near": near}

    def of_parameter(self, name: str) -> dict[str, object]:
        """Return the details of the first ``:name`` in the query, of the first ``?`` where ``name`` is empty."""
        for left, right in pairwise([*tokenize(self.text[self.offset :]), None]):
            if left is None or left.kind != "symbol":
                continue
            if not name and left.text == "?":
                return self.details(left.start, left.stop)
            if name and left.text == ":" and right is not None and right.text == name:
                return self.details(left.start, right.stop)
        return {}

    def is_string(self, node: exp.Expr) -> bool:
        """Return whether ``node`` is written in quotes of texts; sqlglot takes such texts for names."""
        start = node.meta.get("start")
        return isinstance(start, int) and self.text[start + self.offset : start + self.offset + 1] in ("'", '"')

    def of(self, node: exp.Expr) -> dict[str, object]:
        """Return the details of ``node``; empty where neither it nor a node around it has a place."""
        current: exp.Expr | None = node
        while current is not None:
            found = span(current)
            if found is not None:
                return self.details(*self._completed(*found))
            current = current.parent
        return {}

    def _completed(self, start: int, end: int) -> tuple[int, int]:
        """Return the span with the keywords in front and the parentheses behind, which sqlglot keeps no place of."""
        text = self.text[self.offset :]
        leading = _LEADING.search(text[:start])
        start = leading.start() if leading is not None else start
        depth = text[start:end].count("(") - text[start:end].count(")")
        while depth > 0 and ")" in text[end:]:
            end = text.index(")", end) + 1
            depth -= 1
        return start, end


def span(node: exp.Expr) -> tuple[int, int] | None:
    """Return the start and the end of the words below ``node`` in its query, None where sqlglot kept no place."""
    places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    if not places:
        return None
    return min(start for start, _ in places), max(end for _, end in places)


def located(message: str, details: dict[str, object]) -> str:
    """Return ``message`` with its place in front, where there is one.

    Example:
        >>> located("There is no column 'x'.", {"line": 2, "column": 8, "near": "x"})
        "line 2, column 8, near 'x': There is no column 'x'."
    """
    if "line" not in details:
        return message
    return f"line {details['line']}, column {details['column']}, near '{details['near']}': {message}"
