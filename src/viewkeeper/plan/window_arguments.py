"""Arguments of ``window()`` and ``session_window()``: the time, and durations as Spark reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions import literals
from viewkeeper.expressions.gregorian import MICROSECONDS_A_DAY
from viewkeeper.expressions.time_windows import window_type
from viewkeeper.expressions.tree import Expression, Literal
from viewkeeper.plan.binding import bind
from viewkeeper.plan.context import Context
from viewkeeper.plan.scopes import Scope
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types

_MOMENTS = (types.TIMESTAMP, types.TIMESTAMP_NTZ)
_CONVERTED = ("STRING", "DATE", "VOID")
_UNIT = r"(year|month|week|day|hour|minute|second|millisecond|microsecond)s?"
_PART = re.compile(rf"([+-]?)\s*(\d+(?:\.\d{{0,9}})?|\.\d{{1,9}})\s+{_UNIT}(?:\s+|\Z)", re.IGNORECASE | re.ASCII)
_PREFIX = re.compile(r"interval\s+", re.IGNORECASE)
_LARGEST = 2**63 - 1


def with_aliases(tree: exp.Expr, aliases: Mapping[str, exp.Expr], scope: Scope) -> exp.Expr:
    """Return a tree as parsed with what aliases of the SELECT list stand for, where no column is called so.

    Args:
        tree: an argument, or an item of GROUP BY.
        aliases: the SELECT list's, in lower case, as parsed.
        scope: the columns.
    """

    def replacement(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or len(node.parts) > 1 or scope.find(node) is not None:
            return node
        alias = aliases.get(node.name.lower())
        return node if alias is None else exp.Paren(this=alias.copy())

    return tree.transform(replacement)


def microseconds_of(tree: exp.Expr, call: exp.Anonymous, scope: Scope) -> int:
    """Return a duration in microseconds: a text, or a number of them.

    Args:
        tree: the argument.
        call: the call.
        scope: what names mean.

    Raises:
        SqlError: ``CANNOT_PARSE_INTERVAL``; ``DATATYPE_MISMATCH`` for what is no constant, or counted in months.
    """
    context = scope.context
    found = Translator(scope.schema, context).expression(bind(tree, scope, aggregates="window()"))
    if isinstance(found, Literal) and isinstance(found.value, int) and found.type.name in ("INT", "BIGINT"):
        return found.value
    if not isinstance(found, Literal) or not isinstance(found.value, str):
        message = "The durations of window() are constants: a text such as '1 hour 30 minutes', or microseconds."
        raise context.error("DATATYPE_MISMATCH", message, tree if not isinstance(tree, exp.Literal) else call)
    months, microseconds = _read(found.value, call, context)
    if months:
        message = f"'{found.value}' is counted in months, which are not equally long: windows take weeks and less."
        raise context.error("DATATYPE_MISMATCH", message, call)
    return microseconds


def gap_of(tree: exp.Expr, call: exp.Anonymous, scope: Scope) -> int | None:
    """Return the gap between two sessions in microseconds; None where it is another than part of a day.

    Args:
        tree: the argument.
        call: the call.
        scope: what names mean.

    Raises:
        SqlError: ``CANNOT_PARSE_INTERVAL``; ``DATATYPE_MISMATCH`` for a number.
    """
    context = scope.context
    found = Translator(scope.schema, context).expression(bind(tree, scope, aggregates="session_window()"))
    if found.type != types.STRING:
        message = f"The gap of session_window() is a text such as '30 minutes', not {str(found.type).upper()}."
        raise context.error("DATATYPE_MISMATCH", message, call)
    if not isinstance(found, Literal) or not isinstance(found.value, str):
        return None
    months, microseconds = _read(found.value, call, context)
    return None if months or abs(microseconds) >= MICROSECONDS_A_DAY else microseconds


def _read(text: str, call: exp.Anonymous, context: Context) -> tuple[int, int]:
    duration = parsed_duration(text)
    if duration is None:
        message = f"'{text}' is no duration: write numbers and units, weeks to microseconds, as in '1 hour 30 minutes'."
        raise context.error("CANNOT_PARSE_INTERVAL", message, call)
    return duration


def parsed_duration(text: str) -> tuple[int, int] | None:
    """Return the months and the microseconds of a duration, None where it is none.

    Example:
        >>> parsed_duration("interval 1 hour -30.5 seconds"), parsed_duration("5 min")
        ((0, 3569500000), None)
    """
    rest = text.strip()
    rest = _PREFIX.sub("", rest, count=1) if _PREFIX.match(rest) else rest
    months = microseconds = 0
    if not rest:
        return None
    while rest:
        match = _PART.match(rest)
        if match is None:
            return None
        sign, number, unit = match.groups()
        try:
            part = literals.interval(f"0{number}", unit, negative=sign == "-")
        except SqlError:
            return None
        assert isinstance(part.value, int)
        if part.type == types.INTERVAL_YEAR_MONTH:
            months += part.value
        else:
            microseconds += part.value
        rest = rest[match.end() :]
    return (months, microseconds) if abs(microseconds) <= _LARGEST else None


def moment_of(tree: exp.Expr, call: exp.Anonymous, scope: Scope) -> Expression:
    """Return the time of a call, as a TIMESTAMP or a TIMESTAMP_NTZ.

    Args:
        tree: the argument, bound.
        call: the call.
        scope: what names mean.

    Raises:
        SqlError: ``DATATYPE_MISMATCH``.
    """
    translator = Translator(scope.schema, scope.context)
    moment = translator.expression(tree)
    if moment.type in [window_type(kind) for kind in _MOMENTS]:
        of_window = exp.Anonymous(this="window_time", expressions=[tree])
        moment = translator.expression(bind(of_window, scope))
    if moment.type.name in _CONVERTED:
        return translator.cast(call, moment, types.TIMESTAMP)
    if moment.type not in _MOMENTS:
        message = (
            f"The time of {call.name.lower()}() is a TIMESTAMP or a window, not {str(moment.type).upper()}: cast it."
        )
        raise scope.context.error("DATATYPE_MISMATCH", message, call)
    return moment
