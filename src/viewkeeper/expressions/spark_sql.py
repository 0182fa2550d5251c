"""Typed trees back to Spark SQL, for recomputation by Spark: every implicit cast stands in the text.

Columns are written as SparkExpression writes them: `` `_c0` ``, `` `_c1` ``, ... by position. Constants that could be
misread (texts, extreme numbers, moments) are written as casts and calls of what cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from viewkeeper.expressions.rows import FREQUENCY_MAX
from viewkeeper.expressions.time_windows import BETWEEN, WINDOW, WINDOWS, spec_of
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, SparkExpression
from viewkeeper.expressions.user_calls import CALL, CAPTURE, CAPTURED, function_of
from viewkeeper.zset.schema import SqlType

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "mod": "%", "integral_divide": "div", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq_null_safe": "<=>", "and": "AND", "or": "OR",
    "bitand": "&", "bitor": "|", "bitxor": "^", "subtract_timestamps": "-",
}  # fmt: skip
_PREFIX = {"not": "NOT", "negate": "-", "bitnot": "~"}
_TRIMS = ("trim", "ltrim", "rtrim")
_MICROSECONDS_A_DAY = 86_400_000_000
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_DAY_NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


def spark_sql(expression: Expression) -> str:
    """Return ``expression`` as Spark SQL that means the same under the session that it was resolved in.

    Args:
        expression: any tree of the registry.

    Example:
        >>> from viewkeeper.expressions.registry import resolve
        >>> from viewkeeper.expressions.tree import Session
        >>> from viewkeeper.zset.schema import BIGINT, INT
        >>> spark_sql(resolve("+", [ColumnRef(0, INT), Literal(1, BIGINT)], Session()))
        "(CAST(`_c0` AS bigint) + CAST('1' AS bigint))"
    """
    if isinstance(expression, ColumnRef):
        return column_name(expression.index)
    if isinstance(expression, SparkExpression):
        return f"({with_calls(expression.sql, {name: spark_sql(call) for name, call in expression.calls})})"
    if isinstance(expression, Literal):
        return _constant(expression)
    arguments = [spark_sql(argument) for argument in expression.arguments]
    form = _FORMS.get(expression.function)
    return form(expression, arguments) if form is not None else _plain(expression, arguments)


def type_text(sql_type: SqlType) -> str:
    """Return the type in Spark SQL; the names of fields stay as they are.

    Example:
        >>> from viewkeeper.zset.schema import INT, array, struct
        >>> type_text(array(struct(a=INT)))
        'array<struct<`a`:int>>'
    """
    children = [type_text(child) for child in sql_type.children]
    if sql_type.name == "STRUCT":
        names = (name.replace("`", "``") for name in sql_type.field_names)
        children = [f"`{name}`:{child}" for name, child in zip(names, children, strict=True)]
    return f"{sql_type.name.lower()}<{','.join(children)}>" if children else str(sql_type)


def with_calls(sql: str, calls: Mapping[str, str]) -> str:
    """Return Spark SQL with what users' functions compute in place of their names in it."""
    for name, text in calls.items():
        sql = sql.replace(f"`{name}`", text)
    return sql


def uncaptured(structure: str) -> str:
    """Return what a captured value holds, as SQL that fails where it could not be computed."""
    return f"IF({structure} IS NULL, raise_error('EXPRESSION_FAILED'), {structure}.value)"


def column_name(index: int) -> str:
    """Return how the column at ``index`` is written."""
    return f"`_c{index}`"


def cast_sql(text: str, sql_type: SqlType) -> str:
    """Return ``text`` cast to ``sql_type``."""
    return f"CAST({text} AS {sql_type})"


def _constant(literal: Literal) -> str:
    value, name = literal.value, literal.type.name
    if value is None:
        return "NULL" if name == "VOID" else cast_sql("NULL", literal.type)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | bytes):
        binary = f"X'{(value.encode() if isinstance(value, str) else value).hex()}'"
        return cast_sql(binary, literal.type) if isinstance(value, str) else binary
    if value == ():
        return cast_sql("array()", literal.type)
    if name == "DATE":
        return f"date_from_unix_date({cast_sql(repr(str(value)), SqlType('INT'))})"
    if name == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if name == "TIMESTAMP_NTZ":
        return f"({_EPOCH} + {_duration(value)})"
    if name == "INTERVAL_DAY_TIME":
        return _duration(value)
    if name == "INTERVAL_YEAR_MONTH":
        return f"make_ym_interval(0, {value})"
    return cast_sql(f"'{value:f}'" if isinstance(value, Decimal) else f"'{value}'", literal.type)


def _duration(microseconds: object) -> str:
    return f"make_dt_interval(0, 0, 0, CAST({microseconds} AS DECIMAL(38,0)) / 1000000BD)"


def _plain(call: Call, arguments: list[str]) -> str:
    """Return operators by their signs, everything else as a call of the registry's name, which is Spark's."""
    name = call.function
    if call.option("safe") and name != "cast":
        return f"try_{name}({', '.join(arguments)})"
    if name in _INFIX:
        return f"({arguments[0]} {_INFIX[name]} {arguments[1]})"
    if name in _PREFIX:
        return f"({_PREFIX[name]} {arguments[0]})"
    if name in _TRIMS:
        # Spark's call takes what to trim first.
        return f"{name}({arguments[1]}, {arguments[0]})"
    return f"{name}({', '.join(arguments)})"


def _cast(call: Call, arguments: list[str]) -> str:
    return f"{'TRY_CAST' if call.option('safe') else 'CAST'}({arguments[0]} AS {call.type})"


def _case(call: Call, arguments: list[str]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {c} THEN {v}' for c, v in pairs)} ELSE {arguments[-1]} END"


def _like(call: Call, arguments: list[str]) -> str:
    escape = str(call.option("escape"))
    if escape == "\\":
        return f"({arguments[0]} LIKE {arguments[1]})"
    quoted = "\\'" if escape == "'" else escape
    return f"({arguments[0]} LIKE {arguments[1]} ESCAPE '{quoted}')"


def _plus_days(call: Call, arguments: list[str]) -> str:
    interval = call.arguments[1]
    if not isinstance(interval, Literal):
        raise AssertionError("intervals of whole days are constants")
    days = "NULL" if interval.value is None else str(int(str(interval.value)) // _MICROSECONDS_A_DAY)
    return f"{'date_sub' if call.option('minus') else 'date_add'}({arguments[0]}, CAST({days} AS INT))"


def _plus_interval(call: Call, arguments: list[str]) -> str:
    return f"({arguments[0]} {'-' if call.option('minus') else '+'} {arguments[1]})"


def _option(call: Call, name: str) -> str:
    return str(call.option(name))


def _with_zone(call: Call, arguments: list[str]) -> str:
    return f"{call.function}({arguments[0]}, '{_option(call, 'time_zone')}')"


def _with_unit(call: Call, arguments: list[str]) -> str:
    return f"{call.function}({_option(call, 'unit')}, {', '.join(arguments)})"


def _frequency(call: Call, arguments: list[str]) -> str:
    value, times = arguments
    out_of_range = f"{times} NOT BETWEEN 0 AND {FREQUENCY_MAX}"
    return f"IF({value} IS NOT NULL, IF({out_of_range}, raise_error('frequency'), nullif({times}, 0)), NULL)"


def _window(call: Call, arguments: list[str]) -> str:
    moment = call.arguments[0].type
    made = _named_window(_latest(call, _microseconds(arguments[0], moment)), moment, spec_of(call).size)
    return f"IF({arguments[0]} IS NULL, NULL, {made})"


def _windows(call: Call, arguments: list[str]) -> str:
    spec, moment = spec_of(call), call.arguments[0].type
    counted = _microseconds(arguments[0], moment)
    holds = f"w * {spec.slide}L + {counted} - {_latest(call, counted)} < {spec.size}L"
    made = _named_window(f"({_latest(call, counted)} - w * {spec.slide}L)", moment, spec.size)
    numbers = f"filter(sequence(0L, {spec.overlapping - 1}L), w -> {holds})"
    return f"IF({arguments[0]} IS NULL, NULL, transform({numbers}, w -> {made}))"


def _latest(call: Call, microseconds: str) -> str:
    """Return the start of the latest window that holds a moment."""
    spec = spec_of(call)
    return f"({microseconds} - pmod(pmod({microseconds}, {spec.slide}L) - {spec.offset % spec.slide}L, {spec.slide}L))"


def _microseconds(moment: str, sql_type: SqlType) -> str:
    if sql_type.name == "TIMESTAMP":
        return f"unix_micros({moment})"
    seconds = f"CAST(CAST(({moment} - {_EPOCH}) AS INTERVAL SECOND) AS DECIMAL(20,6))"
    return f"CAST({seconds} * 1000000 AS BIGINT)"


def _named_window(start: str, moment: SqlType, size: int) -> str:
    ends = [f"timestamp_micros({at})" for at in (start, f"{start} + {size}L")]
    if moment.name != "TIMESTAMP":
        ends = [f"({_EPOCH} + {_duration(at)})" for at in (start, f"({start} + {size}L)")]
    return f"named_struct('start', {ends[0]}, 'end', {ends[1]})"


def _field_name(call: Call) -> str:
    number = call.option("number")
    assert isinstance(number, int)
    name = call.arguments[0].type.field_names[number]
    return f"`{name.replace('`', '``')}`"


_FORMS: Mapping[str, Callable[[Call, list[str]], str]] = {
    "cast": _cast,
    "case": _case,
    "like": _like,
    "in": lambda call, arguments: f"({arguments[0]} IN ({', '.join(arguments[1:])}))",
    "is_null": lambda call, arguments: f"({arguments[0]} IS NULL)",
    "is_not_null": lambda call, arguments: f"({arguments[0]} IS NOT NULL)",
    "round": lambda call, arguments: f"round({arguments[0]}, {_option(call, 'scale')})",
    "bround": lambda call, arguments: f"bround({arguments[0]}, {_option(call, 'scale')})",
    "trunc": lambda call, arguments: f"trunc({arguments[0]}, '{_option(call, 'unit')}')",
    "date_trunc": lambda call, arguments: f"date_trunc('{_option(call, 'unit')}', {arguments[0]})",
    "date_format": lambda call, arguments: f"date_format({arguments[0]}, '{_option(call, 'pattern')}')",
    "next_day": lambda call, arguments: f"next_day({arguments[0]}, '{_DAY_NAMES[int(_option(call, 'day'))]}')",
    "months_between": lambda call, arguments: f"months_between({', '.join(arguments)}, {_option(call, 'rounds')})",
    "second_with_fraction": lambda call, arguments: f"extract(SECOND FROM {arguments[0]})",
    "timestampadd": _with_unit,
    "timestampdiff": _with_unit,
    "get": lambda call, arguments: f"get({arguments[0]}, {arguments[1]} - {_option(call, 'first')})",
    "date_plus_days": _plus_days,
    "plus_duration": _plus_interval,
    "plus_months": _plus_interval,
    "element": lambda call, arguments: f"{arguments[0]}[{arguments[1]}]",
    "field": lambda call, arguments: f"{arguments[0]}.{_field_name(call)}",
    "from_utc_timestamp": _with_zone,
    "to_utc_timestamp": _with_zone,
    # Spark knows a user's function as one that captures its result.
    CALL: lambda call, arguments: uncaptured(f"{function_of(call).spark_name}({', '.join(arguments)})"),
    CAPTURE: lambda call, arguments: f"named_struct('value', {arguments[0]})",
    CAPTURED: lambda call, arguments: uncaptured(arguments[0]),
    "only_row": lambda call, arguments: f"IF({arguments[1]} > 1, raise_error('more than one row'), {arguments[0]})",
    "frequency": _frequency,
    WINDOW: _window,
    WINDOWS: _windows,
    BETWEEN: lambda call, arguments: f"named_struct('start', {arguments[0]}, 'end', {arguments[1]})",
}
