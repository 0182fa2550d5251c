"""SQL text → lexemes with exact offsets, by sqlglot's tokenizer for Spark.

sqlglot's own keywords are left out: words stay words, whatever they mean elsewhere, because nearly all of Spark's
keywords may be names too. Its "commands" (SHOW, EXPLAIN …, whose rest it returns as one opaque string) are left out
for the same reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import SqlError
from viewkeeper.statements.model import Place, Places

LexemeKind = Literal["word", "quoted", "string", "number", "literal", "symbol", "end"]

_KINDS: dict[TokenType, LexemeKind] = {
    TokenType.VAR: "word",
    TokenType.IDENTIFIER: "quoted",
    TokenType.STRING: "string",
    TokenType.RAW_STRING: "string",
    TokenType.NUMBER: "number",
    TokenType.HEX_STRING: "literal",
    TokenType.NATIONAL_STRING: "literal",
}
_OPENER = re.compile(r"--[^\r\n]*|/\*|(?<!\w)[rR]['\"]|['\"`]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_UNCLOSED = {"'": "string", '"': "string", "`": "quoted name", "/": "comment", "r": "string", "R": "string"}


_CLOSERS = {
    "string": "the same quote (a quote inside is written twice, or with \\ before it)",
    "quoted name": "a backtick",
    "comment": "*/",
}


class _WordTokenizer(Spark.Tokenizer):
    """Spark's tokenizer without keywords."""

    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        text: kind for text, kind in Spark.Tokenizer.KEYWORDS.items() if not text[0].isalpha()
    }


@dataclass(frozen=True)
class Lexeme:
    """One word, quoted name, string, number or symbol.

    Args:
        kind: what it is; "literal" is any but a plain string or number, "end" stands behind the last one.
        text: its value: without quotes and escapes for quoted names and strings, else as written.
        start: offset of its first character.
        stop: offset behind its last character.
    """

    kind: LexemeKind
    text: str
    start: int
    stop: int

    def is_word(self, word: str) -> bool:
        """Return whether this is the unquoted ``word`` (in upper case) or the symbol ``word``."""
        return self.kind in ("word", "symbol") and self.text.upper() == word

    def __str__(self) -> str:
        """Return the lexeme as errors write it."""
        if self.kind == "end":
            return "the end of the statement"
        quote = {"quoted": "`", "string": "'"}.get(self.kind, "")
        text = self.text if len(self.text) <= 40 else self.text[:40] + "…"
        return f"'{text}'" if not quote else f"{quote}{text}{quote}"


def tokenize(sql: str) -> list[Lexeme]:
    """Return the lexemes of ``sql``, comments left out.

    Raises:
        SqlError: SYNTAX_ERROR, where the text cannot be read; ``details["unclosed"]`` tells what does not end: a
            string, a quoted name or a comment.
    """
    try:
        tokens = _WordTokenizer(dialect="spark").tokenize(sql)
    except TokenError as error:
        raise _unreadable(sql) from error
    lexemes: list[Lexeme] = []
    for token in tokens:
        lexeme = _to_lexeme(sql, token)
        if lexeme.kind == "string" and lexemes and lexemes[-1].kind == "string":
            lexeme = _joined(sql, lexemes.pop(), lexeme)
        lexemes.append(lexeme)
    return lexemes


def split(sql: str) -> list[list[Lexeme]]:
    """Return the lexemes of each statement of a script; statements end at semicolons, empty ones are left out."""
    statements: list[list[Lexeme]] = [[]]
    for lexeme in tokenize(sql):
        if lexeme.is_word(";"):
            statements.append([])
        else:
            statements[-1].append(lexeme)
    return [statement for statement in statements if statement]


def near(sql: str, offset: int) -> str:
    """Return the piece of ``sql`` at ``offset`` that an error shows: the rest of the line, at most 40 characters."""
    return (sql[offset : offset + 40].splitlines() or [""])[0].rstrip()


def place_details(sql: str, place: Place) -> dict[str, object]:
    """Return the facts that belong to an error at ``place`` of ``sql``."""
    return {"line": place.line, "column": place.column, "offset": place.offset, "near": near(sql, place.offset)}


def _to_lexeme(sql: str, token: Token) -> Lexeme:
    start, stop = token.start, token.end + 1
    kind = _KINDS.get(token.token_type, "symbol")
    return Lexeme(kind, token.text, start, stop)


def _joined(sql: str, left: Lexeme, right: Lexeme) -> Lexeme:
    # As Spark 4 reads them: 'a''b' is a'b, 'a' 'b' is ab, and r'a''b' is ab.
    quote = sql[right.start]
    doubled = left.stop == right.start and sql[left.start] == quote
    return Lexeme("string", left.text + (quote if doubled else "") + right.text, left.start, right.stop)


def _unreadable(sql: str) -> SqlError:
    position = 0
    while opener := _OPENER.search(sql, position):
        position = _closing(sql, opener)
        if position < 0:
            place = Places(sql).at(opener.start())
            what = _UNCLOSED[opener.group()[0]]
            message = f"The {what} that begins at {place} does not end: close it with {_CLOSERS[what]}."
            return SqlError("SYNTAX_ERROR", message, {**place_details(sql, place), "unclosed": what})
    place = Places(sql).at(0)
    return SqlError(
        "SYNTAX_ERROR",
        f"At {place}: the SQL cannot be split into words; look for characters that do not belong there.",
        place_details(sql, place),
    )


def _closing(sql: str, opener: re.Match[str]) -> int:
    """Return the offset behind the end of what ``opener`` begins, -1 where it does not end."""
    text = opener.group()
    if text.startswith("--"):
        return opener.end()
    if text == "/*":
        return _comment_closing(sql, opener.end())
    quote = text[-1]
    escaped = quote != "`" and len(text) == 1
    pattern = rf"(?:\\.|[^\\{quote}])*{quote}" if escaped else rf"[^{quote}]*{quote}"
    closing = re.compile(pattern, re.DOTALL).match(sql, opener.end())
    return closing.end() if closing else -1


def _comment_closing(sql: str, position: int) -> int:
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(sql, position)
        if edge is None:
            return -1
        depth += 1 if edge.group() == "/*" else -1
        position = edge.end()
    return position
