"""GROUP BY and aggregates: bound trees over the input → bound trees over an Aggregate node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import ColumnRef, Expression
from viewkeeper.plan.binding import aggregate_name, bound_column, normalized
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import GROUPING_FUNCTIONS
from viewkeeper.plan.grouping_sets import GroupBy, expanded, grouping_bits
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Node, Project
from viewkeeper.plan.translate import Translator
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import MAX_PRECISION, Column, Schema, SqlType, decimal


@dataclass(frozen=True)
class _Call:
    function: str
    argument: Expression | None
    filter: Expression | None
    type: SqlType
    name: str = field(compare=False)

    @property
    def nullable(self) -> bool:
        return self.function not in ("count", "count_star")


class Aggregation:
    """The aggregate of one query block: takes the group, then each expression over it, then gives the node.

    Args:
        below: the node that is aggregated.
        group: the GROUP BY clause, bound.
        context: the statement.

    Raises:
        SqlError: group expressions that cannot be grouped.
    """

    def __init__(self, below: Node, group: GroupBy, context: Context) -> None:
        self.below = below
        self.sets = group.sets
        self.context = context
        self.translator = Translator(below.schema, context)
        self.group: list[Expression] = []
        self._names: list[str] = []
        self._trees: list[exp.Expr] = []
        self._calls: list[_Call] = []
        for tree in group.trees:
            self._add_group(tree)

    def lower(self, tree: exp.Expr) -> exp.Expr:
        """Return ``tree``, bound to the input, as a tree bound to the Aggregate's output.

        Raises:
            SqlError: ``MISSING_AGGREGATION`` for a column neither grouped nor aggregated; ``DATATYPE_MISMATCH``.
        """
        plain = normalized(tree)
        if plain in self._trees:
            position = self._trees.index(plain)
            expression = self.group[position]
            return bound_column(ColumnRef(position, expression.type, self._nullable(expression)), tree)
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in GROUPING_FUNCTIONS:
            return self._grouping(tree)
        if aggregate_name(tree) or (isinstance(tree, exp.Filter) and aggregate_name(tree.this)):
            return bound_column(self._call(tree), tree)
        if "reference" in tree.meta:
            name = tree.meta.get("name") or self.below.schema.columns[tree.meta["reference"].index].name
            message = f"'{name}' is neither in GROUP BY nor inside an aggregate: group by it, or take MIN({name})."
            raise self.context.error("MISSING_AGGREGATION" if self.group else "MISSING_GROUP_BY", message, tree)
        result = tree.copy()
        for child, copy in zip(list(tree.iter_expressions()), list(result.iter_expressions()), strict=True):
            lowered = self.lower(child)
            copy.replace(lowered)
        result.parent = tree.parent
        return result

    def node(self) -> Aggregate:
        """Return the Aggregate over a projection on the groups, the arguments and the filters."""
        inputs: list[Expression] = list(self.group)
        names = list(self._names)

        # An aggregate reads a grouped column as it is in the input, not with the NULLs of a grouping.
        first = 0 if self.sets is None else len(inputs)

        def position(expression: Expression, name: str) -> int:
            if expression not in inputs[first:]:
                inputs.append(expression)
                names.append(name)
            return inputs.index(expression, first)

        calls = []
        for call in self._calls:
            argument = None if call.argument is None else position(call.argument, f"argument of {call.name}")
            filtered = None if call.filter is None else position(call.filter, f"filter of {call.name}")
            calls.append(AggregateCall(call.function, argument, filtered, call.type, call.nullable))
        columns = tuple(Column(n, e.type, e.nullable) for n, e in zip(names, inputs, strict=True))
        projected: Node = Project(self.below, tuple(inputs), Schema(columns), None) if inputs else self.below
        if self.sets is not None:
            projected = expanded(projected, len(self.group), self.sets)
            behind = {i: i + (i >= len(self.group)) for i in range(len(inputs))}
            calls = [call.shifted(behind) for call in calls]
        group = tuple(range(self._width))
        return Aggregate(projected, group, tuple(calls), self.schema, group)

    @property
    def schema(self) -> Schema:
        """The output: groups, then one column per call so far."""
        groups = [Column(n, e.type, self._nullable(e)) for n, e in zip(self._names, self.group, strict=True)]
        if self.sets is not None:
            groups.append(Column("__grouping", types.INT, False))
        return Schema((*groups, *(Column(call.name, call.type, call.nullable) for call in self._calls)))

    @property
    def _width(self) -> int:
        """How many columns stand before the calls: the groups, and the number of the grouping."""
        return len(self.group) + (self.sets is not None)

    def _nullable(self, expression: Expression) -> bool:
        return expression.nullable or self.sets is not None

    def _grouping(self, tree: exp.Anonymous) -> exp.Expr:
        name = tree.name.lower()
        if self.sets is None:
            message = f"{name}() tells groupings apart: it needs GROUPING SETS, CUBE or ROLLUP in GROUP BY."
            raise self.context.error("UNSUPPORTED_GROUPING_EXPRESSION", message, tree)
        plain = [normalized(argument) for argument in tree.expressions]
        single = name == "grouping"
        if any(p not in self._trees for p in plain) or (len(plain) != 1 if single else plain not in ([], self._trees)):
            wanted = "one of the columns of GROUP BY" if single else "no arguments, or all columns of GROUP BY in order"
            code = "GROUPING_COLUMN_MISMATCH" if single else "GROUPING_ID_COLUMN_MISMATCH"
            raise self.context.error(code, f"{name}() takes {wanted}.", tree)
        positions = [self._trees.index(p) for p in plain or self._trees]
        return grouping_bits(self.sets, len(self.group), positions, "TINYINT" if single else "BIGINT")

    def _add_group(self, tree: exp.Expr) -> None:
        plain = normalized(tree)
        if plain in self._trees:
            return
        expression = self.translator.expression(tree)
        if expression.type.contains_map:
            message = f"Values of type {str(expression.type).upper()} cannot be grouped."
            raise self.context.error("GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE", message, tree)
        self._trees.append(plain)
        self.group.append(expression)
        self._names.append(self._readable(tree))

    def _call(self, tree: exp.Expr) -> ColumnRef:
        call = self._typed_call(tree)
        if call not in self._calls:
            self._calls.append(call)
        return ColumnRef(self._width + self._calls.index(call), call.type, call.nullable)

    def _typed_call(self, tree: exp.Expr) -> _Call:
        condition: Expression | None = None
        if isinstance(tree, exp.Filter):
            condition = self.translator.condition(self._plain(tree.expression.this, tree), "FILTER")
            function = tree.this
        else:
            function = tree
        name = aggregate_name(function) or ""
        arguments = [self._plain(argument, function) for argument in function.expressions]
        label = f"{name}({', '.join(self._label(argument) for argument in arguments)})"
        if condition is not None:
            label += f" where {self._readable(tree.expression.this)}"
        if name == "count":
            kind, argument = self._count(function, arguments)
            return _Call(kind, argument, condition, types.BIGINT, label)
        if len(arguments) != 1 or isinstance(arguments[0], exp.Star):
            message = f"{name}() takes one argument, not {len(arguments)}."
            raise self.context.error("WRONG_NUM_ARGS", message, tree)
        value = self._argument(name, arguments[0])
        result = {"sum": _sum_type, "avg": _avg_type, "mean": _avg_type}.get(name, lambda sql_type: sql_type)(
            value.type
        )
        return _Call("avg" if name == "mean" else name, value, condition, result, label)

    def _count(self, tree: exp.Expr, arguments: Sequence[exp.Expr]) -> tuple[str, Expression | None]:
        if not arguments:
            raise self.context.error("WRONG_NUM_ARGS", "count() needs an argument, or * for all rows.", tree)
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return "count_star", None
        values = [self.translator.expression(argument) for argument in arguments]
        if all(not value.nullable and not can_raise(value) for value in values):
            return "count_star", None
        if len(values) == 1:
            return "count", values[0]
        present = [exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null())) for argument in arguments]
        branch = exp.If(this=exp.and_(*present, copy=False), true=exp.Literal.number("1"))
        return "count", self.translator.expression(exp.Case(ifs=[branch]))

    def _argument(self, name: str, tree: exp.Expr) -> Expression:
        value = self.translator.expression(tree)
        if name in ("min", "max"):
            if value.type.contains_map:
                raise self._mismatch(name, value.type, tree)
            return value
        if value.type in (types.STRING, types.VOID):
            return self.translator.cast(tree, value, types.DOUBLE)
        if not value.type.is_numeric:
            raise self._mismatch(name, value.type, tree)
        return value

    def _mismatch(self, name: str, found: SqlType, tree: exp.Expr) -> Exception:
        wanted = "values that can be ordered" if name in ("min", "max") else "numbers"
        message = f"{name}() takes {wanted}, not {str(found).upper()}."
        return self.context.error("DATATYPE_MISMATCH", message, tree)

    def _plain(self, tree: exp.Expr, call: exp.Expr) -> exp.Expr:
        if any(aggregate_name(node) for node in tree.walk()):
            message = "An aggregate cannot stand inside another: compute the inner one in a subquery in FROM."
            raise self.context.error("NESTED_AGGREGATE_FUNCTION", message, call)
        return tree

    def _label(self, tree: exp.Expr) -> str:
        return "*" if isinstance(tree, exp.Star) else self._readable(tree)

    def _readable(self, tree: exp.Expr) -> str:
        def named(node: exp.Expr) -> exp.Expr:
            reference = node.meta.get("reference")
            if isinstance(reference, ColumnRef):
                return exp.column(self.below.schema.columns[reference.index].name)
            return node

        return spark_name(tree.transform(named))


def _sum_type(argument: SqlType) -> SqlType:
    if argument.is_integer:
        return types.BIGINT
    if argument.name == "DECIMAL":
        return decimal(min(MAX_PRECISION, argument.precision + 10), argument.scale)
    return types.DOUBLE


def _avg_type(argument: SqlType) -> SqlType:
    if argument.name != "DECIMAL":
        return types.DOUBLE
    # Spark bounds both parts: decimal(38,38) stays as it is.
    return decimal(min(MAX_PRECISION, argument.precision + 4), min(MAX_PRECISION, argument.scale + 4))
