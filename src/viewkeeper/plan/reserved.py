"""Words of the grammar that stand where only a name can, and literals written apart: read as Spark reads them.

Spark reserves no word (``spark.sql.ansi.enforceReservedKeywords`` is false by default): ``SELECT from, to FROM m`` is
a query; sqlglot reserves some. What it cannot read is read once more with those words as names that stand where an
operand or a table begins and before something that follows one; of a text that it can read nothing changes. Left out
are aliases without AS that are words of the structure (``SELECT a where FROM t``): a slip is more likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

T = TokenType
# Behind these an operand begins, or a table.
_BEFORE = frozenset((
    T.SELECT, T.DISTINCT, T.COMMA, T.L_PAREN, T.WHERE, T.HAVING, T.QUALIFY, T.GROUP_BY, T.ORDER_BY, T.PARTITION_BY,
    T.CLUSTER_BY, T.DISTRIBUTE_BY, T.SORT_BY, T.AND, T.OR, T.NOT, T.ON, T.WHEN, T.THEN, T.ELSE, T.CASE, T.BETWEEN,
    T.LIKE, T.FROM, T.JOIN, T.WITH, T.DOT, T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.PLUS, T.DASH, T.STAR,
    T.SLASH, T.MOD, T.DPIPE, T.AMP, T.PIPE, T.CARET,
))  # fmt: skip
# Before these an operand ends, or a table; none of them begins what could follow a word of the grammar.
_BEHIND = frozenset((
    T.COMMA, T.R_PAREN, T.DOT, T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.SLASH, T.MOD, T.DPIPE, T.AMP,
    T.PIPE, T.CARET, T.DCOLON, T.L_BRACKET, T.ALIAS, T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.QUALIFY, T.ORDER_BY,
    T.LIMIT, T.ASC, T.DESC, T.IS, T.IN, T.LIKE, T.BETWEEN, T.AND, T.OR, T.THEN, T.ELSE, T.WHEN, T.END, T.JOIN, T.LEFT,
    T.RIGHT, T.INNER, T.CROSS, T.FULL, T.UNION, T.EXCEPT, T.INTERSECT, T.SEMICOLON,
))  # fmt: skip
# Before these, too, behind a word that takes no operand to its right: some do always, some where a query or an
# argument begins.
_SIGNS = frozenset((T.PLUS, T.DASH, T.STAR))
_TAKES_OPERAND = frozenset((T.CASE, T.NOT, T.INTERVAL))
_QUANTIFIERS = frozenset((T.DISTINCT, T.ALL))
_TAKES_OPERAND_FIRST = {T.SELECT: (T.L_PAREN,), T.DISTINCT: (T.SELECT, T.L_PAREN), T.ALL: (T.SELECT, T.L_PAREN)}
_CASE_BEGINS = (T.CASE, T.WHEN)
_NO_NAMES = frozenset((
    T.VAR, T.IDENTIFIER, T.NUMBER, T.NULL, T.TRUE, T.FALSE, T.STRING, T.RAW_STRING, T.HEX_STRING, T.BIT_STRING,
    T.BYTE_STRING, T.NATIONAL_STRING, T.NATIONAL_RAW_STRING, T.UNICODE_STRING, T.HEREDOC_STRING,
))  # fmt: skip


def sure_names(tokens: Sequence[Token]) -> list[Token]:
    """Return ``tokens`` with those words as names that sqlglot would read as others without saying so.

    They are DISTINCT and ALL before a comma, which it passes over, and WINDOW behind GROUP BY, which begins a clause.
    """
    found = list(tokens)
    for i, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type in _QUANTIFIERS and following.token_type == T.COMMA:
            found[i] = _copy(token, T.IDENTIFIER, token.text, token.end)
        elif (
            token.token_type == T.GROUP_BY and following.token_type == T.WINDOW and not _defines(tokens[i + 2 : i + 4])
        ):
            found[i + 1] = _copy(following, T.VAR, following.text, following.end)
    return found


def _defines(tokens: Sequence[Token]) -> bool:
    """Return whether what follows WINDOW is ``w AS``: then only the columns of GROUP BY have been forgotten."""
    return len(tokens) > 1 and tokens[1].token_type == T.ALIAS


def as_names(tokens: Sequence[Token]) -> list[Token] | None:
    """Return ``tokens`` with the words that can only be names as names, and ``X 'ff'`` as one literal.

    Args:
        tokens: of a text that cannot be read as it stands.

    Returns:
        None where nothing is to be changed.
    """
    found: list[Token] = []
    for i, token in enumerate(tokens):
        before = found[-1] if found else None
        following = tokens[i + 1].token_type if i + 1 < len(tokens) else T.SEMICOLON
        if token.token_type == T.STRING and before is not None and _is_binary(before, token):
            found[-1] = _copy(before, T.HEX_STRING, token.text, token.end)
        elif before is not None and _is_name(token, before.token_type, following):
            found.append(_copy(token, T.IDENTIFIER, token.text, token.end))
        else:
            found.append(token)
    return None if [*map(_kind, found)] == [*map(_kind, tokens)] else found


def _is_name(token: Token, before: TokenType, following: TokenType) -> bool:
    kind = token.token_type
    if kind in _NO_NAMES or not token.text.isidentifier():
        return False
    if before == T.ALIAS:
        return kind not in SparkParser.TYPE_TOKENS and following in _BEHIND
    if before == T.DOT:
        return following in _BEHIND or following in _SIGNS
    if before not in _BEFORE or (kind in _QUANTIFIERS and following == T.FROM):
        return False
    if _CASE_BEGINS in ((kind, following), (before, kind)):
        return False
    takes_operand = kind in _TAKES_OPERAND or before in _TAKES_OPERAND_FIRST.get(kind, ())
    return following in _BEHIND or (following in _SIGNS and not takes_operand)


def _is_binary(before: Token, text: Token) -> bool:
    is_hexadecimal = all(digit in "0123456789abcdefABCDEF" for digit in text.text)
    return before.token_type == T.VAR and before.text.upper() == "X" and is_hexadecimal


def _copy(token: Token, kind: TokenType, text: str, end: int) -> Token:
    return Token(kind, text, token.line, token.col, token.start, end, token.comments)


def _kind(token: Token) -> TokenType:
    return token.token_type
