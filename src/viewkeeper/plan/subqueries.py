"""Subqueries in conditions and values: bound as calls that stand for them, later replaced by columns of joins.

While a query block is bound, a subquery becomes a call whose arguments are what the block gives to it: the values it is
compared with and the outer columns that it names. So it passes through GROUP BY as any other expression does. When the
node under the expression is known, the subquery is joined to it (``subquery_joins.py``) and the call gives way to
columns of the join:

    EXISTS (q)            semi join; under OR, NOT, CASE a left join with the distinct keys of q, and IS NOT NULL
    x IN (q)              the same, x = the column of q being one more key
    x NOT IN (q)          anti join, and q (for these keys) empty, or x not NULL and no NULL in q; as values both are
                          FALSE where they are unknown, as in Spark
    (q) as a value        left join with q aggregated by its keys; the row fails where q has a second one
    x > ANY (q)           left join with MIN or MAX by the keys of q, and whether q has rows and NULLs
    x > ALL (q)           NOT (x <= ANY (q))
    global aggregate      left join, COUNT being 0 where there is no row; then compared as a plain value
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, shift_columns
from viewkeeper.plan.binding import bound_column, rebound, unwrapped
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlation import Block, NeedsDomain, Outer
from viewkeeper.plan.join_order import with_keys
from viewkeeper.plan.nodes import Aggregate, AggregateCall, Filter, Node, Project
from viewkeeper.plan.scopes import Scope
from viewkeeper.plan.subquery_calls import (
    Subquery,
    has_subquery,
    innermost,
    is_negated,
    is_same_subquery,
    only_truth_counts,
    subquery_of,
)
from viewkeeper.plan.subquery_joins import (
    COUNT_ROWS,
    Match,
    SubqueryJoins,
    empty_value,
    is_true,
    only_row,
    over_domain,
    three_valued,
    with_column,
)
from viewkeeper.plan.translate import Translator
from viewkeeper.zset.schema import BIGINT, BOOLEAN, Column, Schema

_NEGATED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT,
}  # fmt: skip
_EXTREMES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.LT: ("max",), exp.LTE: ("max",), exp.GT: ("min",), exp.GTE: ("min",), exp.NEQ: ("min", "max"),
}  # fmt: skip

PlanBlock = Callable[[exp.Expr, Outer, str], Block]


class SubqueryBinder:
    """Binds the subqueries of one query block.

    Args:
        plan: plans a subquery, given the names around it and its kind.
    """

    def __init__(self, plan: PlanBlock) -> None:
        self._plan = plan

    def bound(self, node: exp.Expr, scope: Scope, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr | None:
        """Return the call that stands for ``node``, None where it is no subquery.

        Args:
            node: any expression as parsed.
            scope: what names around the subquery mean.
            bind: binds what the subquery is compared with.

        Raises:
            SqlError: a wrong number of columns, and what is wrong inside the subquery.
            UnsupportedSql: ``CORRELATION_NOT_YET``, and what else it holds that is refused.
        """
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            return self._call(node, node.this, scope, "exists", [])
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._compared(node, node.this, node.args["query"], scope, bind, exp.EQ)
        if type(node) in _NEGATED and isinstance(node.expression, (exp.Any, exp.All)):
            query = node.expression.this
            if not isinstance(query, exp.Query):
                return None
            if isinstance(node.expression, exp.Any):
                return self._compared(node, node.this, query, scope, bind, type(node))
            return exp.Not(this=self._compared(node, node.this, query, scope, bind, _NEGATED[type(node)]))
        if isinstance(node, exp.Query):
            return self._call(node, node, scope, "scalar", [])
        return None

    def _compared(
        self,
        node: exp.Expr,
        value: exp.Expr,
        query: exp.Expr,
        scope: Scope,
        bind: Callable[[exp.Expr], exp.Expr],
        comparison: type[exp.Expr],
    ) -> exp.Expr:
        row = unwrapped(value)
        if isinstance(row, exp.Tuple) and comparison not in (exp.EQ, exp.NEQ):
            raise scope.context.refusal("SUBQUERY_NOT_YET", node, "an order of rows of several columns")
        values = [bind(part) for part in (row.expressions if isinstance(row, exp.Tuple) else [value])]
        return self._call(node, query, scope, "any", values, comparison)

    def _call(
        self,
        node: exp.Expr,
        query: exp.Expr,
        scope: Scope,
        kind: str,
        values: list[exp.Expr],
        comparison: Any = exp.EQ,
    ) -> exp.Expr:
        block = self.block(query, scope, kind)
        width = len(block.values)
        if kind == "scalar" and width != 1:
            message = f"A subquery used as a value has one column, not {width}: select one, or use a subquery for each."
            raise scope.context.error("INVALID_SUBQUERY_EXPRESSION", message, node)
        if kind == "any" and width != len(values):
            message = f"A subquery of {width} columns is compared with {len(values)} values: give as many as it has."
            raise scope.context.error("DATATYPE_MISMATCH", message, node)
        outer = [scope.computed.get(p) or bound_column(scope.reference(p)) for p in block.outer]
        return Subquery(kind, block, len(values), comparison, isinstance(node, exp.In)).call([*values, *outer], node)

    def block(self, query: exp.Expr, scope: Scope, kind: str) -> Block:
        """Return the plan of a subquery within ``scope``; ``kind`` as of ``subquery_blocks.plan_block``."""
        outer = Outer(scope)
        while True:
            try:
                return self._plan(query, outer, kind)
            except NeedsDomain as need:
                if need.outer is not outer:
                    raise


def filtered(node: Node, tree: exp.Expr, context: Context, clause: str) -> Node:
    """Return the rows of ``node`` for which a bound condition with subqueries is true."""
    inner, negated = unwrapped(tree), False
    while isinstance(inner, exp.Not):
        inner, negated = unwrapped(inner.this), not negated
    subquery = subquery_of(inner)
    chosen = None
    if subquery is not None:
        joining, subquery = placed(node, inner, context)
        chosen = _chosen(joining, subquery, negated)
    if chosen is None:
        below, (condition,) = with_subqueries(node, [tree], context, truth=True)
        expression = Translator(below.schema, context).condition(condition, clause)
        chosen = Filter(below, expression, below.schema, below.key)
    width = len(node.schema)
    kept = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(chosen.schema.columns[:width]))
    return Project(chosen, kept, Schema(chosen.schema.columns[:width]), chosen.key)


def with_subqueries(
    node: Node, trees: Sequence[exp.Expr], context: Context, truth: bool = False
) -> tuple[Node, list[exp.Expr]]:
    """Join all subqueries in ``trees`` to ``node``; return the node, more columns behind its own, and trees over it.

    Args:
        node: the rows.
        trees: bound trees over it.
        context: the statement.
        truth: whether ``trees`` are conditions, of which FALSE and NULL are the same.
    """
    known: list[tuple[exp.Expr, exp.Expr]] = []
    results = []
    for tree in trees:
        holder = exp.Paren(this=tree.copy())
        holder.parent = tree.parent
        while (found := innermost(holder)) is not None:
            value = next((value for call, value in known if is_same_subquery(call, found)), None)
            if value is None:
                joining, subquery = placed(node, found, context)
                plain = truth and only_truth_counts(found, holder)
                node, value = _value(joining, subquery, plain, is_negated(found))
                if not plain:
                    known.append((found.copy(), value))
            found.replace(exp.Paren(this=value.copy()))
        results.append(holder.this)
    return node, results


def placed(node: Node, call: exp.Expr, context: Context) -> tuple[SubqueryJoins, Subquery]:
    """Return the subquery over its domain and the rows around with the operands as plain columns."""
    subquery = subquery_of(call)
    assert subquery is not None
    arguments = list(call.expressions)
    if any(map(has_subquery, arguments)):
        node, arguments = with_subqueries(node, arguments, context)
    translator = Translator(node.schema, context)
    node, positions = with_keys(node, [translator.expression(argument) for argument in arguments])
    inner = over_domain(subquery.block, node, positions[subquery.compared :])
    return SubqueryJoins(node, inner, tuple(positions), context), subquery


def correlation(joining: SubqueryJoins, subquery: Subquery) -> Match:
    """Return what the subquery's own conditions connect."""
    block, width = subquery.block, joining.width
    operands = {i: width + subquery.compared + i for i in range(len(block.outer))}
    keys = []
    for key in block.keys:
        column = joining.inner.schema.columns[key.inner]
        inner = ColumnRef(key.inner, column.type, column.nullable)
        keys.append((inner, shift_columns(key.outer, operands), key.null_safe))
    behind = {i: i for i in range(width)} | {width + i: position for i, position in operands.items()}
    return Match(tuple(dict.fromkeys(keys)), tuple(shift_columns(condition, behind) for condition in block.residual))


def _comparisons(joining: SubqueryJoins, subquery: Subquery) -> list[Expression]:
    """Return the comparisons of the operands with the subquery's columns, one each."""
    translator = Translator(joining.schema(), joining.context)
    found: list[Expression] = []
    for number, value in enumerate(subquery.block.values):
        tree = subquery.comparison(this=bound_column(joining.operand(number)), expression=value.copy())
        expression = translator.expression(tree)
        if not isinstance(expression, (Call, Literal)):
            raise joining.context.refusal(
                "SUBQUERY_NOT_YET", value, "a comparison with a subquery that only Spark can evaluate"
            )
        found.append(expression)
    if len(found) > 1 and subquery.comparison is exp.NEQ:
        # Rows differ where one of their columns does.
        return [reduce(lambda left, right: joining.call("or", left, right), found)]
    return found


def _chosen(joining: SubqueryJoins, subquery: Subquery, negated: bool) -> Node | None:
    """Return the rows for which EXISTS, IN or their negation is true by one join; None where it needs more."""
    if subquery.block.single or subquery.kind == "scalar":
        return None
    match = correlation(joining, subquery)
    if subquery.kind == "exists":
        if not match.keys and not match.residual:
            return None
        return joining.chosen(match, "anti" if negated else "semi")
    if subquery.comparison is not exp.EQ and not match.residual:
        return None
    comparisons = _comparisons(joining, subquery)
    if not negated:
        return joining.chosen(match.with_conditions(comparisons, joining.width), "semi")
    if not any(comparison.nullable for comparison in comparisons):
        return joining.chosen(match.with_conditions(comparisons, joining.width), "anti")
    if len(comparisons) == 1 and not match.residual:
        return _not_in(joining, subquery, match, comparisons)
    return joining.chosen(match.with_conditions(_not_false(joining, comparisons), joining.width), "anti")


def _not_in(joining: SubqueryJoins, subquery: Subquery, match: Match, comparisons: list[Expression]) -> Node:
    rows = joining.chosen(match.with_conditions(comparisons, joining.width), "anti")
    joining.node = rows
    node, empty, unknown = _flags(joining, subquery, match)
    condition = exp.or_(empty, exp.Not(this=exp.Paren(this=unknown)), copy=False)
    expression = Translator(node.schema, joining.context).condition(condition, "NOT IN")
    return Filter(node, expression, node.schema, node.key)


def _not_false(joining: SubqueryJoins, comparisons: Sequence[Expression]) -> list[Expression]:
    true = Literal(True, BOOLEAN)
    return [joining.call("coalesce", c, true) if c.nullable else c for c in comparisons]


def _value(joining: SubqueryJoins, subquery: Subquery, plain: bool, negated: bool) -> tuple[Node, exp.Expr]:
    """Return the node with the subquery joined to it, and the tree of its value; ``negated`` is what is made of it."""
    if subquery.block.single:
        node, value = _single(joining, subquery)
        if not subquery.settled or not Translator(node.schema, joining.context).expression(value).nullable:
            return node, value
        not_false = exp.Not(this=exp.Is(this=exp.Paren(this=value), expression=exp.Boolean(this=False)))
        return _nullable(joining, node, not_false if negated else is_true(exp.Paren(this=value)))
    match = correlation(joining, subquery)
    if subquery.kind == "scalar":
        return _scalar(joining, subquery, match)
    if subquery.kind == "exists":
        return joining.marked(match)
    if subquery.comparison is not exp.EQ and not match.residual and subquery.compared == 1:
        return _by_extremes(joining, subquery, match)
    comparisons = _comparisons(joining, subquery)
    true = match.with_conditions(comparisons, joining.width)
    if plain or not any(comparison.nullable for comparison in comparisons):
        return joining.marked(true)
    possible = match.with_conditions(_not_false(joining, comparisons), joining.width)
    by_flags = len(comparisons) == 1 and not match.residual
    if subquery.settled and not (negated and by_flags):
        return _nullable(joining, *joining.marked(possible if negated else true))
    joining.node, found = joining.marked(true)
    if by_flags:
        node, empty, missing = _flags(joining, subquery, match)
        unknown: exp.Expr = exp.and_(exp.Not(this=exp.Paren(this=empty)), missing, copy=False)
    else:
        node, unknown = joining.marked(possible)
    if subquery.settled:
        return _nullable(joining, node, exp.or_(found, exp.Paren(this=unknown), copy=False))
    return node, three_valued(found, unknown)


def _nullable(joining: SubqueryJoins, node: Node, tree: exp.Expr) -> tuple[Node, exp.Expr]:
    """Return ``tree`` as a column that Spark takes for one that may be NULL."""
    return with_column(node, Translator(node.schema, joining.context).expression(tree), "found")


def _flags(joining: SubqueryJoins, subquery: Subquery, match: Match) -> tuple[Node, exp.Expr, exp.Expr]:
    """Return the node with what decides between FALSE and NULL: no rows, and a NULL in the operand or the rows."""
    (value,) = subquery.block.values
    inner = Translator(joining.inner.schema, joining.context).expression(value)
    keys = match.inner
    nulls = AggregateCall("count_star", None, 0, BIGINT, False)
    grouped = joining.grouped(keys, [joining.call("is_null", inner)], [COUNT_ROWS, nulls])
    positive = [joining.call("gt", ColumnRef(len(keys) + i, BIGINT, False), Literal(0, BIGINT)) for i in range(2)]
    # Counts change all the time; what is joined changes only when the subquery becomes empty or gets its first NULL.
    columns = (*grouped.schema.columns[: len(keys)], Column("any", BOOLEAN, False), Column("null", BOOLEAN, False))
    outputs = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(columns[: len(keys)]))
    right = Project(grouped, (*outputs, *positive), Schema(columns), grouped.key)
    node, offset = joining.looked_up(right, match.grouped())
    some, null = (bound_column(ColumnRef(offset + len(keys) + i, BOOLEAN, True)) for i in range(2))
    operand = bound_column(ColumnRef(joining.operands[0], *_typed(node, joining.operands[0])))
    empty = exp.Not(this=is_true(some))
    unknown = exp.or_(exp.Is(this=operand, expression=exp.Null()), is_true(null), copy=False)
    return node, exp.Paren(this=empty), exp.Paren(this=unknown)


def _by_extremes(joining: SubqueryJoins, subquery: Subquery, match: Match) -> tuple[Node, exp.Expr]:
    """Compare with the least or the greatest row of the subquery: it decides for all."""
    (comparison,) = _comparisons(joining, subquery)
    if not isinstance(comparison, Call):
        return joining.marked(match.with_conditions([comparison], joining.width))
    inner = comparison.arguments[1]
    functions = _EXTREMES[subquery.comparison]
    keys = match.inner
    nulls = AggregateCall("count_star", None, 1, BIGINT, False)
    calls = [AggregateCall(function, 0, None, inner.type, True) for function in functions]
    arguments = [inner, joining.call("is_null", inner)]
    grouped = joining.grouped(keys, arguments, [*calls, COUNT_ROWS, nulls])
    first = len(keys) + len(calls)
    kept = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(grouped.schema.columns[:first]))
    flags = [joining.call("gt", ColumnRef(first + i, BIGINT, False), Literal(0, BIGINT)) for i in range(2)]
    columns = (*grouped.schema.columns[:first], Column("any", BOOLEAN, False), Column("null", BOOLEAN, False))
    node, offset = joining.looked_up(Project(grouped, (*kept, *flags), Schema(columns), grouped.key), match.grouped())
    operand = bound_column(ColumnRef(joining.operands[0], *_typed(node, joining.operands[0])))
    found: exp.Expr | None = None
    for i in range(len(calls)):
        extreme = bound_column(ColumnRef(offset + len(keys) + i, inner.type, True))
        part = exp.Paren(this=subquery.comparison(this=operand.copy(), expression=extreme))
        found = part if found is None else exp.Paren(this=exp.or_(found, part, copy=False))
    some, null = (bound_column(ColumnRef(offset + first + i, BOOLEAN, True)) for i in range(2))
    missing = exp.or_(exp.Is(this=operand.copy(), expression=exp.Null()), is_true(null), copy=False)
    unknown = exp.and_(is_true(some), exp.Paren(this=missing), copy=False)
    assert found is not None
    return node, three_valued(found, unknown)


def _scalar(joining: SubqueryJoins, subquery: Subquery, match: Match) -> tuple[Node, exp.Expr]:
    """Join the one row of a subquery that may have several."""
    (tree,) = subquery.block.values
    value = Translator(joining.inner.schema, joining.context).expression(tree)
    if value.type.contains_map:
        raise joining.context.refusal("SUBQUERY_NOT_YET", tree, "a subquery whose value holds a MAP")
    keys = match.inner
    least = AggregateCall("min", 0, None, value.type, True)
    grouped: Node = joining.grouped(keys, [value], [least, COUNT_ROWS])
    if keys or match.residual:
        node, offset = joining.looked_up(grouped, match.grouped())
        first = offset + len(keys)
        row = only_row(ColumnRef(first, value.type, True), ColumnRef(first + 1, BIGINT, True))
        return with_column(node, row, "value")
    row = only_row(ColumnRef(0, value.type, True), ColumnRef(1, BIGINT, False))
    checked = Project(grouped, (row,), Schema((Column("value", value.type, True),)), ())
    node, offset = joining.looked_up(checked, match)
    return node, bound_column(ColumnRef(offset, value.type, True))


def _single(joining: SubqueryJoins, subquery: Subquery) -> tuple[Node, exp.Expr]:
    block = subquery.block
    if subquery.kind == "exists" and block.having is None and not block.residual:
        return joining.node, exp.Boolean(this=True)
    node, trees, having = single_row(joining, subquery)
    if subquery.kind == "exists":
        return node, exp.Boolean(this=True) if having is None else is_true(exp.Paren(this=having))
    if subquery.kind == "any":
        return node, _compared_row(joining, subquery, node, trees, having)
    value = trees[0] if having is None else exp.Case(ifs=[exp.If(this=having, true=trees[0])])
    return with_column(node, Translator(node.schema, joining.context).expression(value), "value")


def single_row(joining: SubqueryJoins, subquery: Subquery) -> tuple[Node, list[exp.Expr], exp.Expr | None]:
    """Join a global aggregate: one row for each outer row, also where nothing is aggregated.

    Returns the node, and over it the values of the row and the HAVING under which it is there.
    """
    block, aggregate = subquery.block, joining.inner
    assert isinstance(aggregate, Aggregate)
    match = correlation(joining, subquery)
    grouped = len(aggregate.group)
    optional = bool(match.keys or match.residual)
    node, offset = joining.looked_up(aggregate, match)
    outputs: list[Expression] = [ColumnRef(i, *_typed(node, i)) for i in range(len(node.schema))]
    if optional:
        for i, call in enumerate(aggregate.calls, offset + grouped):
            if not call.nullable:
                outputs[i] = joining.call("coalesce", outputs[i], empty_value(call))
    columns = tuple(Column(c.name, e.type, e.nullable) for c, e in zip(node.schema.columns, outputs, strict=True))
    node = Project(node, tuple(outputs), Schema(columns), node.key)
    trees = [*block.values, *([block.having] if block.having else [])]
    moved = {i: offset + i for i in range(len(aggregate.schema))}
    if block.stand_in is not None:
        # Where nothing is aggregated no row holds the domain's columns: they are read where they come from.
        first = subquery.compared
        moved |= {
            k.inner: joining.operands[first + k.outer.index] for k in block.keys if isinstance(k.outer, ColumnRef)
        }
    node, trees = with_subqueries(node, [rebound(tree, node.schema, moved) for tree in trees], joining.context)
    having = trees.pop() if block.having is not None else None
    return node, trees, having


def _compared_row(
    joining: SubqueryJoins, subquery: Subquery, node: Node, values: Sequence[exp.Expr], having: exp.Expr | None
) -> exp.Expr:
    connect = exp.or_ if subquery.comparison is exp.NEQ else exp.and_
    parts = []
    for number, value in enumerate(values):
        position = joining.operands[number]
        operand = bound_column(ColumnRef(position, *_typed(node, position)))
        parts.append(exp.Paren(this=subquery.comparison(this=operand, expression=exp.Paren(this=value))))
    whole = exp.Paren(this=connect(*parts, copy=False))
    if having is None:
        return whole
    return exp.Case(ifs=[exp.If(this=having, true=whole)], default=exp.Boolean(this=False))


def _typed(node: Node, position: int) -> tuple[Any, bool]:
    column = node.schema.columns[position]
    return column.type, column.nullable
