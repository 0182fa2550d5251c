"""Functions of strings: positions and lengths count code points, search compares UTF-8 bytes.

Constants take Arrow's kernels; arguments that vary by row take Python, row by row. Functions whose result rests on
Java's tables (INITCAP, FORMAT_STRING ...) are not portable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.expressions import casemap
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import accept, check_count
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand, as_array, validity
from viewkeeper.zset.schema import BINARY, BOOLEAN, INT, STRING, VOID, SqlType, to_arrow_type

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_LONGEST = 0x7FFFFFFF
_SIGNATURES: dict[str, tuple[int, tuple[SqlType, ...], SqlType]] = {
    # name: (required arguments, types, result)
    "upper": (1, (STRING,), STRING), "lower": (1, (STRING,), STRING), "reverse": (1, (STRING,), STRING),
    "ascii": (1, (STRING,), INT), "instr": (2, (STRING, STRING), INT),
    "contains": (2, (STRING, STRING), BOOLEAN), "startswith": (2, (STRING, STRING), BOOLEAN),
    "endswith": (2, (STRING, STRING), BOOLEAN), "repeat": (2, (STRING, INT), STRING),
    "replace": (2, (STRING, STRING, STRING), STRING), "substring": (2, (STRING, INT, INT), STRING),
    "left": (2, (STRING, INT), STRING), "lpad": (2, (STRING, INT, STRING), STRING),
    "rpad": (2, (STRING, INT, STRING), STRING), "translate": (3, (STRING, STRING, STRING), STRING),
}  # fmt: skip
_DEFAULTS: dict[str, Literal] = {
    "replace": Literal("", STRING), "substring": Literal(_LONGEST, INT),
    "lpad": Literal(" ", STRING), "rpad": Literal(" ", STRING),
}  # fmt: skip
_SYNONYMS = {"ucase": "upper", "lcase": "lower", "substr": "substring"}
_NO_BYTES = frozenset(("contains", "startswith", "endswith", "substring", "left", "lpad", "rpad", "reverse"))


def _refuse_bytes(function: str, argument: Expression) -> None:
    if argument.type == BINARY or argument.type.is_nested:
        raise NotPortable(function, f"{argument.type} argument")


@rule(*_SIGNATURES, *_SYNONYMS)
def _by_signature(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    name = _SYNONYMS.get(function, function)
    least, types, result = _SIGNATURES[name]
    if name == "instr" and len(arguments) > len(types):
        raise NotPortable(function, "a start")
    check_count(function, arguments, least, len(types))
    if name in _NO_BYTES:
        _refuse_bytes(function, arguments[0])
    if any(a.type == BINARY for a in arguments):
        raise NotPortable(function, "BINARY argument")
    accepted = [accept(function, a, session, t) for a, t in zip(arguments, types, strict=False)]
    if len(accepted) < len(types):
        accepted.append(_DEFAULTS[name])
    return make(name, accepted, result)


@rule("right")
def _right_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    _refuse_bytes(function, arguments[0])
    pair = [accept(function, arguments[0], session, STRING), accept(function, arguments[1], session, INT)]
    return make(function, pair, STRING, True)


@rule("length", "char_length", "character_length", "len", "octet_length", "bit_length")
def _length_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    name = function if function in ("octet_length", "bit_length") else "length"
    return make(name, [accept(function, arguments[0], session, STRING, BINARY)], INT)


@rule("trim", "ltrim", "rtrim", "btrim")
def _trim_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    """Take ``(text)``, or as Spark ``trim(characters, text)`` and ``btrim(text, characters)``."""
    check_count(function, arguments, 1, 2)
    if any(a.type == BINARY for a in arguments):
        raise NotPortable(function, "BINARY argument")
    accepted = [accept(function, a, session, STRING) for a in arguments]
    if len(accepted) == 1:
        accepted.append(Literal(" ", STRING))
    elif function != "btrim":
        accepted.reverse()
    return make("trim" if function == "btrim" else function, accepted, STRING)


@rule("concat")
def _concat_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    if any(a.type.is_nested for a in arguments):
        raise NotPortable(function, "arrays")
    if not arguments:
        return Literal("", STRING)
    if all(a.type == BINARY for a in arguments):
        return make(function, arguments, BINARY)
    return make(function, [accept(function, a, session, STRING) for a in arguments], STRING)


@rule("concat_ws")
def _concat_ws_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1)
    if any(a.type.is_nested for a in arguments):
        raise NotPortable(function, "arrays")
    accepted = [accept(function, a, session, STRING) for a in arguments]
    return make(function, accepted, STRING, accepted[0].nullable)


@rule("locate", "position")
def _locate_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 3)
    searched = [accept(function, a, session, STRING) for a in arguments[:2]]
    start = arguments[2] if len(arguments) == 3 else Literal(1, INT)
    if not isinstance(start, Literal) or start.value is None or not start.type.is_integer:
        raise NotPortable(function, "a start that is not an integer constant")
    return make("locate", [*searched, Literal(start.value, INT)], INT)


@rule("split_part")
def _split_part_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 3, 3)
    part = arguments[2]
    if not (isinstance(part, Literal) and part.type.is_integer and part.value):
        raise NotPortable(function, "a part that is not a constant other than 0")
    texts = [accept(function, a, session, STRING) for a in arguments[:2]]
    return make(function, [*texts, Literal(part.value, INT)], STRING, True)


@rule("like")
def _like_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 2, 2)
    pattern, escape = arguments[1], options.get("escape") or "\\"
    if not isinstance(pattern, Literal) or pattern.type not in (STRING, VOID) or not isinstance(escape, str):
        raise NotPortable(function, "a pattern that is not a string constant")
    value = accept(function, arguments[0], session, STRING)
    if pattern.value is not None:
        like_to_regex(str(pattern.value), escape)
    return make(function, [value, Literal(pattern.value, STRING)], BOOLEAN, escape=escape)


@rule("ilike")
def _ilike_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    """Both sides in lower case, as Spark has it."""
    like = _like_rule(function, arguments, session, options)
    assert isinstance(like, Call)
    value, pattern = like.arguments
    escape = str(like.option("escape"))
    if escape != casemap.lower(escape):
        raise NotPortable(function, "an escape that has a lower case")
    assert isinstance(pattern, Literal)
    if pattern.value is not None:
        pattern = Literal(casemap.lower(str(pattern.value)), STRING)
    return make("like", [make("lower", [value], STRING), pattern], BOOLEAN, escape=escape)


def like_to_regex(pattern: str, escape: str) -> str:
    r"""Return the RE2 expression that matches what LIKE ``pattern`` matches.

    Raises:
        NotPortable: where the pattern is malformed, which Spark reports when it evaluates.

    Example:
        >>> like_to_regex("a%_", "!")
        '(?s)\\Aa.*.\\z'
    """
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("_", "%", escape):
                raise NotPortable("like", "a malformed pattern")
            parts.append(_quoted(following))
        else:
            parts.append({"_": ".", "%": ".*"}.get(character) or _quoted(character))
    return f"(?s)\\A{''.join(parts)}\\z"


def _quoted(character: str) -> str:
    return character if ord(character) > 127 or character.isalnum() else f"\\x{ord(character):02x}"


def by_row(function: Callable[..., Any], operands: Sequence[Operand], sql_type: SqlType, length: int) -> pa.Array:
    """Return ``function`` applied to each row in which no operand is NULL."""
    columns = [as_array(operand, length).to_pylist() for operand in operands]
    rows = zip(*columns, strict=True)
    return pa.array([None if None in row else function(*row) for row in rows], to_arrow_type(sql_type))


@kernel("upper", "lower")
def _case(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    texts = as_array(operands[0], length)
    upper = call.function == "upper"
    result = pc.ascii_upper(texts) if upper else pc.ascii_lower(texts)
    foreign = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
    if not pc.any(foreign).as_py():
        return Evaluated(result)
    mapped = by_row(casemap.upper if upper else casemap.lower, [texts.filter(foreign)], STRING, 0)
    return Evaluated(pc.replace_with_mask(result, foreign, mapped))


@kernel("reverse")
def _reverse(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(as_array(pc.utf8_reverse(operands[0]), length))


@kernel("ascii")
def _ascii(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(lambda text: ord(text[0]) if text else 0, operands, INT, length))


@kernel("length", "octet_length", "bit_length")
def _length(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    is_text = call.arguments[0].type == STRING and call.function == "length"
    counts = (pc.utf8_length if is_text else pc.binary_length)(operands[0])
    if call.function == "bit_length":
        counts = pc.multiply(counts, pa.scalar(8, pa.int32()))
    return Evaluated(as_array(pc.cast(counts, pa.int32()), length))


@kernel("trim", "ltrim", "rtrim")
def _trim(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    texts, characters = operands
    if isinstance(characters, pa.Scalar) and characters.as_py():
        forms = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}
        return Evaluated(as_array(forms[call.function](texts, characters=characters.as_py()), length))
    strip = {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[call.function]
    return Evaluated(by_row(strip, operands, STRING, length))


@kernel("concat", strict="all")
def _concat(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    empty = pa.scalar("" if call.type == STRING else b"", to_arrow_type(call.type))
    return Evaluated(as_array(pc.binary_join_element_wise(*operands, empty), length))


@kernel("concat_ws", strict="all")
def _concat_ws(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    separator = as_array(operands[0], length)
    if len(operands) == 1:
        return Evaluated(pc.if_else(separator.is_valid(), pa.scalar(""), separator))
    parts = [as_array(operand, length) for operand in operands[1:]]
    # Arrow 26 leaves out a row whose separator or whose parts are all NULL, so no such row may reach it.
    nothing = parts[0].is_null()
    for part in parts[1:]:
        nothing = pc.and_(nothing, part.is_null())
    parts[0] = pc.if_else(nothing, pa.scalar(""), parts[0])
    joined = pc.binary_join_element_wise(*parts, pc.fill_null(separator, ""), null_handling="skip")
    return Evaluated(pc.if_else(separator.is_valid(), joined, pa.scalar(None, pa.string())))


@kernel("repeat")
def _repeat(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(lambda text, times: text * times, operands, STRING, length))


@kernel("replace")
def _replace(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    texts, search, replacement = operands
    constant = isinstance(search, pa.Scalar) and isinstance(replacement, pa.Scalar)
    if constant and search.as_py() and replacement.is_valid:
        pattern, new = search.as_py(), replacement.as_py()
        return Evaluated(as_array(pc.replace_substring(texts, pattern=pattern, replacement=new), length))

    def one(text: str, old: str, new: str) -> str:
        return text.replace(old, new) if old else text

    return Evaluated(by_row(one, operands, STRING, length))


@kernel("translate")
def _translate(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    def one(text: str, old: str, new: str) -> str:
        table: dict[int, str | None] = {}
        for index, character in enumerate(old):
            replacement = new[index] if index < len(new) and new[index] != "\0" else None
            table.setdefault(ord(character), replacement)
        return text.translate(table)

    return Evaluated(by_row(one, operands, STRING, length))


def substring(text: str, position: int, count: int) -> str:
    """Return ``count`` characters from the 1-based ``position``; a negative one counts from the end.

    Example:
        >>> substring("abc", -5, 3), substring("abc", 0, 2)
        ('a', 'ab')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + count, _LONGEST)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _right(text: str, count: int) -> str:
    return substring(text, -count, _LONGEST) if count > 0 else ""


def _pad_left(text: str, size: int, pad: str) -> str:
    missing = size - len(text)
    if missing <= 0 or not pad:
        return text[: max(size, 0)]
    return (pad * (missing // len(pad) + 1))[:missing] + text


def _pad_right(text: str, size: int, pad: str) -> str:
    missing = size - len(text)
    if missing <= 0 or not pad:
        return text[: max(size, 0)]
    return text + (pad * (missing // len(pad) + 1))[:missing]


@kernel("substring", "left")
def _substring(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    if call.function == "left":
        operands = (operands[0], pa.scalar(1, pa.int32()), operands[1])
    texts, position, count = operands
    if isinstance(position, pa.Scalar) and isinstance(count, pa.Scalar) and position.is_valid and count.is_valid:
        start, size = position.as_py(), count.as_py()
        if start >= 0:
            start = max(start - 1, 0)
            sliced = pc.utf8_slice_codeunits(texts, start=start, stop=min(start + max(size, 0), _LONGEST))
            return Evaluated(as_array(sliced, length))
    return Evaluated(by_row(substring, [texts, position, count], STRING, length))


_BY_ROW: dict[str, Callable[..., Any]] = {"right": _right, "lpad": _pad_left, "rpad": _pad_right}


@kernel(*_BY_ROW)
def _by_row_kernel(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(_BY_ROW[call.function], operands, STRING, length))


@kernel("instr")
def _instr(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(lambda text, part: text.find(part) + 1, operands, INT, length))


@kernel("locate")
def _locate(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    start = operands[2].as_py() if isinstance(operands[2], pa.Scalar) else operands[2][0].as_py()

    def one(part: str, text: str) -> int:
        return 0 if start < 1 else text.find(part, start - 1) + 1 if part else 1

    return Evaluated(by_row(one, operands[:2], INT, length))


@kernel("contains", "startswith", "endswith")
def _contains(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    texts, part = operands
    if isinstance(part, pa.Scalar) and part.is_valid:
        forms = {"contains": pc.match_substring, "startswith": pc.starts_with, "endswith": pc.ends_with}
        return Evaluated(as_array(forms[call.function](texts, pattern=part.as_py()), length))
    tests: dict[str, Callable[..., Any]] = {
        "contains": str.__contains__, "startswith": str.startswith, "endswith": str.endswith,
    }  # fmt: skip
    return Evaluated(by_row(tests[call.function], operands, BOOLEAN, length))


@kernel("like")
def _like(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal)
    if pattern.value is None:
        return Evaluated(pa.nulls(length, pa.bool_()))
    text, escape = str(pattern.value), str(call.option("escape"))
    inner = text.strip("%")
    plain = inner and not re.search(f"[%_{re.escape(escape)}]", inner)
    form = {f"{inner}%": pc.starts_with, f"%{inner}": pc.ends_with, f"%{inner}%": pc.match_substring}.get(text)
    if plain and form is not None:
        return Evaluated(as_array(form(operands[0], pattern=inner), length))
    return Evaluated(as_array(pc.match_substring_regex(operands[0], pattern=like_to_regex(text, escape)), length))


@kernel("split_part")
def _split_part(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    part = operands[2].as_py() if isinstance(operands[2], pa.Scalar) else operands[2][0].as_py()

    def one(text: str, delimiter: str) -> str:
        pieces = text.split(delimiter) if delimiter else [text]
        index = part - 1 if part > 0 else len(pieces) + part
        return pieces[index] if 0 <= index < len(pieces) else ""

    return Evaluated(by_row(one, operands[:2], STRING, length))


@rule("size", "cardinality")
def _size_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if arguments[0].type.name not in ("ARRAY", "MAP") or not session.ansi:
        raise NotPortable(function, "other than arrays and maps in ANSI mode")
    return make("size", arguments, INT)


@kernel("size")
def _size(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    values = as_array(operands[0], length)
    offsets = values.offsets.to_numpy()
    return Evaluated(
        pa.array(offsets[1:] - offsets[:-1], pa.int32(), mask=~np.broadcast_to(validity(values), (length,)))
    )
