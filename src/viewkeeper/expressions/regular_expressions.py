"""Functions of regular expressions: those whose pattern is a constant that means the same to Java and to Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow.compute as pc

from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import accept, check_count
from viewkeeper.expressions.patterns import Pattern, translate
from viewkeeper.expressions.strings import Arguments, Options, by_row
from viewkeeper.expressions.tree import Call, Expression, Literal, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, as_array
from viewkeeper.zset.schema import BOOLEAN, INT, STRING, SqlType, array, to_arrow_type

Replacement: TypeAlias = list[str | int]
# How many arguments are taken, and the result.
_SIGNATURES: dict[str, tuple[int, int, SqlType]] = {
    "rlike": (2, 2, BOOLEAN), "regexp_extract": (2, 3, STRING), "regexp_extract_all": (2, 3, array(STRING)),
    "regexp_replace": (3, 3, STRING), "regexp_count": (2, 2, INT), "regexp_instr": (2, 2, INT),
    "regexp_substr": (2, 2, STRING), "split": (2, 2, array(STRING)),
}  # fmt: skip
# Where the next match begins behind one of no characters is Java's to say: within a character beyond 16 bits too.
_ALL_MATCHES = frozenset(("regexp_extract_all", "regexp_replace", "regexp_count", "split"))
_REPLACEMENT_PART = re.compile(r"\\(?P<escaped>.)|\$(?P<group>[0-9]+)|(?P<plain>[^\\$]+)", re.DOTALL)
_SYNONYMS = {"regexp": "rlike", "regexp_like": "rlike"}


@rule(*_SIGNATURES, *_SYNONYMS)
def _rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    name = _SYNONYMS.get(function, function)
    least, most, result = _SIGNATURES[name]
    if len(arguments) > most:
        raise NotPortable(function, "more arguments than a pattern")
    check_count(function, arguments, least, most)
    pattern = translate(_text_of(function, arguments[1]), function)
    if name in _ALL_MATCHES and pattern.may_be_empty:
        raise NotPortable(function, "a pattern that may match nothing")
    rest: list[Expression] = []
    if name in ("regexp_extract", "regexp_extract_all"):
        rest = [Literal(_group_of(function, arguments, pattern), INT)]
    elif name == "regexp_replace":
        _replacement_of(function, _text_of(function, arguments[2]), pattern)
        rest = [arguments[2]]
    value = accept(function, arguments[0], session, STRING)
    return make(name, [value, arguments[1], *rest], result, True if name == "regexp_substr" else None)


def _text_of(function: str, argument: Expression) -> str:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise NotPortable(function, "a pattern or a replacement that is not a string constant")
    return argument.value


def _group_of(function: str, arguments: Arguments, pattern: Pattern) -> int:
    """Return the number of the group that is asked for; Spark's own default is the first."""
    if len(arguments) < 3:
        number: object = 1
    else:
        number = arguments[2].value if isinstance(arguments[2], Literal) else None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= pattern.compiled.groups:
        raise NotPortable(function, "a group that is not there")
    if number and pattern.repeats_groups:
        raise NotPortable(function, "a group that is repeated")
    return number


def _replacement_of(function: str, text: str, pattern: Pattern) -> Replacement:
    r"""Return what ``text`` says as texts and numbers of groups, as Java reads it: ``$1`` a group, ``\$`` a sign."""
    parts: Replacement = []
    place = 0
    while place < len(text):
        found = _REPLACEMENT_PART.match(text, place)
        if found is None or (found["group"] and pattern.repeats_groups):
            raise NotPortable(function, "a replacement by a named or repeated group, or one that is cut off")
        place = found.end()
        if not found["group"]:
            parts.append(found["escaped"] or found["plain"])
            continue
        # Further digits belong to the number as long as there is such a group.
        digits = found["group"]
        while len(digits) > 1 and int(digits) > pattern.compiled.groups:
            digits, place = digits[:-1], place - 1
        if int(digits) > pattern.compiled.groups:
            raise NotPortable(function, "a group that is not there")
        parts.append(int(digits))
    return parts


def _means_itself(pattern: str) -> bool:
    return re.escape(pattern).replace("\\ ", " ").replace("\\-", "-") == pattern and pattern.isascii()


def _extract(pattern: re.Pattern[str], group: int) -> Callable[[str], Any]:
    def one(text: str) -> str:
        found = pattern.search(text)
        return "" if found is None else found[group] or ""

    return one


def _extract_all(pattern: re.Pattern[str], group: int) -> Callable[[str], Any]:
    return lambda text: [found[group] or "" for found in pattern.finditer(text)]


def _replace(pattern: re.Pattern[str], parts: Replacement) -> Callable[[str], Any]:
    def written(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in parts)

    return lambda text: pattern.sub(written, text)


def _instr(pattern: re.Pattern[str]) -> Callable[[str], Any]:
    def one(text: str) -> int:
        found = pattern.search(text)
        return 0 if found is None else found.start() + 1

    return one


def _substr(pattern: re.Pattern[str]) -> Callable[[str], Any]:
    def one(text: str) -> str | None:
        found = pattern.search(text)
        return None if found is None else found[0] or None

    return one


def _split(pattern: re.Pattern[str]) -> Callable[[str], Any]:
    def one(text: str) -> list[str]:
        ends = [found.span() for found in pattern.finditer(text)]
        starts = [0, *(stop for _, stop in ends)]
        return [text[a:b] for a, b in zip(starts, [*(start for start, _ in ends), len(text)], strict=True)]

    return one


@kernel(*_SIGNATURES)
def _by_pattern(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    pattern, *rest = (argument.value for argument in call.arguments[1:] if isinstance(argument, Literal))
    if call.function == "split" and _means_itself(str(pattern)):
        made = pc.split_pattern(as_array(operands[0], length), pattern=str(pattern))
        return Evaluated(made.cast(to_arrow_type(call.type)))
    return Evaluated(by_row(_function(call.function, str(pattern), rest), operands[:1], call.type, length))


def _function(name: str, text: str, rest: Sequence[object]) -> Callable[[str], Any]:
    """Return what a function of a pattern does to one text."""
    known = translate(text, name)
    pattern = known.compiled
    if name in ("regexp_extract", "regexp_extract_all"):
        group = rest[0]
        assert isinstance(group, int)
        return (_extract if name == "regexp_extract" else _extract_all)(pattern, group)
    if name == "regexp_replace":
        return _replace(pattern, _replacement_of(name, str(rest[0]), known))
    if name == "regexp_count":
        return lambda value: sum(1 for _ in pattern.finditer(value))
    if name == "rlike":
        return lambda value: pattern.search(value) is not None
    return {"regexp_instr": _instr, "regexp_substr": _substr, "split": _split}[name](pattern)
