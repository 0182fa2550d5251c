"""Aggregate calls: what stands in SQL → one normal form with Spark's types, coercions and constants.

Several of Spark's functions are others under another name: ``every`` is ``bool_and``, ``array_agg`` is
``collect_list``, ``median(x)`` is ``percentile(x, 0.5)``, ``count_if(c)`` is ``count(nullif(c, false))``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.spark_sql import spark_sql
from viewkeeper.expressions.tree import Call, Expression, Literal, Scalar, SparkExpression, columns_of, is_portable
from viewkeeper.expressions.user_calls import functions_in
from viewkeeper.plan.aggregate_syntax import Syntax
from viewkeeper.plan.aggregate_types import avg_type, overflows, sum_type
from viewkeeper.plan.constants import constant
from viewkeeper.plan.context import Context
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import SqlType, array

_BY_MAX = 100_000
RESPECT_NULLS = "respect nulls"
"""The constant of a list that holds NULLs too."""
_NUMBERS, _TRUTHS, _INTEGERS, _ORDERED = "numbers", "BOOLEAN values", "integers", "values that can be ordered"
_AMOUNTS = "numbers or intervals"


@dataclass(frozen=True)
class SortItem:
    """One item of WITHIN GROUP (ORDER BY …)."""

    expression: Expression
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True)
class TypedCall:
    """One aggregate: ``AggregateCall`` over expressions instead of positions."""

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    nullable: bool = True
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    constants: tuple[Scalar, ...] = ()
    filter: Expression | None = None
    name: str = field(default="", compare=False)


class Calls:
    """Types aggregate calls over one node.

    Args:
        translator: for their arguments.
        context: the statement.
    """

    def __init__(self, translator: Translator, context: Context) -> None:
        self.translator = translator
        self.context = context

    def typed(self, syntax: Syntax) -> TypedCall:
        """Return the call that ``syntax`` stands for, without its filter.

        Raises:
            SqlError: wrong arguments, types or clauses, at their place.
            UnsupportedSql: ``AGGREGATE_NOT_YET``.
        """
        rule = _RULES[syntax.name]
        if syntax.order and syntax.name not in _WITHIN_GROUP:
            message = f"{syntax.name}() does not take WITHIN GROUP (ORDER BY …): leave it out."
            raise self.context.error("INVALID_SQL_SYNTAX", message, syntax.tree)
        if syntax.ignore_nulls and syntax.name not in _IGNORES_NULLS:
            message = f"{syntax.name}() does not take IGNORE NULLS: leave it out."
            raise self.context.error("INVALID_SQL_SYNTAX", message, syntax.tree)
        return rule(self, syntax)

    def not_yet(self, syntax: Syntax, so: str, instead: str) -> Exception:
        """Return the refusal of a call that Spark has, and what to write in place of it."""
        return self.context.refusal("AGGREGATE_NOT_YET", syntax.tree, f"{syntax.name}() {so}", instead)

    # ---- arguments ----

    def expect(self, syntax: Syntax, least: int, most: int) -> None:
        """Raise unless there are ``least`` to ``most`` arguments."""
        if not least <= len(syntax.arguments) <= most or any(isinstance(a, exp.Star) for a in syntax.arguments):
            wanted = {1: "one argument", 2: "two arguments"}.get(most, f"{least} to {most} arguments")
            message = f"{syntax.name}() takes {wanted}, not {len(syntax.arguments)}."
            raise self.context.error("WRONG_NUM_ARGS", message, syntax.tree)

    def value(self, syntax: Syntax, tree: exp.Expr, wanted: str = "") -> Expression:
        """Return an argument; numbers are made of texts, as Spark does, all other types must be as ``wanted``."""
        value = self.translator.expression(tree)
        if wanted in (_NUMBERS, _AMOUNTS) and value.type in (types.STRING, types.VOID):
            return self.translator.cast(tree, value, types.DOUBLE)
        if wanted == _TRUTHS and value.type == types.VOID:
            return Literal(None, types.BOOLEAN)
        if wanted == _INTEGERS and value.type == types.VOID:
            return Literal(None, types.INT)
        right = {
            "": True,
            _NUMBERS: value.type.is_numeric,
            _AMOUNTS: value.type.is_numeric or value.type.name.startswith("INTERVAL"),
            _TRUTHS: value.type == types.BOOLEAN,
            _INTEGERS: value.type.is_integer,
            _ORDERED: not value.type.contains_map,
        }
        if not right[wanted]:
            message = f"{syntax.name}() takes {wanted}, not {str(value.type).upper()}."
            raise self.context.error("DATATYPE_MISMATCH", message, tree)
        return value

    def double(self, syntax: Syntax, tree: exp.Expr) -> Expression:
        """Return a numeric argument as a DOUBLE."""
        return self.translator.cast(tree, self.value(syntax, tree, _NUMBERS), types.DOUBLE)

    def constant(self, syntax: Syntax, tree: exp.Expr, target: SqlType, what: str) -> Scalar:
        """Return the value of a constant argument."""
        expression = self.translator.cast(tree, self.translator.expression(tree), target)
        found, value = constant(expression, self.context.session)
        if not found:
            message = f"The {what} of {syntax.name}() must be a constant."
            raise self.context.error("DATATYPE_MISMATCH", message, tree)
        return value

    def without_distinct(self, syntax: Syntax) -> None:
        """Raise where a function cannot be DISTINCT."""
        if syntax.distinct:
            message = f"{syntax.name}() does not take DISTINCT: leave it out."
            raise self.context.error("INVALID_WITHIN_GROUP_EXPRESSION", message, syntax.tree)


_Rule = Callable[[Calls, Syntax], TypedCall]


def _count(calls: Calls, syntax: Syntax) -> TypedCall:
    if not syntax.arguments:
        raise calls.context.error("WRONG_NUM_ARGS", "count() needs an argument, or * for all rows.", syntax.tree)
    every_row = TypedCall("count_star", (), types.BIGINT, False)
    if len(syntax.arguments) == 1 and isinstance(syntax.arguments[0], exp.Star):
        if syntax.distinct:
            raise calls.not_yet(syntax, "of DISTINCT *", "Name the columns: COUNT(DISTINCT a, b).")
        return every_row
    values = tuple(calls.translator.expression(argument) for argument in syntax.arguments)
    if syntax.distinct:
        return _distinct_count(calls, syntax, values)
    if all(not value.nullable and not can_raise(value) for value in values):
        return every_row
    if len(values) == 1:
        return TypedCall("count", values, types.BIGINT, False)
    present = [exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null())) for argument in syntax.arguments]
    branch = exp.If(this=exp.and_(*present, copy=False), true=exp.Literal.number("1"))
    return TypedCall("count", (calls.translator.expression(exp.Case(ifs=[branch])),), types.BIGINT, False)


def _distinct_count(calls: Calls, syntax: Syntax, values: Sequence[Expression]) -> TypedCall:
    for value, tree in zip(values, syntax.arguments, strict=False):
        if value.type.contains_map:
            raise calls.context.error(
                "DATATYPE_MISMATCH", "A MAP cannot be counted by DISTINCT: count map_entries(…).", tree
            )
    return TypedCall("count", tuple(dict.fromkeys(values)), types.BIGINT, False, distinct=True)


def _count_if(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 1, 1)
    value = calls.value(syntax, syntax.arguments[0], _TRUTHS)
    true = calls.translator.resolve(syntax.tree, "nullif", [value, Literal(False, types.BOOLEAN)])
    return TypedCall("count", (true,), types.BIGINT, False, syntax.distinct)


def _regr_count(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 2, 2)
    return replace(_count(calls, replace(syntax, distinct=False)), distinct=False)


def _approx_count_distinct(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 1, 2)
    if len(syntax.arguments) == 2:
        deviation = calls.constant(syntax, syntax.arguments[1], types.DOUBLE, "deviation")
        if not isinstance(deviation, float) or not 0 < deviation <= 0.39:
            message = "The deviation of approx_count_distinct() is more than 0 and at most 0.39: write such a number."
            raise calls.context.error("VALUE_OUT_OF_RANGE", message, syntax.arguments[1])
    return _distinct_count(calls, syntax, [calls.translator.expression(syntax.arguments[0])])


def _total(function: str, result: Callable[[SqlType], SqlType]) -> _Rule:
    """Return the rule of SUM or AVG; of one under TRY_ where it may overflow."""

    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 1, 1)
        value = calls.value(syntax, syntax.arguments[0], _AMOUNTS)
        if value.type == types.INTERVAL_YEAR_MONTH:
            raise calls.not_yet(syntax, "of INTERVAL YEAR TO MONTH", "Add up months as integers.")
        tolerant = syntax.name.startswith("try_") and overflows(function, value.type)
        called = f"try_{function}" if tolerant else function
        return TypedCall(called, (value,), result(value.type), distinct=syntax.distinct)

    return rule


def _of_one(function: str, wanted: str) -> _Rule:
    """Return the rule of a function of one argument, whose type it has, and to which DISTINCT makes no difference."""

    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 1, 1)
        value = calls.value(syntax, syntax.arguments[0], wanted)
        return TypedCall(function, (value,), value.type, distinct=syntax.distinct and function == "bit_xor")

    return rule


def _statistic(function: str, arguments: int) -> _Rule:
    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, arguments, arguments)
        values = tuple(calls.double(syntax, argument) for argument in syntax.arguments)
        return TypedCall(function, values, types.DOUBLE, distinct=syntax.distinct)

    return rule


def _regr_average(position: int) -> _Rule:
    """Return the rule of ``regr_avgy`` and ``regr_avgx``: the average of one argument where both are there."""

    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 2, 2)
        value, other = syntax.arguments[position], syntax.arguments[1 - position]
        present = exp.Not(this=exp.Is(this=other.copy(), expression=exp.Null()))
        chosen = exp.Case(ifs=[exp.If(this=present, true=value.copy())])
        return _total("avg", avg_type)(calls, replace(syntax, arguments=(chosen,)))

    return rule


def _by(function: str) -> _Rule:
    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 2, 3)
        value = calls.value(syntax, syntax.arguments[0])
        arguments = (value, calls.value(syntax, syntax.arguments[1], _ORDERED))
        if len(syntax.arguments) == 2:
            return TypedCall(function, arguments, value.type)
        if syntax.distinct:
            instead = "Leave DISTINCT out, or read from a subquery SELECT DISTINCT …."
            raise calls.not_yet(syntax, "of several DISTINCT values", instead)
        count = calls.constant(syntax, syntax.arguments[2], types.INT, "number of values")
        if not isinstance(count, int) or not 0 < count <= _BY_MAX:
            message = f"The number of values of {syntax.name}() is from 1 to {_BY_MAX}: write such a number."
            raise calls.context.error("VALUE_OUT_OF_RANGE", message, syntax.arguments[2])
        return TypedCall(function, arguments, array(value.type), constants=(count,))

    return rule


def _first(function: str) -> _Rule:
    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 1, 2)
        ignore = bool(syntax.ignore_nulls)
        if len(syntax.arguments) == 2:
            if not isinstance(syntax.arguments[1], exp.Boolean):
                message = f"The second argument of {syntax.name}() is TRUE or FALSE: whether NULL is passed over."
                raise calls.context.error("DATATYPE_MISMATCH", message, syntax.arguments[1])
            ignore = bool(syntax.arguments[1].this)
        value = calls.value(syntax, syntax.arguments[0])
        return TypedCall(function, (value,), value.type, constants=(ignore,))

    return rule


def _mode(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.without_distinct(syntax)
    calls.expect(syntax, 0, 0) if syntax.order else calls.expect(syntax, 1, 2)
    tree, last = (syntax.order[0].this, not syntax.ascending(0)) if syntax.order else (syntax.arguments[0], False)
    value = calls.translator.expression(tree)
    if value.type.contains_map:
        raise calls.not_yet(syntax, "of a MAP", "Take that of map_entries(…).")
    return TypedCall("mode", (value,), value.type, constants=(last,))


def _collect(distinct: bool) -> _Rule:
    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.expect(syntax, 1, 1)
        unique = distinct or syntax.distinct
        value = calls.value(syntax, syntax.arguments[0], _ORDERED if unique else "")
        constants = (RESPECT_NULLS,) if syntax.ignore_nulls is False else ()
        return TypedCall("collect_list", (value,), array(value.type), False, unique, constants=constants)

    return rule


def _listagg(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 1, 2)
    tree = syntax.arguments[0]
    value = calls.translator.expression(tree)
    target = types.BINARY if value.type == types.BINARY else types.STRING
    text = (
        value
        if value.type == target
        else calls.translator.expression(exp.cast(tree.copy(), str(target), dialect="spark"))
    )
    delimiter: Scalar = None
    if len(syntax.arguments) == 2:
        given = calls.translator.expression(syntax.arguments[1]).type
        if target == types.BINARY and given not in (types.BINARY, types.VOID):
            message = f"The values and the delimiter of {syntax.name}() are both STRING or both BINARY."
            raise calls.context.error("DATATYPE_MISMATCH", message, syntax.arguments[1])
        delimiter = calls.constant(syntax, syntax.arguments[1], target, "delimiter")
    order = tuple(
        SortItem(calls.value(syntax, item.this, _ORDERED), syntax.ascending(i), syntax.nulls_first(i))
        for i, item in enumerate(syntax.order)
    )
    if syntax.distinct and order:
        if len(order) > 1 or order[0].expression != value:
            message = "listagg(DISTINCT …) is ordered by its own argument: write that behind ORDER BY."
            raise calls.context.error("INVALID_WITHIN_GROUP_EXPRESSION", message, syntax.tree)
        if value.type != target:
            instead = f"Cast the argument to {target}, there and behind ORDER BY."
            raise calls.not_yet(syntax, f"of DISTINCT values of type {str(value.type).upper()} in their order", instead)
    empty: Scalar = b"" if target == types.BINARY else ""
    constants = (empty if delimiter is None else delimiter,)
    return TypedCall("listagg", (text,), target, True, syntax.distinct, order, constants)


def _median(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 1, 1)
    return _percentile_of(calls, syntax, syntax.arguments[0], exp.Literal.number("0.5"), "continuous", False)


def _percentile(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 2, 3)
    value, share = syntax.arguments[:2]
    call = _percentile_of(calls, syntax, value, share, "continuous", False)
    return call if len(syntax.arguments) == 2 else _with_frequency(calls, syntax, call)


def _with_frequency(calls: Calls, syntax: Syntax, call: TypedCall) -> TypedCall:
    tree = syntax.arguments[2]
    times = calls.translator.cast(tree, calls.value(syntax, tree, _INTEGERS), types.BIGINT)
    frequency = _composed(Call("frequency", (*call.arguments, times), types.BIGINT))
    if frequency is None:
        instead = "Compute it in a subquery in FROM, and read its column."
        raise calls.not_yet(syntax, "with a frequency by a function of yours", instead)
    return replace(call, arguments=(*call.arguments, frequency))


def guarded(call: TypedCall, condition: Expression) -> TypedCall:
    """Return ``call`` with arguments that cannot fail on rows which its FILTER leaves out; Spark does not compute them.

    Args:
        call: an aggregate; of DISTINCT ones Spark computes all arguments.
        condition: what stands in the FILTER.
    """
    if call.distinct:
        return call
    return replace(call, arguments=tuple(_guarded(argument, condition) for argument in call.arguments))


def _guarded(argument: Expression, condition: Expression) -> Expression:
    if not can_raise(argument) or argument.type.contains_map:
        return argument
    nothing = Literal(None, argument.type)
    return _composed(Call("case", (condition, argument, nothing), argument.type)) or argument


def _composed(call: Call) -> Expression | None:
    """Return ``call``, as Spark's where an argument is: that stands in no call of ours. None where neither can be."""
    if is_portable(call):
        return call
    if any(functions_in(call)):
        return None
    return SparkExpression(spark_sql(call), tuple(sorted(columns_of(call))), call.type)


def _percentile_within(kind: str) -> _Rule:
    def rule(calls: Calls, syntax: Syntax) -> TypedCall:
        calls.without_distinct(syntax)
        calls.expect(syntax, 1, 1)
        if len(syntax.order) != 1:
            message = f"{syntax.name}() needs WITHIN GROUP (ORDER BY one expression)."
            raise calls.context.error("INVALID_WITHIN_GROUP_EXPRESSION", message, syntax.tree)
        return _percentile_of(calls, syntax, syntax.order[0].this, syntax.arguments[0], kind, not syntax.ascending(0))

    return rule


def _percentile_approx(calls: Calls, syntax: Syntax) -> TypedCall:
    calls.expect(syntax, 2, 3)
    if len(syntax.arguments) == 3:
        accuracy = calls.constant(syntax, syntax.arguments[2], types.BIGINT, "accuracy")
        if not isinstance(accuracy, int) or not 0 < accuracy < 1 << 31:
            message = f"The accuracy of {syntax.name}() is from 1 to 2147483647: write such a number."
            raise calls.context.error("VALUE_OUT_OF_RANGE", message, syntax.arguments[2])
    value, share = syntax.arguments[:2]
    return _percentile_of(calls, syntax, value, share, "approximate", False)


def _percentile_of(
    calls: Calls, syntax: Syntax, tree: exp.Expr, share: exp.Expr, kind: str, descending: bool
) -> TypedCall:
    if syntax.distinct and kind == "approximate":
        raise calls.not_yet(syntax, "of DISTINCT values", "Write PERCENTILE(DISTINCT …), which is exact.")
    value = calls.translator.expression(tree)
    if value.type.name.startswith("INTERVAL"):
        raise calls.not_yet(syntax, "of intervals", "Take that of numbers: unix_micros(b) - unix_micros(a).")
    if kind != "approximate" or value.type.name not in _APPROXIMATE:
        value = calls.value(syntax, tree, _NUMBERS)
    listed = isinstance(share, exp.Anonymous) and share.name.lower() == "array"
    trees = share.expressions if listed else [share]
    shares = [calls.constant(syntax, item, types.DOUBLE, "percentage") for item in trees]
    for item, percentage in zip(trees, shares, strict=True):
        if not isinstance(percentage, float) or not 0 <= percentage <= 1:
            message = f"A percentage of {syntax.name}() is from 0 to 1: write a half as 0.5."
            raise calls.context.error("VALUE_OUT_OF_RANGE", message, item)
    if not shares:
        raise calls.not_yet(syntax, "without a percentage", "Name at least one: array(0.5).")
    single = value.type if kind == "approximate" else types.DOUBLE
    result = array(single) if listed else single
    constants = (kind, listed, descending, *shares)
    return TypedCall("percentile", (value,), result, distinct=syntax.distinct, constants=constants)


_APPROXIMATE = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_WITHIN_GROUP = frozenset(("listagg", "string_agg", "mode", "percentile_cont", "percentile_disc"))
_IGNORES_NULLS = frozenset((
    "first", "first_value", "last", "last_value", "any_value", "collect_list", "collect_set", "array_agg",
))  # fmt: skip


_RULES: dict[str, _Rule] = {
    "count": _count,
    "count_if": _count_if,
    "regr_count": _regr_count,
    "approx_count_distinct": _approx_count_distinct,
    **dict.fromkeys(("sum", "try_sum"), _total("sum", sum_type)),
    **dict.fromkeys(("avg", "mean", "try_avg"), _total("avg", avg_type)),
    **{name: _of_one(name, _ORDERED) for name in ("min", "max")},
    **dict.fromkeys(("bool_and", "every"), _of_one("bool_and", _TRUTHS)),
    **dict.fromkeys(("bool_or", "some", "any"), _of_one("bool_or", _TRUTHS)),
    **{name: _of_one(name, _INTEGERS) for name in ("bit_and", "bit_or", "bit_xor")},
    **dict.fromkeys(("stddev", "std", "stddev_samp"), _statistic("stddev_samp", 1)),
    **dict.fromkeys(("variance", "var_samp"), _statistic("var_samp", 1)),
    **{name: _statistic(name, 1) for name in ("stddev_pop", "var_pop", "skewness", "kurtosis")},
    **{name: _statistic(name, 2) for name in ("covar_pop", "covar_samp", "corr")},
    **{
        name: _statistic(name, 2)
        for name in ("regr_r2", "regr_slope", "regr_intercept", "regr_sxx", "regr_syy", "regr_sxy")
    },
    "regr_avgy": _regr_average(0),
    "regr_avgx": _regr_average(1),
    **{name: _by(name) for name in ("min_by", "max_by")},
    **dict.fromkeys(("first", "first_value", "any_value"), _first("first")),
    **dict.fromkeys(("last", "last_value"), _first("last")),
    "mode": _mode,
    **dict.fromkeys(("collect_list", "array_agg"), _collect(False)),
    "collect_set": _collect(True),
    **dict.fromkeys(("listagg", "string_agg"), _listagg),
    "median": _median,
    "percentile": _percentile,
    "percentile_cont": _percentile_within("continuous"),
    "percentile_disc": _percentile_within("discrete"),
    **dict.fromkeys(("percentile_approx", "approx_percentile"), _percentile_approx),
}

NAMES = frozenset(_RULES)
"""The aggregate functions that can be maintained."""
