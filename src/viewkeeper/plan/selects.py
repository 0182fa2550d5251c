"""One SELECT block over its joined FROM clause: projection, aggregation, HAVING, and what orders it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from viewkeeper.plan.aggregates import Aggregation
from viewkeeper.plan.binding import aggregate_name, bind, bound_column, has_aggregate, unwrapped
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import GROUPING_FUNCTIONS
from viewkeeper.plan.grouping_sets import GroupBy, group_by
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.names import spark_name
from viewkeeper.plan.nodes import Filter, Node
from viewkeeper.plan.ordering import OrderItem
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.plan.select_generators import generated_items, generated_over_aggregates, generates_over_aggregates
from viewkeeper.plan.set_operations import distinct
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.windows import has_window, with_named_windows, with_windows

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

    def joined(self) -> Source:
        """Return the rows that they give."""


@dataclass(frozen=True)
class Item:
    """One item of a SELECT list: its name and its bound tree."""

    name: str
    tree: exp.Expr


def plan_select(
    select: exp.Select, clause: Clause, context: Context, order: Sequence[OrderItem] = ()
) -> tuple[Source, tuple[int, ...]]:
    """Return the source of one SELECT block and the positions of the ORDER BY items in it.

    Args:
        select: the block; its own ORDER BY, LIMIT and OFFSET are the caller's.
        clause: its FROM and WHERE.
        context: the statement.
        order: ORDER BY items; what is not among the selected columns becomes a hidden column.
    """
    for argument, value in select.args.items():
        if value and argument not in _HANDLED:
            at = value if isinstance(value, exp.Expr) and argument != "distinct" else select
            raise context.refusal(_REFUSED.get(argument, "CLAUSE_NOT_YET"), at)
    if generates_over_aggregates(select):
        return _generated(select, clause, context, order)
    source, made = generated_items(select, clause.joined(), context)
    scope = Scope(source.columns, source.node.schema, context)
    items = _items(select, scope, made)
    orders = [_order_tree(item, items, scope, select) for item in order]
    trees = [item.tree for item in items]
    node: Node = source.node
    having = select.args.get("having")
    qualify = _qualify(select, items, scope)
    if select.args.get("group") or having is not None or any(map(_aggregates, [*trees, *orders, *qualify])):
        node, trees, others = _aggregated(select, node, items, [*orders, *qualify], scope)
        orders, qualify = others[: len(orders)], others[len(orders) :]
    if any(map(has_window, [*trees, *orders, *qualify])):
        node, every = with_windows(node, [*trees, *orders, *qualify], context)
        trees, orders = every[: len(trees)], every[len(trees) : len(trees) + len(orders)]
        for tree in every[len(trees) + len(orders) :]:
            condition = Translator(node.schema, context).condition(tree, "QUALIFY")
            node = Filter(node, condition, node.schema, node.key)
    translator = Translator(node.schema, context)
    expressions = [translator.expression(tree) for tree in trees]
    positions = []
    for expression in map(translator.expression, orders):
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
        message = "With SELECT DISTINCT, ORDER BY can only use what is selected: select it too, or leave it out."
        raise context.error("ORDER_BY_NOT_SELECTED", message, select)
    return distinct(source, select, context), tuple(positions)


def _generated(
    select: exp.Select, clause: Clause, context: Context, order: Sequence[OrderItem]
) -> tuple[Source, tuple[int, ...]]:
    if order:
        raise context.refusal("CLAUSE_NOT_YET", select, "ORDER BY over rows that are made of aggregates")
    source = generated_over_aggregates(select, lambda inner: plan_select(inner, clause, context)[0], context)
    return (distinct(source, select, context) if select.args.get("distinct") else source), ()


def _items(select: exp.Select, scope: Scope, made: Mapping[int, Sequence[NamedColumn]]) -> list[Item]:
    items: list[Item] = []
    aliases: dict[str, exp.Expr] = {}
    for number, tree in enumerate(select.expressions):
        if number in made:
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
        name = tree.alias if isinstance(tree, exp.Alias) else spark_name(tree)
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
    columns = scope.expand_star(tree, tree.table if isinstance(tree, exp.Column) else None)
    for left_out in star.args.get("except_") or ():
        inner = Scope(columns, scope.schema, scope.context)
        found = inner.find(left_out if isinstance(left_out, exp.Column) else exp.Column(this=left_out))
        if found is None:
            raise inner.unresolved(left_out)
        columns = [column for column in columns if column != found[0]]
    return [Item(column.name, bound_column(scope.reference(column.position), tree)) for column in columns]


def _aggregated(
    select: exp.Select, below: Node, items: Sequence[Item], orders: Sequence[exp.Expr], scope: Scope
) -> tuple[Node, list[exp.Expr], list[exp.Expr]]:
    aggregation = Aggregation(below, _group(select, items, scope), scope.context)
    trees = [aggregation.lower(item.tree) for item in items]
    lowered_orders = [aggregation.lower(tree) for tree in orders]
    having = select.args.get("having")
    condition = None
    if having is not None:
        bound = bind(_with_outputs(having.this, items, scope), scope)
        bound.parent = having
        condition = aggregation.lower(bound)
    node: Node = aggregation.node()
    if condition is not None:
        expression = Translator(node.schema, scope.context).condition(condition, "HAVING")
        node = Filter(node, expression, node.schema, node.key)
    return node, trees, lowered_orders


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
            message = f"GROUP BY position {position} is not in the SELECT list, which has {len(items)} columns."
            raise context.error("GROUP_BY_POS_OUT_OF_RANGE", message, tree)
        bound = items[position - 1].tree
    else:
        aliases = {item.name.lower(): item.tree for item in reversed(items)}
        bound = unwrapped(bind(tree, scope, aliases))
    if has_aggregate(bound):
        raise context.error("GROUP_BY_AGGREGATE", "An aggregate cannot stand in GROUP BY.", tree)
    return bound


def _qualify(select: exp.Select, items: Sequence[Item], scope: Scope) -> list[exp.Expr]:
    """Return the condition of QUALIFY, bound; none where there is none."""
    clause = select.args.get("qualify")
    if clause is None:
        return []
    tree = with_named_windows(clause.this, select, scope.context)
    bound = bind(_with_outputs(tree, items, scope), scope, windows=True)
    bound.parent = select
    if not any(map(has_window, [bound, *(item.tree for item in items)])):
        message = "QUALIFY needs a window function, in it or in the SELECT list: use WHERE or HAVING."
        raise scope.context.error("QUALIFY_REQUIRES_WINDOW_FUNCTION", message, clause)
    return [bound]


def _order_tree(item: OrderItem, items: Sequence[Item], scope: Scope, select: exp.Select) -> exp.Expr:
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
    while parent is not None and not aggregate_name(parent):
        parent = parent.parent
    return parent is not None


def _with_outputs(tree: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """Return ``tree`` with the names of output columns replaced by what they compute, outside of aggregates."""

    def replacement(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and len(node.parts) == 1 and "reference" not in node.meta:
            found = [item.tree for item in items if item.name.lower() == node.name.lower()]
            if found and not _inside_aggregate(node):
                return exp.Paren(this=found[0].copy())
        return node

    return tree.transform(replacement)
