"""GROUP BY and aggregates: bound trees over the input → bound trees over an Aggregate node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression
from viewkeeper.plan.aggregate_calls import Calls, TypedCall, guarded
from viewkeeper.plan.aggregate_syntax import Syntax, taken_apart
from viewkeeper.plan.binding import aggregate_name, bound_column, normalized
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import GROUPING_FUNCTIONS
from viewkeeper.plan.grouping_sets import GroupBy, expanded, grouping_bits, is_left_out
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Node, Project, SortKey
from viewkeeper.plan.translate import Translator
from viewkeeper.zset.schema import BIGINT, INT, Column, Schema


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
        self._calls: list[TypedCall] = []
        self._typed = Calls(self.translator, context)
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
            return bound_column(ColumnRef(position, expression.type, self._nullable(position)), tree)
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in GROUPING_FUNCTIONS:
            return self._grouping(tree)
        syntax = taken_apart(tree)
        if syntax is not None:
            return bound_column(self._call(syntax), tree)
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
        if not self._width and not self._calls:
            # HAVING alone makes one row of all rows, and a row has a column.
            self._calls.append(TypedCall("count_star", (), BIGINT, False, name="count(*)"))
        inputs: list[Expression] = list(self.group)
        names = list(self._names)

        # An aggregate reads a grouped column as it is in the input, not with the NULLs of a grouping.
        first = 0 if self.sets is None else len(inputs)

        def position(expression: Expression, name: str) -> int:
            if expression not in inputs[first:]:
                inputs.append(expression)
                names.append(name)
            return inputs.index(expression, first)

        calls = [_positioned(call, position) for call in self._calls]
        key: tuple[int, ...] | None = None
        if any(call.needs_key for call in calls):
            # What the order of an aggregate leaves open is decided by the key of the rows.
            below = [(p, self.below.schema.columns[p]) for p in self.below.key or ()]
            key = tuple(position(ColumnRef(p, c.type, c.nullable), c.name) for p, c in below)
        columns = tuple(Column(n, e.type, e.nullable) for n, e in zip(names, inputs, strict=True))
        projected: Node = Project(self.below, tuple(inputs), Schema(columns), key) if inputs else self.below
        if self.sets is not None:
            behind = {i: i + (i >= len(self.group)) for i in range(len(inputs))}
            calls = [call.shifted(behind) for call in calls]
            moved = None if key is None else (len(self.group), *(behind[p] for p in key))
            projected = replace(expanded(projected, len(self.group), self.sets), key=moved)
        group = tuple(range(self._width))
        return Aggregate(projected, group, tuple(calls), self.schema, group)

    @property
    def schema(self) -> Schema:
        """The output: groups, then one column per call so far."""
        named = enumerate(zip(self._names, self.group, strict=True))
        groups = [Column(name, group.type, self._nullable(i)) for i, (name, group) in named]
        if self.sets is not None:
            groups.append(Column("__grouping", INT, False))
        return Schema((*groups, *(Column(call.name, call.type, call.nullable) for call in self._calls)))

    @property
    def _width(self) -> int:
        """How many columns stand before the calls: the groups, and the number of the grouping."""
        return len(self.group) + (self.sets is not None)

    def _nullable(self, position: int) -> bool:
        return self.group[position].nullable or is_left_out(position, self.sets or ())

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
            message = f"Values of type {str(expression.type).upper()} cannot be grouped: group by map_entries(…)."
            raise self.context.error("GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE", message, tree)
        self._trees.append(plain)
        self.group.append(expression)
        self._names.append(self._readable(tree))

    def _call(self, syntax: Syntax) -> ColumnRef:
        condition: Expression | None = None
        for inner in (*syntax.arguments, *(item.this for item in syntax.order)):
            self._check_plain(inner, syntax.tree)
        label = f"{syntax.name}({', '.join(self._label(argument) for argument in syntax.arguments)})"
        if syntax.filter is not None:
            self._check_plain(syntax.filter, syntax.tree)
            condition = self.translator.condition(syntax.filter, "FILTER")
            label += f" where {self._readable(syntax.filter)}"
        typed = self._typed.typed(syntax)
        if condition is not None:
            typed = guarded(typed, condition)
        call = replace(typed, filter=condition, name=label)
        if call not in self._calls:
            self._calls.append(call)
        return ColumnRef(self._width + self._calls.index(call), call.type, call.nullable)

    def _check_plain(self, tree: exp.Expr, call: exp.Expr) -> None:
        if any(aggregate_name(node) for node in tree.walk()):
            message = "An aggregate cannot stand inside another: compute the inner one in a subquery in FROM."
            raise self.context.error("NESTED_AGGREGATE_FUNCTION", message, call)

    def _label(self, tree: exp.Expr) -> str:
        return "*" if isinstance(tree, exp.Star) else self._readable(tree)

    def _readable(self, tree: exp.Expr) -> str:
        def named(node: exp.Expr) -> exp.Expr:
            reference = node.meta.get("reference")
            if isinstance(reference, ColumnRef):
                return exp.column(self.below.schema.columns[reference.index].name)
            return node

        return spark_name(tree.transform(named))


def _positioned(call: TypedCall, position: Callable[[Expression, str], int]) -> AggregateCall:
    """Return ``call`` over the positions of its arguments in a projection."""
    arguments = [position(argument, f"argument of {call.name}") for argument in call.arguments]
    condition = None if call.filter is None else position(call.filter, f"filter of {call.name}")
    order = tuple(
        SortKey(position(item.expression, f"order of {call.name}"), item.ascending, item.nulls_first)
        for item in call.order
    )
    return AggregateCall(
        call.function,
        arguments[0] if arguments else None,
        condition,
        call.type,
        call.nullable,
        tuple(arguments[1:]),
        call.distinct,
        order,
        call.constants,
    )
