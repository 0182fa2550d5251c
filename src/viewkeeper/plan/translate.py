"""Bound trees → typed expressions, through the registry of functions; what it does not have goes to Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions import coercion, literals, registry
from viewkeeper.expressions.spark_sql import spark_sql, type_text
from viewkeeper.expressions.text import is_time_of_day
from viewkeeper.expressions.tree import ColumnRef, Expression, Literal, Scalar, SparkExpression, columns_of
from viewkeeper.plan.binding import flattened, references_of
from viewkeeper.plan.context import Context
from viewkeeper.plan.data_types import is_spark_only, sql_type_of
from viewkeeper.plan.folding import folded, folded_within
from viewkeeper.plan.function_names import CAST_FUNCTIONS, EXTRACTED, WITH_UNIT
from viewkeeper.plan.parameters import parameter_literal, parameter_tree
from viewkeeper.plan.parse import to_sql
from viewkeeper.plan.place import located
from viewkeeper.plan.spark_answers import field_named_twice, in_names_of
from viewkeeper.plan.user_calls import UserCalls, spark_schema
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Schema, SqlType

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "mod",
    exp.IntDiv: "integral_divide",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe",
    exp.DPipe: "concat",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.BitwiseAnd: "bitand",
    exp.BitwiseOr: "bitor",
    exp.BitwiseXor: "bitxor",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
}


class Translator:
    """Translates the expressions over one node.

    Args:
        schema: the columns of that node.
        context: the statement.
    """

    def __init__(self, schema: Schema, context: Context) -> None:
        self.schema = schema
        self.context = context

    def expression(self, tree: exp.Expr) -> Expression:
        """Return the typed expression of a bound tree; all of it goes to Spark where a part is not portable.

        A part alone could not: CASE, AND and COALESCE decide for which rows their parts are evaluated.

        Raises:
            SqlError: wrong types or arguments, at their place.
            UnsupportedSql: ``EXPRESSION_NEEDS_SPARK``, ``NONDETERMINISTIC_EXPRESSION``.
        """
        try:
            return folded_within(self._portable(tree), self.context.session)
        except registry.NotPortable:
            return self._by_spark(tree)

    def condition(self, tree: exp.Expr, where: str) -> Expression:
        """Return the expression of a condition, which must be BOOLEAN (or a bare NULL)."""
        result = self.expression(tree)
        if result.type == types.VOID:
            return Literal(None, types.BOOLEAN)
        if result.type != types.BOOLEAN:
            message = f"The condition of {where} must be BOOLEAN, not {str(result.type).upper()}."
            raise self.context.error("DATATYPE_MISMATCH", message, tree)
        return folded(result, self.context.session)

    def _by_spark(self, tree: exp.Expr) -> Expression:
        if self.context.spark_types is None:
            raise self.context.refusal("EXPRESSION_NEEDS_SPARK", tree)
        named = next((call for call in tree.find_all(exp.Anonymous) if call.name.lower() == "identifier"), None)
        if named is not None:
            raise self.context.refusal("CLAUSE_NOT_YET", named, "IDENTIFIER(), in place of the name itself,")
        rest, calls = UserCalls(self).apart(tree)
        sql = to_sql(self._with_parameters(rest))
        try:
            sql_type, nullable, deterministic = self.context.spark_types(sql, spark_schema(self.schema, calls))
        except SqlError as error:
            raise self._placed(in_names_of(self.schema, error), tree) from error
        twin = field_named_twice(sql_type)
        if twin is not None:
            message = (
                f"A STRUCT with two fields called '{twin}' cannot be kept: name them apart, "
                "as in named_struct('a', …, 'b', …)."
            )
            details = self.context.place.of(tree)
            raise UnsupportedSql("TYPE_NOT_SUPPORTED", located(message, details), details)
        if not deterministic:
            raise self.context.refusal("NONDETERMINISTIC_EXPRESSION", tree)
        inputs = tuple(sorted({reference.index for reference in references_of(rest)}))
        return SparkExpression(sql, inputs, sql_type, nullable, calls)

    def _with_parameters(self, tree: exp.Expr) -> exp.Expr:
        def replacement(node: exp.Expr) -> exp.Expr:
            name = node.meta.get("parameter")
            return parameter_tree(self.context.parameters[name]) if isinstance(name, str) else node

        return tree.transform(replacement)

    def _portable(self, tree: exp.Expr) -> Expression:
        reference = tree.meta.get("reference")
        if isinstance(reference, ColumnRef):
            return reference
        parameter = tree.meta.get("parameter")
        if isinstance(parameter, str):
            return parameter_literal(parameter, self.context.parameters[parameter], self.context.session)
        if isinstance(tree, (exp.And, exp.Or)):
            return self._connected(tree)
        function = _BINARY.get(type(tree))
        if function is not None:
            return self._call(tree, function, [tree.this, tree.expression])
        handler = _HANDLERS.get(type(tree))
        if handler is None:
            raise registry.NotPortable(type(tree).__name__.lower(), "no portable form")
        return handler(self, tree)

    def _connected(self, tree: exp.Expr) -> Expression:
        """Translate a chain of AND or OR into a balanced tree, so that long chains do not nest deeply."""
        function = "and" if isinstance(tree, exp.And) else "or"
        operands = [self._portable(operand) for operand in flattened(tree)]

        def connect(parts: list[Expression]) -> Expression:
            if len(parts) == 1:
                return parts[0]
            middle = (len(parts) + 1) // 2
            return self.resolve(tree, function, [connect(parts[:middle]), connect(parts[middle:])])

        return connect(operands)

    def _call(
        self, tree: exp.Expr, function: str, arguments: Sequence[exp.Expr], options: dict[str, Scalar] | None = None
    ) -> Expression:
        return self.resolve(tree, function, [self._portable(argument) for argument in arguments], options)

    def resolve(
        self, tree: exp.Expr, function: str, arguments: Sequence[Expression], options: dict[str, Scalar] | None = None
    ) -> Expression:
        """Return ``function`` applied to typed arguments; errors point at ``tree``."""
        try:
            return registry.resolve(function, arguments, self.context.session, options)
        except UnsupportedSql:
            raise
        except SqlError as error:
            raise self._placed(error, tree) from error

    def cast(self, tree: exp.Expr, value: Expression, target: SqlType, safe: bool = False) -> Expression:
        """Return ``value`` cast to ``target``; errors point at ``tree``."""
        if value.type == target:
            return value
        if isinstance(value, SparkExpression):
            # Fields of nested types are found again by their names as they are written.
            to = type_text(target) if target.is_nested else str(target).upper()
            sql = f"{'TRY_CAST' if safe else 'CAST'}({value.sql} AS {to})"
            nullable = value.nullable or safe or not target.is_nested
            return SparkExpression(sql, value.inputs, target, nullable, value.calls)
        try:
            return registry.cast(value, target, self.context.session, safe)
        except SqlError as error:
            raise self._placed(error, tree) from error

    def cast_column(self, tree: exp.Expr, value: Expression, target: SqlType) -> Expression:
        """Return ``value``, which is a column as a whole, cast to ``target``: by Spark where that is not portable.

        Raises:
            UnsupportedSql: ``EXPRESSION_NEEDS_SPARK``.
        """
        try:
            return self.cast(tree, value, target)
        except registry.NotPortable:
            if self.context.spark_types is None:
                raise self.context.refusal("EXPRESSION_NEEDS_SPARK", tree) from None
            sql = f"CAST({spark_sql(value)} AS {type_text(target)})"
            return SparkExpression(sql, tuple(sorted(columns_of(value))), target, True)

    def _placed(self, error: SqlError, tree: exp.Expr) -> SqlError:
        if "line" in error.details:
            return error
        details = {**error.details, **self.context.place.of(tree)}
        details.pop("spark_place", None)  # counted in a text that is ours
        return type(error)(error.code, located(error.message, details), details)

    def _literal(self, tree: exp.Expr) -> Expression:
        if tree.args.get("is_string"):
            return Literal(tree.name, types.STRING)
        return self._number(tree, tree.name)

    def _number(self, tree: exp.Expr, text: str) -> Expression:
        try:
            return literals.number(text)
        except SqlError as error:
            raise self._placed(error, tree) from error

    def _negative(self, tree: exp.Expr) -> Expression:
        operand = tree.this
        if isinstance(operand, exp.Literal) and not operand.is_string:
            # -2147483648 is an INT although 2147483648 is none.
            return self._number(tree, f"-{operand.name}")
        if operand.meta.get("suffix") and isinstance(operand, exp.Cast):
            return self._suffixed(operand, "-")
        return self._call(tree, "negate", [operand])

    def _cast_tree(self, tree: exp.Expr) -> Expression:
        if tree.meta.get("suffix"):
            return self._suffixed(tree, "")
        if tree.args.get("format") is not None:
            raise registry.NotPortable(type(tree).__name__.lower(), "no portable form")
        if is_spark_only(tree.args["to"]):
            raise registry.NotPortable("cast", f"to {tree.args['to']}")
        target = sql_type_of(tree.args["to"], self.context)
        operand = self._portable(tree.this)
        if tree.meta.get("typed_literal") and isinstance(operand, Literal):
            return self._typed_literal(tree, str(operand.value), target)
        return self.cast(tree, operand, target, isinstance(tree, exp.TryCast))

    def _suffixed(self, tree: exp.Expr, sign: str) -> Expression:
        suffix = _SUFFIXES[sql_type_of(tree.args["to"], self.context).name]
        return self._number(tree, f"{sign}{tree.this.name}{suffix}")

    def _typed_literal(self, tree: exp.Expr, text: str, target: SqlType) -> Expression:
        try:
            if target == types.DATE:
                return literals.date(text)
            if target == types.TIMESTAMP_NTZ:
                return literals.timestamp_ntz(text)
            if target == types.TIMESTAMP:
                if self.context.ad_hoc and is_time_of_day(text):
                    raise registry.NotPortable("literal", "a time of day alone takes the current date")
                return literals.timestamp(text, self.context.session)
        except SqlError as error:
            raise self._placed(error, tree) from error
        raise registry.NotPortable("literal", str(target))

    def _interval(self, tree: exp.Expr) -> Expression:
        value, unit = tree.this, tree.args.get("unit")
        if not isinstance(value, exp.Literal) or unit is None:
            raise registry.NotPortable("interval", "not a constant of one unit")
        span = unit.sql().upper() if isinstance(unit, exp.IntervalSpan) else unit.name
        try:
            return literals.interval(value.name, span)
        except SqlError as error:
            raise self._placed(error, tree) from error

    def _case(self, tree: exp.Expr) -> Expression:
        operand = tree.args.get("this")
        arguments: list[Expression] = []
        for branch in tree.args["ifs"]:
            if operand is None:
                arguments.append(self._portable(branch.this))
            else:
                arguments.append(self._call(branch, "eq", [operand, branch.this]))
            arguments.append(self._portable(branch.args["true"]))
        if tree.args.get("default") is not None:
            arguments.append(self._portable(tree.args["default"]))
        return self.resolve(tree, "case", arguments)

    def _not(self, tree: exp.Expr) -> Expression:
        inner = tree.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return self._call(tree, "is_not_null", [inner.this])
        return self._call(tree, "not", [inner])

    def _is(self, tree: exp.Expr) -> Expression:
        right = tree.expression
        if isinstance(right, exp.Null):
            return self._call(tree, "is_null", [tree.this])
        if isinstance(right, exp.Boolean):
            return self._call(tree, "is_true" if right.this else "is_false", [tree.this])
        raise registry.NotPortable(type(tree).__name__.lower(), "no portable form")

    def _between(self, tree: exp.Expr) -> Expression:
        low = self._call(tree, "ge", [tree.this, tree.args["low"]])
        return self.resolve(tree, "and", [low, self._call(tree, "le", [tree.this, tree.args["high"]])])

    def _like_escape(self, tree: exp.Expr) -> Expression:
        inner, escape = tree.this, tree.expression
        if not isinstance(inner, (exp.Like, exp.ILike)) or not isinstance(escape, exp.Literal):
            raise registry.NotPortable(type(tree).__name__.lower(), "no portable form")
        return self._call(tree, _BINARY[type(inner)], [inner.this, inner.expression], {"escape": escape.name})

    def _extract(self, tree: exp.Expr) -> Expression:
        return self._part(tree, tree.this.name, tree.expression)

    def _part(self, tree: exp.Expr, unit: str, moment: exp.Expr) -> Expression:
        function = EXTRACTED.get(unit.lower())
        if function is None:
            raise registry.NotPortable("extract", f"of {unit}")
        return self._call(tree, function, [moment])

    def _bracket(self, tree: exp.Expr) -> Expression:
        if len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Slice):
            raise registry.NotPortable("element", "a slice")
        return self._call(tree, "element", [tree.this, tree.expressions[0]])

    def _field(self, tree: exp.Expr) -> Expression:
        if not isinstance(tree.expression, exp.Identifier):
            raise registry.NotPortable("field", "no name")
        return self._call(tree, "field", [tree.this], {"name": tree.expression.name})

    def _trim(self, tree: exp.Expr) -> Expression:
        function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(tree.args.get("position") or "").upper(), "trim")
        if tree.expression is None or isinstance(tree.expression, str):
            return self._call(tree, function, [tree.this])
        raise registry.NotPortable(type(tree).__name__.lower(), "no portable form")

    def _anonymous(self, tree: exp.Expr) -> Expression:
        name = tree.name.lower()
        own = self.context.relations.function(name)
        if own is not None:
            return UserCalls(self).call(tree, own, self._portable)
        if name in CAST_FUNCTIONS and len(tree.expressions) == 1:
            return self.cast(tree, self._portable(tree.expressions[0]), SqlType(CAST_FUNCTIONS[name]))
        if name in ("date_part", "datepart") and len(tree.expressions) == 2 and tree.expressions[0].is_string:
            return self._part(tree, tree.expressions[0].name, tree.expressions[1])
        if name in WITH_UNIT and isinstance(tree.expressions[0], exp.Var):
            options: dict[str, Scalar] = {"unit": tree.expressions[0].name}
            function = "timestampadd" if "add" in name else "timestampdiff"
            return self._call(tree, function, tree.expressions[1:], options)
        if name in ("like", "ilike") and len(tree.expressions) == 3 and tree.expressions[2].is_string:
            return self._call(tree, name, tree.expressions[:2], {"escape": tree.expressions[2].name})
        return self._call(tree, name, tree.expressions)


_SUFFIXES = {"BIGINT": "L", "SMALLINT": "S", "TINYINT": "Y", "DOUBLE": "D", "FLOAT": "F", "DECIMAL": "BD"}

_Handler = Callable[[Translator, exp.Expr], Expression]


def _arguments(function: str, *parts: str) -> _Handler:
    def handle(translator: Translator, tree: exp.Expr) -> Expression:
        return translator._call(tree, function, [tree.args[part] for part in parts if tree.args.get(part) is not None])

    return handle


_HANDLERS: dict[type[exp.Expr], _Handler] = {
    exp.Paren: lambda translator, tree: translator._portable(tree.this),
    exp.Alias: lambda translator, tree: translator._portable(tree.this),
    exp.Literal: Translator._literal,
    exp.RawString: lambda translator, tree: Literal(tree.name, types.STRING),
    exp.Null: lambda translator, tree: Literal(None, types.VOID),
    exp.Boolean: lambda translator, tree: Literal(bool(tree.this), types.BOOLEAN),
    exp.HexString: lambda translator, tree: literals.binary(tree.name),
    exp.Neg: Translator._negative,
    exp.Interval: Translator._interval,
    exp.Cast: Translator._cast_tree,
    exp.TryCast: Translator._cast_tree,
    exp.Case: Translator._case,
    exp.Not: Translator._not,
    exp.Is: Translator._is,
    exp.In: lambda translator, tree: translator._call(tree, "in", [tree.this, *tree.expressions]),
    exp.Between: Translator._between,
    exp.Escape: Translator._like_escape,
    exp.Extract: Translator._extract,
    exp.Trim: Translator._trim,
    exp.BitwiseNot: _arguments("bitnot", "this"),
    exp.Bracket: Translator._bracket,
    exp.Dot: Translator._field,
    exp.Substring: _arguments("substring", "this", "start", "length"),
    exp.StrPosition: _arguments("position", "substr", "this", "position"),
    exp.Concat: lambda translator, tree: translator._call(tree, "concat", tree.expressions),
    exp.Anonymous: Translator._anonymous,
}


def common_type(left: SqlType, right: SqlType, translator: Translator, tree: exp.Expr, what: str) -> SqlType:
    """Return the type to which both sides are cast.

    Raises:
        SqlError: ``INCOMPATIBLE_COLUMN_TYPE`` where there is none; ``what`` says which values are meant.
    """
    found = coercion.common_type([left, right], translator.context.session)
    if found is None:
        message = f"{what} are {str(left).upper()} and {str(right).upper()}, without a common type: cast one."
        raise translator.context.error("INCOMPATIBLE_COLUMN_TYPE", message, tree)
    return found
