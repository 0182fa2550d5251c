"""The typed expression tree: frozen, picklable, already resolved and coerced.

Plans hold these trees; ``evaluate.py`` computes them on Arrow batches; no names are looked up any more: a column is a
position. Whatever Spark would cast implicitly stands in the tree as an explicit ``cast`` call.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from viewkeeper.zset.schema import SqlType

Scalar: TypeAlias = bool | int | float | str | bytes | Decimal | tuple[object, ...] | None


@dataclass(frozen=True)
class ColumnRef:
    """The value of the input column at ``index``."""

    index: int
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class Literal:
    """A constant.

    Args:
        value: DATE as days, TIMESTAMP and TIMESTAMP_NTZ as microseconds since 1970, intervals as microseconds or
            months, others as their Python values.
        type: its type; VOID for a bare NULL.
    """

    value: Scalar
    type: SqlType

    @property
    def nullable(self) -> bool:
        """Whether the constant is NULL."""
        return self.value is None


@dataclass(frozen=True)
class Call:
    """A function of the registry applied to arguments of exactly the types that it declared.

    Args:
        function: the registry's name, for example ``add``, ``cast``, ``case``, ``upper``.
        arguments: the arguments, coerced.
        type: the result type.
        nullable: whether Spark calls the result nullable.
        options: constants that belong to the call (``ansi`` flag, time zone, format, ...), as sorted pairs.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    nullable: bool = True
    options: tuple[tuple[str, Scalar], ...] = ()

    def option(self, name: str) -> Scalar:
        """Return the option ``name``, None where it was not given."""
        return dict(self.options).get(name)


@dataclass(frozen=True)
class SparkExpression:
    """An expression outside the portable set: Spark's analyzer typed it and Catalyst evaluates it.

    Args:
        sql: Spark SQL over columns written as `` `_c0` ``, `` `_c1` ``, ...: the input columns by position.
        inputs: the positions of the input columns that occur in ``sql``.
        type: the result type, as Spark's analyzer gave it.
        nullable: whether Spark calls the result nullable.
        calls: calls of users' functions in it, which we compute first, under the names that ``sql`` has for them.
    """

    sql: str
    inputs: tuple[int, ...]
    type: SqlType
    nullable: bool = True
    calls: tuple[tuple[str, Expression], ...] = ()


Expression: TypeAlias = ColumnRef | Literal | Call | SparkExpression


@dataclass(frozen=True)
class Session:
    """What a view keeps of the session that created it.

    Args:
        time_zone: IANA name by which TIMESTAMP values become dates and texts.
        ansi: whether overflow, bad casts and division by zero are errors.
    """

    time_zone: str = "UTC"
    ansi: bool = True


def columns_of(expression: Expression) -> frozenset[int]:
    """Return the positions of all input columns that ``expression`` reads."""
    if isinstance(expression, ColumnRef):
        return frozenset((expression.index,))
    if isinstance(expression, SparkExpression):
        return frozenset(expression.inputs).union(*(columns_of(call) for _, call in expression.calls))
    if isinstance(expression, Call):
        return frozenset().union(*map(columns_of, expression.arguments))
    return frozenset()


def is_portable(expression: Expression) -> bool:
    """Return whether ``expression`` needs no Spark."""
    if isinstance(expression, Call):
        return all(map(is_portable, expression.arguments))
    return not isinstance(expression, SparkExpression)


def shift_columns(expression: Expression, mapping: dict[int, int]) -> Expression:
    """Return ``expression`` with each column position replaced through ``mapping``."""
    if isinstance(expression, ColumnRef):
        return ColumnRef(mapping[expression.index], expression.type, expression.nullable)
    if isinstance(expression, Call):
        arguments = tuple(shift_columns(a, mapping) for a in expression.arguments)
        return Call(expression.function, arguments, expression.type, expression.nullable, expression.options)
    if isinstance(expression, SparkExpression):
        sql = expression.sql
        for old in sorted(expression.inputs, reverse=True):
            sql = sql.replace(f"`_c{old}`", f"`_c\0{mapping[old]}`")
        inputs = tuple(mapping[i] for i in expression.inputs)
        calls = tuple((name, shift_columns(call, mapping)) for name, call in expression.calls)
        return SparkExpression(sql.replace("\0", ""), inputs, expression.type, expression.nullable, calls)
    return expression
