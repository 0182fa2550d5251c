"""The implicit casts that type rules apply to arguments.

Source: Spark 4.3, ``AnsiTypeCoercion.implicitCast``, ``Cast.canANSIStoreAssign``. Outside ANSI mode Spark converts
strings by older rules; those combinations are left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.coercion import common_type, decimal_of, fold, without_strings
from viewkeeper.expressions.errors import NotPortable, mismatch
from viewkeeper.expressions.tree import Expression, Literal, Session
from viewkeeper.zset.schema import BOOLEAN, STRING, VOID, SqlType, decimal

_DATETIME = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_DEFAULT_DECIMAL = decimal(38, 18)
ANY_DECIMAL = SqlType("DECIMAL")


def types_of(arguments: Sequence[Expression]) -> list[SqlType]:
    """Return the types of ``arguments``."""
    return [argument.type for argument in arguments]


def check_count(function: str, arguments: Sequence[Expression], least: int, most: int | None = None) -> None:
    """Refuse a wrong number of arguments.

    Raises:
        SqlError: ``DATATYPE_MISMATCH``.
    """
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        raise mismatch(function, types_of(arguments), f"it takes {wanted} argument{'' if wanted == '1' else 's'}")


def _assignable(source: SqlType, target: SqlType) -> bool:
    if source.is_numeric and target.is_numeric:
        return True
    if target == STRING:
        return not source.is_nested
    return source.name in _DATETIME and target.name in _DATETIME


def _target(source: SqlType, wanted: SqlType, session: Session, function: str) -> SqlType | None:
    if source == wanted or (wanted == ANY_DECIMAL and source.name == "DECIMAL"):
        return source
    concrete = _DEFAULT_DECIMAL if wanted == ANY_DECIMAL else wanted
    if source == VOID:
        return concrete
    if wanted == ANY_DECIMAL and source.is_integer:
        return decimal_of(source)
    if source == STRING or (wanted == STRING and not session.ansi):
        if not session.ansi:
            raise NotPortable(function, f"implicit cast of {source} to {concrete} outside ANSI mode")
        return concrete if not concrete.is_nested else None
    return concrete if _assignable(source, concrete) else None


def accept(function: str, argument: Expression, session: Session, *wanted: SqlType) -> Expression:
    """Return ``argument`` as the first of the ``wanted`` types that Spark converts it to.

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` where it converts to none.
    """
    if argument.type in wanted or (ANY_DECIMAL in wanted and argument.type.name == "DECIMAL"):
        return argument
    for candidate in wanted:
        target = _target(argument.type, candidate, session, function)
        if target is not None:
            return cast(argument, target, session)
    names = " or ".join(w.name for w in wanted)
    raise mismatch(function, [argument.type], f"it takes {names}")


def unify(
    function: str, arguments: Sequence[Expression], session: Session, strings: bool = True
) -> tuple[Expression, ...]:
    """Return ``arguments`` cast to their common type.

    Args:
        function: the function's name, for messages.
        arguments: at least one.
        session: ANSI mode and time zone.
        strings: whether strings are promoted to the type beside them.

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` where they have none.
    """
    types = types_of(arguments)
    found = common_type(types, session) if strings else fold(types, without_strings)
    if found is None:
        if not session.ansi and STRING in types:
            raise NotPortable(function, "strings beside other types outside ANSI mode")
        raise mismatch(function, types, "the arguments have no common type")
    return tuple(cast(argument, found, session) for argument in arguments)


def as_condition(function: str, argument: Expression) -> Expression:
    """Return ``argument`` as a condition: only BOOLEAN, or a bare NULL.

    Raises:
        SqlError: ``DATATYPE_MISMATCH`` for other types.
    """
    if argument.type == VOID:
        return Literal(None, BOOLEAN)
    if argument.type != BOOLEAN:
        raise mismatch(function, [argument.type], "a condition must be BOOLEAN")
    return argument
