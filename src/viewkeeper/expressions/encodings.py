"""Digests and encodings of bytes, and what else is exact text: HEX, MD5, SHA, CRC32, BASE64, BIN, CHAR, TYPEOF.

Source: Spark 4.3, ``Hex``, ``Unhex``, ``Md5``, ``Sha1``, ``Sha2``, ``Crc32``, ``Base64``, ``Bin``, ``Chr``,
``SubstringIndex``, ``StringSpace``, ``FindInSet``.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import kernel, make, rule
from viewkeeper.expressions.implicit import accept, check_count
from viewkeeper.expressions.strings import by_row
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, Session
from viewkeeper.expressions.vectors import Evaluated, Operand
from viewkeeper.zset.schema import BIGINT, BINARY, INT, STRING, SqlType

Options = Mapping[str, Scalar]
Arguments = tuple[Expression, ...]
_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
_LOW_64 = (1 << 64) - 1
_SIGNATURES: dict[str, tuple[tuple[SqlType, ...], SqlType, bool | None]] = {
    # name: (types, result, nullable; None: where an argument is)
    "md5": ((BINARY,), STRING, None), "sha1": ((BINARY,), STRING, None), "sha2": ((BINARY, INT), STRING, True),
    "crc32": ((BINARY,), BIGINT, None), "base64": ((BINARY,), STRING, None), "unhex": ((STRING,), BINARY, True),
    "bin": ((BIGINT,), STRING, None), "char": ((BIGINT,), STRING, None), "space": ((INT,), STRING, None),
    "substring_index": ((STRING, STRING, INT), STRING, None), "find_in_set": ((STRING, STRING), INT, None),
}  # fmt: skip
_SYNONYMS = {"sha": "sha1", "chr": "char"}


@rule(*_SIGNATURES, *_SYNONYMS)
def _by_signature(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    name = _SYNONYMS.get(function, function)
    types, result, nullable = _SIGNATURES[name]
    check_count(function, arguments, len(types), len(types))
    if not session.ansi:
        raise NotPortable(function, "outside ANSI mode")
    for argument, wanted in zip(arguments, types, strict=True):
        plain = (argument.type == STRING and wanted == BINARY) or (argument.type.is_integer and wanted in (INT, BIGINT))
        if argument.type != wanted and not plain:
            raise NotPortable(function, f"{argument.type} argument")
    return make(
        name, [accept(function, a, session, t) for a, t in zip(arguments, types, strict=True)], result, nullable
    )


@rule("hex")
def _hex_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    (argument,) = arguments
    if not (argument.type.is_integer or argument.type in (STRING, BINARY)):
        raise NotPortable(function, f"{argument.type} argument")
    wanted = BIGINT if argument.type.is_integer else argument.type
    return make(function, [accept(function, argument, session, wanted)], STRING)


@rule("typeof")
def _typeof_rule(function: str, arguments: Arguments, session: Session, options: Options) -> Expression:
    check_count(function, arguments, 1, 1)
    if arguments[0].type.name.startswith("INTERVAL"):
        raise NotPortable(function, "an interval, whose units the type does not hold")
    return Literal(str(arguments[0].type), STRING)


def _hex(value: int | str | bytes) -> str:
    if isinstance(value, int):
        return f"{value & _LOW_64:X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def _unhex(text: str) -> bytes | None:
    digits = f"0{text}" if len(text) % 2 else text
    if not all(character in "0123456789abcdefABCDEF" for character in digits):
        return None
    return bytes.fromhex(digits)


def _sha2(data: bytes, bits: int) -> str | None:
    name = _SHA2.get(bits)
    return None if name is None else hashlib.new(name, data).hexdigest()


def _char(number: int) -> str:
    return "" if number < 0 else chr(number & 0xFF)


def substring_index(text: str, delimiter: str, count: int) -> str:
    """Return ``text`` up to the ``count``-th delimiter, from the end where ``count`` is negative.

    Example:
        >>> substring_index("www.apache.org", ".", 2), substring_index("www.apache.org", ".", -1)
        ('www.apache', 'org')
    """
    if count == 0 or not delimiter:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(abs(count)):
        # Delimiters may overlap: each search begins one character behind the last find.
        at = text.find(delimiter, at + 1) if count > 0 else text.rfind(delimiter, 0, max(at - 1 + len(delimiter), 0))
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(delimiter) :]


def _find_in_set(word: str, words: str) -> int:
    if "," in word:
        return 0
    parts = words.split(",")
    return parts.index(word) + 1 if word in parts else 0


_FORMS: dict[str, Callable[..., Any]] = {
    "hex": _hex,
    "unhex": _unhex,
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "crc32": zlib.crc32,
    "base64": lambda data: base64.b64encode(data).decode(),
    "bin": lambda number: f"{number & _LOW_64:b}",
    "char": _char,
    "space": lambda count: " " * count,
    "substring_index": substring_index,
    "find_in_set": _find_in_set,
}


@kernel(*_FORMS)
def _by_row_kernel(call: Call, operands: Sequence[Operand], length: int) -> Evaluated:
    return Evaluated(by_row(_FORMS[call.function], operands, call.type, length))
