"""One SELECT block over its joined FROM clause: projection, aggregation, HAVING, and what orders it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from viewkeeper.errors import SqlError
from viewkeeper.expressions.tree import ColumnRef, Expression
from viewkeeper.plan.aggregate_syntax import AROUND_CALLS
from viewkeeper.plan.aggregates import Aggregation
from viewkeeper.plan.arguments import fields_of_star
from viewkeeper.plan.binding import aggregate_name, bind, bound_column, has_aggregate, reference_of, unwrapped
from viewkeeper.plan.catalog import suggestion
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import GROUPING_FUNCTIONS
from viewkeeper.plan.grouping_sets import GroupBy, group_by
from viewkeeper.plan.having import HavingScope
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Node
from viewkeeper.plan.ordering import OrderItem
from viewkeeper.plan.scopes import NamedColumn, OuterNames, Scope, Source, Subqueries
from viewkeeper.plan.select_generators import generated_items, generated_over_aggregates, generates_over_aggregates
from viewkeeper.plan.set_operations import distinct
from viewkeeper.plan.subqueries import filtered, with_subqueries
from viewkeeper.plan.subquery_calls import has_subquery, is_same_subquery, subquery_of
from viewkeeper.plan.time_windows import with_time_window
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.windows import (
    has_window,
    note_conversions,
    partitioned,
    window_inputs,
    with_named_windows,
    with_windows,
)

_HANDLED = frozenset((
    "expressions", "from_", "joins", "where", "group", "having", "hint", "laterals", "with_", "kind", "distinct",
    "qualify", "windows", "order", "limit", "offset",
))  # fmt: skip
_REFUSED = {
    "pivots": "PIVOT_NOT_YET",
    "sample": "TABLESAMPLE_NOT_YET",
}


class Clause(Protocol):
    """FROM and WHERE of a block."""

    @property
    def outer(self) -> OuterNames | None:
        """In a subquery, the names of the query around it."""

    @property
    def later(self) -> list[exp.Expr]:
        """Conditions of WHERE to be applied to the joined rows."""

    def joined(self) -> Source:
        """Return the rows that they give."""


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list: its name and its bound tree."""

    name: str
    tree: exp.Expr


@dataclass(frozen=True)
class Body:
    """A SELECT block before its projection: everything is over ``node``.

    Args:
        node: the joined and filtered rows, grouped where the block aggregates.
        trees: the SELECT list.
        orders: the ORDER BY items.
        carried: the columns that were to be carried along.
        aggregated: whether the block aggregates.
        having: of a global aggregate in a subquery its HAVING, which the query around it applies.
        is_global: whether it aggregates all rows: without GROUP BY, by (), or by ALL where all are aggregates.
    """

    node: Node
    trees: tuple[exp.Expr, ...]
    orders: tuple[exp.Expr, ...]
    carried: tuple[exp.Expr, ...]
    aggregated: bool = False
    having: exp.Expr | None = None
    is_global: bool = False


def plan_select(
    select: exp.Select,
    clause: Clause,
    context: Context,
    order: Sequence[OrderItem] = (),
    subqueries: Subqueries | None = None,
) -> tuple[Source, tuple[int, ...]]:
    """Return the source of one SELECT block and the positions of the ORDER BY items in it.

    Args:
        select: the block; its own ORDER BY, LIMIT and OFFSET are the caller's.
        clause: its FROM and WHERE.
        context: the statement.
        order: ORDER BY items; what is not among the selected columns becomes a hidden column.
        subqueries: binds the subqueries in it.
    """
    check_clauses(select, context)
    if generates_over_aggregates(select):
        return _generated(select, clause, context, order)
    source, made = generated_items(select, clause.joined(), context, clause.outer)
    scope = Scope(source.columns, source.node.schema, context, clause.outer, subqueries)
    node = source.node
    for condition in clause.later:
        node = filtered(node, bind(condition, scope, aggregates="WHERE"), context, "WHERE")
    source, scope = with_time_window(select, order, Source(node, source.columns), scope)
    node = source.node
    items = items_of(select, scope, made)
    orders = [order_tree(item, items, scope, select) for item in order]
    qualify = qualify_trees(select, items, scope)
    body = body_of(select, node, items, [*orders, *qualify], scope)
    node, trees = computed(body, len(items) + len(orders), context)
    translator = Translator(node.schema, context)
    expressions = [translator.expression(tree) for tree in trees[: len(items)]]
    positions = []
    for expression in map(translator.expression, trees[len(items) :]):
        if expression not in expressions:
            expressions.append(expression)
        positions.append(expressions.index(expression))
    names = [item.name for item in items]
    hidden = [f"__order_{i}" for i in range(len(expressions) - len(names))]
    project = project_with_key(node, expressions, [*names, *hidden])
    source = Source(project, tuple(NamedColumn(None, name, i) for i, name in enumerate(names)))
    if not select.args.get("distinct"):
        return source, tuple(positions)
    if hidden:
        raise order_not_selected(select, context)
    return distinct(source, select, context), tuple(positions)


def _generated(
    select: exp.Select, clause: Clause, context: Context, order: Sequence[OrderItem]
) -> tuple[Source, tuple[int, ...]]:
    if order:
        raise context.refusal("CLAUSE_NOT_YET", select, "ORDER BY over rows that are made of aggregates")
    source = generated_over_aggregates(select, lambda inner: plan_select(inner, clause, context)[0], context)
    return (distinct(source, select, context) if select.args.get("distinct") else source), ()


def order_not_selected(select: exp.Select, context: Context) -> SqlError:
    """Return the error of an ORDER BY that DISTINCT rows do not have."""
    message = "With SELECT DISTINCT, ORDER BY can only use what is selected: select it too, or leave it out."
    return context.error("ORDER_BY_NOT_SELECTED", message, select)


def check_clauses(select: exp.Select, context: Context) -> None:
    """Refuse the clauses of a block that are not maintained."""
    for argument, value in select.args.items():
        if value and argument not in _HANDLED:
            at = value if isinstance(value, exp.Expr) and argument != "distinct" else select
            raise context.refusal(_REFUSED.get(argument, "CLAUSE_NOT_YET"), at)


def items_of(select: exp.Select, scope: Scope, made: Mapping[int, Sequence[NamedColumn]] | None = None) -> list[Item]:
    """Return the bound SELECT list; ``made`` are the columns that generators have made, by their place in it."""
    items: list[Item] = []
    aliases: dict[str, exp.Expr] = {}
    for number, tree in enumerate(select.expressions):
        if made and number in made:
            columns = [Item(c.name, bound_column(scope.reference(c.position), tree)) for c in made[number]]
            aliases |= {column.name.lower(): column.tree for column in columns}
            items += columns
            continue
        star = _star(tree, scope)
        if star is not None:
            items += star
            continue
        tree = with_named_windows(tree, select, scope.context)
        bound = unwrapped(bind(tree, scope, aliases, windows=True))
        bound.parent = select
        note_conversions(tree, scope, aliases)
        name = tree.alias if isinstance(tree, exp.Alias) else spark_name(scope.displayed(tree))
        items.append(Item(name, bound))
        if isinstance(tree, exp.Alias):
            aliases.setdefault(name.lower(), bound)
    return items


def _star(tree: exp.Expr, scope: Scope) -> list[Item] | None:
    star = tree.this if isinstance(tree, exp.Column) else tree
    if not isinstance(star, exp.Star):
        return None
    if star.args.get("replace") or star.args.get("rename"):
        raise scope.context.refusal("CLAUSE_NOT_YET", tree, "* REPLACE or * RENAME")
    fields = fields_of_star(tree, scope, bound_column) if isinstance(tree, exp.Column) else None
    if fields is not None:
        return _some_fields(fields, star, scope.context)
    columns = scope.expand_star(tree, tree.table if isinstance(tree, exp.Column) else None)
    for left_out in star.args.get("except_") or ():
        inner = Scope(columns, scope.schema, scope.context)
        found = inner.find(left_out if isinstance(left_out, exp.Column) else exp.Column(this=left_out))
        if found is None:
            raise inner.unresolved(left_out)
        columns = [column for column in columns if column != found[0]]
    return [Item(column.name, bound_column(scope.reference(column.position), tree)) for column in columns]


def _some_fields(fields: Sequence[tuple[str, exp.Expr]], star: exp.Star, context: Context) -> list[Item]:
    """Return the fields of a STRUCT without those after EXCEPT."""
    known = {name.lower() for name, _ in fields}
    left_out = {field.name.lower(): field for field in star.args.get("except_") or ()}
    for name, field in left_out.items():
        if name not in known:
            message = f"There is no field '{field.name}' to leave out. {suggestion(name, known)}"
            raise context.error("UNRESOLVED_COLUMN", message, field)
    return [Item(name, field) for name, field in fields if name.lower() not in left_out]


def body_of(
    select: exp.Select,
    below: Node,
    items: Sequence[Item],
    orders: Sequence[exp.Expr],
    scope: Scope,
    carried: Sequence[int] = (),
    having_later: bool = False,
) -> Body:
    """Return a block's rows, grouped where it aggregates, and its expressions over them.

    Args:
        select: the block.
        below: its joined and filtered rows.
        items: its SELECT list.
        orders: its bound ORDER BY items.
        scope: what its names mean.
        carried: positions of columns that are kept: an aggregate groups by them too.
        having_later: whether the HAVING of a global aggregate is returned instead of applied.
    """
    kept: tuple[exp.Expr, ...] = tuple(
        bound_column(ColumnRef(p, below.schema.types[p], below.schema.columns[p].nullable)) for p in carried
    )
    trees: list[exp.Expr] = [item.tree for item in items]
    if not is_aggregated(select, [*trees, *orders]):
        return Body(below, tuple(trees), tuple(orders), kept)
    context = scope.context
    group = _group(select, items, scope)
    is_global = not group.trees and group.sets is None
    condition = _having(select, items, _having_scope(select, below, group, items, scope))
    rest = [*trees, *orders, *([] if condition is None else [condition])]
    below, group, rest = _below_aggregate(below, group, rest, context)
    if kept and group.sets is not None:
        raise context.refusal("CORRELATION_NOT_YET", select, "a column of the outer query beside GROUPING SETS")
    aggregation = Aggregation(below, GroupBy((*kept, *group.trees), group.sets), context)
    lowered = [aggregation.lower(tree) for tree in rest]
    kept = tuple(aggregation.lower(tree) for tree in kept)
    condition = lowered.pop() if condition is not None else None
    node: Node = aggregation.node()
    if condition is not None and not (having_later and is_global):
        node, condition = filtered(node, condition, context, "HAVING"), None
    outputs = tuple(lowered[: len(trees)])
    return Body(node, outputs, tuple(lowered[len(trees) :]), kept, True, condition, is_global)


def computed(body: Body, count: int, context: Context) -> tuple[Node, list[exp.Expr]]:
    """Return the rows of a body with its subqueries joined and its windows computed, and its first trees over them.

    Args:
        body: the block; behind ``count`` trees of its SELECT list and ORDER BY stands the condition of QUALIFY.
        count: how many trees.
        context: the statement.
    """
    node, trees = with_subqueries(body.node, [*body.trees, *body.orders], context)
    if any(map(has_window, trees)):
        node, trees = with_windows(node, [partitioned(tree, body.carried) for tree in trees], context)
        for tree in trees[count:]:
            node = filtered(node, tree, context, "QUALIFY")
    return node, trees[:count]


def is_aggregated(select: exp.Select, trees: Sequence[exp.Expr]) -> bool:
    """Return whether a block with these expressions aggregates."""
    return bool(select.args.get("group") or select.args.get("having") or any(map(_aggregates, trees)))


def _having(select: exp.Select, items: Sequence[Item], scope: Scope) -> exp.Expr | None:
    having = select.args.get("having")
    if having is None:
        return None
    bound = bind(_with_outputs(having.this, items, scope), scope)
    bound.parent = having
    return bound


def _having_scope(select: exp.Select, below: Node, group: GroupBy, items: Sequence[Item], scope: Scope) -> Scope:
    """Return what names mean in HAVING; groups of subqueries are typed too late for those in it to see them."""
    if select.args.get("having") is None or any(map(has_subquery, group.trees)):
        return scope

    def over_groups(tree: exp.Expr) -> Expression:
        aggregation = Aggregation(below, group, scope.context)
        lowered = aggregation.lower(tree)
        return Translator(aggregation.schema, scope.context).expression(lowered)

    selected = {item.name.lower(): item.tree for item in reversed(items) if not has_subquery(item.tree)}
    return HavingScope(scope, selected, over_groups)


def _below_aggregate(
    node: Node, group: GroupBy, trees: Sequence[exp.Expr], context: Context
) -> tuple[Node, GroupBy, list[exp.Expr]]:
    """Join the subqueries whose values are aggregated or grouped by to ``node``."""
    grouped = [part for tree in group.trees for part in tree.walk() if subquery_of(part)]
    inner = [part for tree in trees for part in tree.walk() if subquery_of(part) and _inside_aggregate(part)]
    calls = [*grouped, *inner]
    if not calls:
        return node, group, list(trees)
    node, values = with_subqueries(node, calls, context)

    def replaced(part: exp.Expr) -> exp.Expr:
        if subquery_of(part) and (part in grouped or _inside_aggregate(part)):
            return next(v for call, v in zip(calls, values, strict=True) if is_same_subquery(call, part)).copy()
        return part

    return (
        node,
        GroupBy(tuple(t.transform(replaced) for t in group.trees), group.sets),
        [tree.transform(replaced) for tree in trees],
    )


def _group(select: exp.Select, items: Sequence[Item], scope: Scope) -> GroupBy:
    group = select.args.get("group")
    if group is None:
        return GroupBy()
    if group.args.get("totals"):
        raise scope.context.refusal("CLAUSE_NOT_YET", group, "GROUP BY ... WITH TOTALS")
    if group.args.get("all"):
        return GroupBy(tuple(item.tree for item in items if not has_aggregate(item.tree)))
    return group_by(group, lambda tree: _group_item(tree, items, scope), scope.context)


def _group_item(tree: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    context = scope.context
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit():
        position = int(tree.name)
        if not 1 <= position <= len(items):
            message = (
                f"GROUP BY position {position} is not in the SELECT list, which has {len(items)} columns: "
                "write the number of one of them, or its name."
            )
            raise context.error("GROUP_BY_POS_OUT_OF_RANGE", message, tree)
        bound = items[position - 1].tree
    else:
        aliases = {item.name.lower(): item.tree for item in reversed(items)}
        bound = unwrapped(bind(tree, scope, aliases))
    if has_aggregate(bound):
        raise context.error(
            "GROUP_BY_AGGREGATE", "An aggregate cannot stand in GROUP BY: compute it in a subquery in FROM.", tree
        )
    return bound


def qualify_trees(select: exp.Select, items: Sequence[Item], scope: Scope) -> list[exp.Expr]:
    """Return the condition of QUALIFY, bound; none where there is none."""
    clause = select.args.get("qualify")
    if clause is None:
        return []
    tree = with_named_windows(clause.this, select, scope.context)
    _check_clear(tree, items, scope)
    bound = bind(_with_outputs(tree, items, scope), scope, windows=True)
    bound.parent = select
    if not any(map(has_window, [bound, *(item.tree for item in items)])):
        message = "QUALIFY needs a window function, in it or in the SELECT list: use WHERE or HAVING."
        raise scope.context.error("QUALIFY_REQUIRES_WINDOW_FUNCTION", message, clause)
    return [bound]


def _check_clear(tree: exp.Expr, items: Sequence[Item], scope: Scope) -> None:
    """Refuse what Spark refuses: aggregates, and an alias that is also a column that a window of the list reads."""
    read = [column for item in items for column in window_inputs(item.tree)]
    for node in tree.copy().walk():
        if node.find_ancestor(exp.Query) is not None:
            continue
        if aggregate_name(node) and not _is_over_window(node):
            message = "QUALIFY reads what the query returns: give the aggregate an alias in the SELECT list, name that."
            raise scope.context.error("MISSING_GROUP_BY", message, node)
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            continue
        name = node.name.lower()
        means = [item.tree for item in items if item.name.lower() == name]
        if means and any(c.meta["name"].lower() == name and reference_of(means[0]) != reference_of(c) for c in read):
            message = f"'{node.name}' may be the alias or the column that a window reads: give the alias another name."
            raise scope.context.error("AMBIGUOUS_REFERENCE", message, node)


def order_tree(item: OrderItem, items: Sequence[Item], scope: Scope, select: exp.Select) -> exp.Expr:
    """Return what an ORDER BY item of ``select`` orders by, bound."""
    position = item.output_position(len(items), scope.context)
    if position is not None:
        return items[position].tree
    tree = with_named_windows(item.tree, select, scope.context)
    return unwrapped(bind(_with_outputs(tree, items, scope), scope, windows=True))


def _aggregates(tree: exp.Expr) -> bool:
    names = (node.name.lower() for node in tree.find_all(exp.Anonymous))
    return has_aggregate(tree) or any(name in GROUPING_FUNCTIONS for name in names)


def _inside_aggregate(node: exp.Expr) -> bool:
    parent = node.parent
    while parent is not None and (not _is_aggregate(parent) or _is_over_window(parent)):
        parent = parent.parent
    return parent is not None


def _is_aggregate(node: exp.Expr) -> bool:
    return aggregate_name(node) is not None or isinstance(node, exp.Filter)


def _is_over_window(node: exp.Expr) -> bool:
    """Return whether ``node``, bound or not, is a call to which an OVER belongs."""
    while isinstance(node.parent, AROUND_CALLS) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _with_outputs(tree: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """Return ``tree`` with the names of output columns replaced by what they compute, outside of aggregates."""

    def replacement(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and len(node.parts) == 1 and "reference" not in node.meta:
            found = [item.tree for item in items if item.name.lower() == node.name.lower()]
            if found and not _inside_aggregate(node) and node.find_ancestor(exp.Query) is None:
                return exp.Paren(this=found[0].copy())
        return node

    return tree.transform(replacement)
