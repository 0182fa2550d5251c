"""The one door to typed expressions: from a function's name and arguments to a coerced, typed, portable call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewkeeper.errors import SqlError
from viewkeeper.expressions import (
    arithmetic,
    calendar_text,
    calendar_units,
    collection_search,
    collections,
    comparison,
    dates,
    encodings,
    logic,
    mathematics,
    regular_expressions,
    rows,
    strings,
    time_windows,
    user_calls,
)
from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.errors import NotPortable
from viewkeeper.expressions.function import FUNCTIONS, RULES, Rule
from viewkeeper.expressions.tree import Expression, Scalar, Session

__all__ = ["FAMILIES", "NONDETERMINISTIC", "NotPortable", "cast", "portable_functions", "resolve"]

FAMILIES = (
    comparison, logic, arithmetic, mathematics, strings, encodings, dates, calendar_text, calendar_units, collections,
    collection_search, regular_expressions, rows, time_windows, user_calls,
)  # fmt: skip
"""The modules whose import registers functions, one family each."""

_ALIASES = {
    "equal": "eq", "not_equal": "ne", "=": "eq", "==": "eq", "<>": "ne", "!=": "ne", "<": "lt", "<=": "le",
    ">": "gt", ">=": "ge", "<=>": "eq_null_safe", "!": "not", "+": "add", "-": "subtract", "*": "multiply",
    "/": "divide", "%": "mod", "div": "integral_divide", "negative": "negate", "isnull": "is_null",
    "isnotnull": "is_not_null", "equal_null": "eq_null_safe", "||": "concat",
}  # fmt: skip

_WRITE_A_COLUMN = "a column that the writer fills"
_PASS_A_VALUE = "a constant, or a column of the base table that holds the moment"
NONDETERMINISTIC: dict[str, str] = {
    "current_date": _PASS_A_VALUE, "curdate": _PASS_A_VALUE, "current_timestamp": _PASS_A_VALUE, "now": _PASS_A_VALUE,
    "localtimestamp": _PASS_A_VALUE, "current_time": _PASS_A_VALUE, "localtime": _PASS_A_VALUE,
    "rand": _WRITE_A_COLUMN, "random": _WRITE_A_COLUMN, "randn": _WRITE_A_COLUMN, "randstr": _WRITE_A_COLUMN,
    "uniform": _WRITE_A_COLUMN, "shuffle": _WRITE_A_COLUMN, "uuid": _WRITE_A_COLUMN,
    "monotonically_increasing_id": "the primary key of the base table", "spark_partition_id": "hash of the key",
    "input_file_name": _WRITE_A_COLUMN, "input_file_block_start": _WRITE_A_COLUMN,
    "input_file_block_length": _WRITE_A_COLUMN, "current_user": _WRITE_A_COLUMN, "user": _WRITE_A_COLUMN,
    "session_user": _WRITE_A_COLUMN, "current_database": "a constant", "current_schema": "a constant",
    "current_catalog": "a constant", "current_path": "a constant", "version": "a constant",
    "java_method": _WRITE_A_COLUMN, "reflect": _WRITE_A_COLUMN, "try_reflect": _WRITE_A_COLUMN,
}  # fmt: skip
"""Functions whose value is not fixed by the row, each with what to use instead.

``unix_timestamp()`` belongs here only without arguments: see :func:`is_deterministic`.
"""


def is_deterministic(function: str, argument_count: int) -> bool:
    """Return whether the value of ``function`` is fixed by its arguments."""
    name = function.lower()
    if name == "unix_timestamp":
        return argument_count > 0
    return name not in NONDETERMINISTIC


def portable_functions() -> tuple[str, ...]:
    """Return the names that :func:`resolve` knows, sorted."""
    return tuple(sorted(name for name in RULES if not name.endswith("_temporal")))


def resolve(
    function: str, arguments: Sequence[Expression], session: Session, options: Mapping[str, Scalar] | None = None
) -> Expression:
    """Return the typed call of ``function``, with Spark's implicit casts made explicit.

    Args:
        function: the name, in any case (``add``, ``upper``, ``case`` ...); operators by sign too (``+``, ``<=>``).
        arguments: typed expressions.
        session: ANSI mode and time zone.
        options: constants of the call: ``escape`` (LIKE).

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` where Spark would refuse the types.
        NotPortable: for an unknown function, or types for which only Spark is proven right.

    Example:
        >>> from viewkeeper.expressions.tree import ColumnRef
        >>> from viewkeeper.zset.schema import BIGINT, INT
        >>> call = resolve("add", [ColumnRef(0, INT), ColumnRef(1, BIGINT)], Session())
        >>> str(call.type), call.arguments[0].function
        ('bigint', 'cast')
    """
    name = _ALIASES.get(function.lower(), function.lower())
    rule = RULES.get(name)
    if rule is None or name.endswith("_temporal"):
        raise NotPortable(function, "no portable form")
    if any(argument.type.name.startswith("INTERVAL") for argument in arguments):
        return _resolve_intervals(rule, name, tuple(arguments), session, options or {})
    if session.ansi:
        return rule(name, tuple(arguments), session, options or {})
    return _resolve_legacy(rule, name, tuple(arguments), session, options or {})


def _resolve_intervals(
    rule: Rule, name: str, arguments: tuple[Expression, ...], session: Session, options: Mapping[str, Scalar]
) -> Expression:
    """Resolve a call on intervals, of which the portable set knows little: what it refuses is for Spark to judge."""
    try:
        return rule(name, arguments, session, options)
    except SqlError as error:
        raise NotPortable(name, f"on intervals: {error.message}") from None


def _resolve_legacy(
    rule: Rule, name: str, arguments: tuple[Expression, ...], session: Session, options: Mapping[str, Scalar]
) -> Expression:
    """Resolve outside ANSI mode, where Spark converts more, and otherwise: what is not plain is left to it."""
    types = [argument.type for argument in arguments]
    if any(t.name == "FLOAT" for t in types) and any(t.is_integer for t in types):
        raise NotPortable(name, "FLOAT beside an integer outside ANSI mode")
    try:
        return rule(name, arguments, session, options)
    except SqlError as error:
        raise NotPortable(name, f"outside ANSI mode: {error.message}") from None


def kernel_names() -> tuple[str, ...]:
    """Return the names of all portable forms: what ``Call.function`` can be."""
    return tuple(sorted(FUNCTIONS))
