r"""Regular expressions of Java that mean the same to Python, and how to write them for it.

Both engines try the same alternatives in the same order. What they read differently is written out here: ``.`` and
``$`` know Java's line ends, ``\d``, ``\w`` and ``\s`` are ASCII's. What depends on Java's version, or what one of them
lacks, is left to Java: ``\b``, properties, look-around, backreferences, possessive quantifiers, classes in classes,
groups that are repeated though they may match nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from viewkeeper.expressions.errors import NotPortable

_LINE_ENDS = "\\n\\r\x85\u2028\u2029"
_NO_LINE_END = f"[^{_LINE_ENDS}]"
# Before the line end that ends the text, if there is one, and not between the two characters of one.
_END = "(?:\\Z|(?=\\r\\n\\Z)|(?=(?<!\\r)\\n\\Z)|(?=[\\r\x85\u2028\u2029]\\Z))"
_CLASSES = frozenset("dDwWsS")
_CONTROLS = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f"}
_CODES = {"\\t": 9, "\\n": 10, "\\r": 13, "\\f": 12}
_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(,(\d*))?\}")
_REPEATS_MAX = 1000
_IGNORE_CASE = "(?i)"


@dataclass(frozen=True)
class Pattern:
    """A pattern of Java's as Python has it.

    Args:
        compiled: the pattern.
        may_be_empty: whether it can match no characters.
        repeats_groups: whether a group that captures is repeated: which of its matches counts is Java's to say.
    """

    compiled: re.Pattern[str]
    may_be_empty: bool
    repeats_groups: bool


@dataclass(frozen=True)
class _Part:
    text: str
    may_be_empty: bool
    captures: bool = False
    repeatable: bool = True


@lru_cache(maxsize=512)
def translate(pattern: str, function: str) -> Pattern:
    r"""Return ``pattern`` as Python has it.

    Args:
        pattern: a regular expression as Spark hands it to Java.
        function: whose pattern it is, for the error.

    Raises:
        NotPortable: where it is malformed, or may mean something else to Java.

    Example:
        >>> translate("([a-z]+)-(\\d+)", "rlike").compiled.search("x ab-12").groups()
        ('ab', '12')
    """
    ignores_case = pattern.startswith(_IGNORE_CASE)
    reader = _Reader(pattern.removeprefix(_IGNORE_CASE), function)
    whole = reader.alternatives()
    reader.expect_end()
    flags = re.ASCII | re.IGNORECASE if ignores_case else re.ASCII
    return Pattern(re.compile(whole.text, flags), whole.may_be_empty, reader.repeats_groups)


class _Reader:
    """Reads a pattern from left to right, one method a rule of its grammar."""

    def __init__(self, text: str, function: str) -> None:
        self._text = text
        self._place = 0
        self._function = function
        self.repeats_groups = False

    def alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        text = "|".join(part.text for part in parts)
        return _Part(text, any(p.may_be_empty for p in parts), any(p.captures for p in parts))

    def expect_end(self) -> None:
        if self._place < len(self._text):
            raise self._refused("a parenthesis that closes nothing")

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        text = "".join(part.text for part in parts)
        return _Part(text, all(p.may_be_empty for p in parts), any(p.captures for p in parts))

    def _repeated(self, atom: _Part) -> _Part:
        least, quantifier = self._quantifier()
        if not quantifier:
            return atom
        if not atom.repeatable or atom.may_be_empty:
            raise self._refused("a repetition of what may match nothing")
        lazy = "?" if self._take("?") else ""
        if self._next() in ("+", "*", "?", "{"):
            raise self._refused("a possessive or doubled quantifier")
        self.repeats_groups |= atom.captures and quantifier != "?"
        return _Part(f"{atom.text}{quantifier}{lazy}", least == 0, atom.captures)

    def _quantifier(self) -> tuple[int, str]:
        """Return the least number of repetitions and how it is written; nothing where there is no quantifier."""
        found = _QUANTIFIER.match(self._text, self._place)
        if found is None:
            if self._next() == "{":
                raise self._refused("a brace that is no quantifier")
            return 1, ""
        self._place = found.end()
        if found[1] is None:
            return int(found[0] == "+"), found[0]
        least, most = int(found[1]), int(found[3] or found[1])
        if most < least or most > _REPEATS_MAX:
            raise self._refused("a quantifier out of range")
        return least, found[0]

    def _atom(self) -> _Part:
        character = self._advance()
        if character == "(":
            return self._group()
        if character == "[":
            return _Part(self._class(), False)
        if character == ".":
            return _Part(_NO_LINE_END, False)
        if character == "^":
            return _Part("\\A", True, repeatable=False)
        if character == "$":
            return _Part(_END, True, repeatable=False)
        if character == "\\":
            return self._escaped()
        if character in "*+?{":
            raise self._refused("a quantifier of nothing")
        return _Part(re.escape(character), False)

    def _group(self) -> _Part:
        captures = not self._take("?:")
        if captures and self._next() == "?":
            raise self._refused("a group of a special kind")
        inner = self.alternatives()
        if not self._take(")"):
            raise self._refused("a parenthesis that is not closed")
        opening = "(" if captures else "(?:"
        return _Part(f"{opening}{inner.text})", inner.may_be_empty, captures or inner.captures)

    def _escaped(self) -> _Part:
        character = self._advance()
        if character in ("A", "z"):
            return _Part("\\A" if character == "A" else "\\Z", True, repeatable=False)
        return _Part(self._escape(character), False)

    def _escape(self, character: str) -> str:
        """Return an escape that stands for a character or for a class of them."""
        if character in _CLASSES:
            return f"\\{character}"
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character or not character.isascii() or character.isalnum():
            raise self._refused("an escape")
        return re.escape(character)

    def _class(self) -> str:
        parts = ["[^" if self._take("^") else "["]
        if self._next() in ("]", ""):
            raise self._refused("a class that begins with a bracket")
        while not self._take("]"):
            first = self._member()
            parts.append(first)
            if self._next() == "-" and self._text[self._place + 1 : self._place + 2] not in ("]", ""):
                self._advance()
                parts.append(f"-{self._bound(first)}")
        return f"{''.join(parts)}]"

    def _bound(self, first: str) -> str:
        last = self._member()
        if first[1:] in _CLASSES or last[1:] in _CLASSES or _code(last) < _code(first):
            raise self._refused("a range of classes, or one that descends")
        return last

    def _member(self) -> str:
        character = self._advance()
        if character in ("[", "") or (character == "&" and self._next() == "&"):
            raise self._refused("a class that has no end, or another in it")
        return self._escape(self._advance()) if character == "\\" else re.escape(character)

    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _advance(self) -> str:
        character = self._next()
        self._place += len(character)
        return character

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._place)
        self._place += len(text) if found else 0
        return found

    def _refused(self, what: str) -> NotPortable:
        return NotPortable(self._function, f"a regular expression with {what}")


def _code(member: str) -> int:
    """Return the character that a member of a class stands for."""
    return _CODES.get(member, ord(member[-1]))
