"""VALUES (…), (…): the rows of an INSERT, read without a query; literals, which are nearly all, without a planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewkeeper.errors import SqlError
from viewkeeper.evaluation.assignment import raise_first
from viewkeeper.evaluation.pinned import ONE_ROW
from viewkeeper.expressions import literals, registry
from viewkeeper.expressions.coercion import common_type
from viewkeeper.expressions.evaluate import evaluate
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Session
from viewkeeper.expressions.user_functions import UserFunction
from viewkeeper.plan.build import plan_expression
from viewkeeper.plan.place import Place, located
from viewkeeper.statements.lexer import Lexeme, tokenize
from viewkeeper.zset.schema import BOOLEAN, STRING, VOID, Schema, SqlType, to_arrow_type

_OPENERS, _CLOSERS = ("(", "[", "{"), (")", "]", "}")
_CONSTANTS = {"NULL": Literal(None, VOID), "TRUE": Literal(True, BOOLEAN), "FALSE": Literal(False, BOOLEAN)}


@dataclass(frozen=True)
class Default:
    """The keyword DEFAULT in place of a value."""


Item = Expression | Default


@dataclass(frozen=True)
class InlineColumn:
    """One column of inline rows.

    Args:
        type: the common type of its values.
        values: the values; NULL where the row has DEFAULT.
        defaults: which rows have DEFAULT.
    """

    type: SqlType
    values: pa.Array
    defaults: np.ndarray


def read_values(
    sql: str,
    session: Session,
    parameters: Mapping[str, object] | None,
    place: Place | None,
    functions: Mapping[str, UserFunction],
) -> list[list[Item]] | None:
    """Return the rows of ``VALUES …`` as expressions.

    Args:
        sql: the query of an INSERT.
        session: time zone and ANSI mode.
        parameters: the values of ``:name``.
        place: where ``sql`` stands in the user's text.
        functions: users' functions by name.

    Returns:
        The rows; None where ``sql`` is another query.

    Raises:
        SqlError: an item that is wrong, at its place, or rows of unequal length (``INVALID_INLINE_TABLE``).
        UnsupportedSql: an item that needs Spark.
    """
    place = place or Place(sql)
    lexemes = tokenize(sql)
    if not lexemes or not lexemes[0].is_word("VALUES"):
        return None
    rows: list[list[Item]] = []
    for row in _split(lexemes[1:]):
        items = _split(row[1:-1]) if _is_parenthesised(row) else [row]
        if not all(items) or not row:
            details = place.details(lexemes[0].start, lexemes[-1].stop)
            raise SqlError("SYNTAX_ERROR", located("VALUES lacks a value here.", details), details)
        rows.append([_item(sql, item, session, parameters, place, functions) for item in items])
        if len(rows[-1]) != len(rows[0]):
            details = place.details(row[0].start, row[-1].stop)
            message = f"This row has {len(rows[-1])} values, the first one {len(rows[0])}."
            raise SqlError("INVALID_INLINE_TABLE", located(message, details), details)
    return rows


def column_of(items: Sequence[Item], session: Session) -> InlineColumn:
    """Return a column of inline rows, brought to the common type of its values as in Spark.

    Raises:
        SqlError: ``INVALID_INLINE_TABLE`` where the values have no common type.
        EvaluationError: a value that cannot be computed.
    """
    count = len(items)
    defaults = np.fromiter((isinstance(item, Default) for item in items), bool, count)
    places: dict[SqlType, list[int]] = {}
    for i, item in enumerate(items):
        if not isinstance(item, Default):
            places.setdefault(item.type, []).append(i)
    target = common_type(list(places), session)
    if target is None:
        names = ", ".join(str(t).upper() for t in places)
        raise SqlError("INVALID_INLINE_TABLE", f"Values of the types {names} stand in one column of VALUES: cast them.")
    parts, order = [], []
    for sql_type, rows in places.items():
        values = _array([items[i] for i in rows], sql_type, session)
        if sql_type != target:
            cast = registry.cast(ColumnRef(0, sql_type), target, session)
            batch = pa.record_batch([values], names=["value"])
            computed = evaluate(cast, batch, session)
            raise_first(computed.errors, batch, ("value",), f"A cast to {str(target).upper()}")
            values = computed.values
        parts.append(values)
        order += rows
    if defaults.any():
        parts.append(pa.nulls(int(defaults.sum()), to_arrow_type(target)))
        order += np.flatnonzero(defaults).tolist()
    joined = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if order != list(range(count)):
        joined = joined.take(pa.array(np.argsort(order)))
    return InlineColumn(target, joined, defaults)


def _array(items: Sequence[Item], sql_type: SqlType, session: Session) -> pa.Array:
    arrow_type = to_arrow_type(sql_type)
    if all(isinstance(item, Literal) for item in items):
        return pa.array([item.value for item in items if isinstance(item, Literal)], arrow_type)
    parts = []
    for item in items:
        assert not isinstance(item, Default)
        computed = evaluate(item, ONE_ROW, session)
        raise_first(computed.errors, ONE_ROW, (), "A value")
        parts.append(computed.values)
    return pa.concat_arrays(parts)


def _split(lexemes: Sequence[Lexeme]) -> list[list[Lexeme]]:
    """Return the parts between commas outside parentheses."""
    parts: list[list[Lexeme]] = [[]]
    depth = 0
    for lexeme in lexemes:
        if lexeme.kind == "symbol":
            depth += (lexeme.text in _OPENERS) - (lexeme.text in _CLOSERS)
            if lexeme.text == "," and depth == 0:
                parts.append([])
                continue
        parts[-1].append(lexeme)
    return parts


def _is_parenthesised(row: Sequence[Lexeme]) -> bool:
    """Return whether the first parenthesis of ``row`` closes at its end."""
    depth = 0
    for number, lexeme in enumerate(row):
        if lexeme.kind == "symbol":
            depth += (lexeme.text == "(") - (lexeme.text == ")")
        if depth == 0:
            return number == len(row) - 1 and number > 0
    return False


def _item(
    sql: str,
    item: Sequence[Lexeme],
    session: Session,
    parameters: Mapping[str, object] | None,
    place: Place,
    functions: Mapping[str, UserFunction],
) -> Item:
    first = item[0]
    if len(item) == 1:
        if first.kind == "string":
            return Literal(first.text, STRING)
        if first.kind == "number":
            return literals.number(first.text)
        if first.kind == "word":
            if first.text.upper() == "DEFAULT":
                return Default()
            if first.text.upper() in _CONSTANTS:
                return _CONSTANTS[first.text.upper()]
    if len(item) == 2 and first.is_word("-") and item[1].kind == "number":
        return literals.number(f"-{item[1].text}")
    text = sql[first.start : item[-1].stop]
    at = Place(place.text, place.offset + first.start)
    return plan_expression(text, Schema(()), session, parameters=parameters, place=at, functions=functions)
