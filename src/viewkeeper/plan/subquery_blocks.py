"""One SELECT block as a subquery: its rows, what ties them to the query around it, and what is left for the join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression, columns_of, is_portable, shift_columns
from viewkeeper.plan.binding import bind, bound_column, has_aggregate, has_query, rebound, reference_of
from viewkeeper.plan.context import Context
from viewkeeper.plan.correlated_aggregates import check_aggregates
from viewkeeper.plan.correlation import Block, Key, Outer, equality_sides
from viewkeeper.plan.join_order import with_keys
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.limits import first_rows, sort_keys
from viewkeeper.plan.nodes import Aggregate, Node, Project
from viewkeeper.plan.ordering import Ending, ending_of
from viewkeeper.plan.scopes import NamedColumn, Scope, Source, Subqueries
from viewkeeper.plan.selects import (
    Body,
    Clause,
    Item,
    body_of,
    check_clauses,
    computed,
    is_aggregated,
    items_of,
    order_not_selected,
    order_tree,
    qualify_trees,
)
from viewkeeper.plan.subqueries import filtered
from viewkeeper.plan.time_windows import with_time_window
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.windows import has_window
from viewkeeper.zset.schema import Schema

_OF_SEVERAL = ("group", "having", "distinct", "qualify", "limit", "offset")


@dataclass
class _Ties:
    """What ties a block's rows to the query around it.

    Args:
        width: how many columns the rows have; outer columns stand behind them in conditions.
        keys: equalities: the inner side, the outer side, whether NULL equals NULL.
        residual: further conditions.
    """

    width: int
    keys: list[tuple[Expression, Expression, bool]] = field(default_factory=list)
    residual: list[Expression] = field(default_factory=list)

    def reads(self) -> list[int]:
        """Return the inner columns that the further conditions read."""
        return sorted({p for condition in self.residual for p in columns_of(condition) if p < self.width})

    def moved(self, expression: Expression, mapping: dict[int, int], behind: int) -> Expression:
        """Return ``expression`` over inner columns that have moved and outer ones that begin at ``behind``."""
        outer = {p: p - self.width + behind for p in columns_of(expression) if p >= self.width}
        return shift_columns(expression, mapping | outer)


def plan_block(
    select: exp.Select, clause: Clause, outer: Outer, context: Context, kind: str, subqueries: Subqueries
) -> Block:
    """Return the plan of a SELECT block that is a subquery.

    Args:
        select: the block.
        clause: its FROM and WHERE.
        outer: the query around it.
        context: the statement.
        kind: ``exists``, ``any`` or ``scalar``; ``lateral`` where its rows stand beside those around it, ``optional``
            where a row around it stays that has none.
        subqueries: binds the subqueries in it.

    Raises:
        SqlError: ``UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY``, and what else is wrong in it.
        NeedsDomain: where outer columns stand where they cannot be pulled up from.
    """
    check_clauses(select, context)
    source = clause.joined()
    scope = Scope(source.columns, source.node.schema, context, outer, subqueries)
    check_aggregates(select, scope, outer)
    ending = ending_of(select, context)
    order = () if ending.all else ending.items
    source, scope = with_time_window(select, order, source, scope)
    node, ties = _filtered(source, clause, scope, outer)
    if kind == "lateral" and _is_plain(select):
        return _pairs(select, node, ties, scope, outer)
    items = _items(select, scope, outer, kind)
    node, carried = _carried(node, ties, scope, outer)
    orders = [order_tree(item, items, scope, select) for item in order]
    extra = [*orders, *qualify_trees(select, items, scope)]
    body = body_of(select, node, items, extra, scope, carried, having_later=True)
    whole = _Whole(select, ending, len(orders), bool(select.args.get("distinct")) and not _is_set(select, kind))
    if ties.reads() and (body.aggregated or kind == "scalar" or whole.counts or any(map(has_window, body.trees))):
        raise outer.demanded(*outer.positions)
    if body.is_global:
        if whole.cuts or extra or any(map(has_window, body.trees)):
            raise context.refusal("CORRELATION_NOT_YET", select, "LIMIT, a window or QUALIFY over a global aggregate")
        return _single(body, items, ties, outer)
    return _rows(body, items, ties, outer, whole, context)


def _filtered(source: Source, clause: Clause, scope: Scope, outer: Outer) -> tuple[Node, _Ties]:
    """Apply what is left of WHERE, and take out the conditions that are pulled up."""
    node, context = source.node, scope.context
    ties = _Ties(len(node.schema))
    pulling = Scope(scope.columns, scope.schema, context, outer, scope.subqueries, pulling=True)
    for condition in clause.later:
        if has_query(condition):
            node = filtered(node, bind(condition, scope, aggregates="WHERE"), context, "WHERE")
            continue
        bound = bind(condition, pulling, aggregates="WHERE")
        schema = Schema((*scope.schema.columns, *outer.columns()))
        expression = Translator(schema, context).condition(bound, "WHERE")
        sides = equality_sides(expression, ties.width)
        if sides is not None:
            ties.keys.append(sides)
        elif is_portable(expression):
            ties.residual.append(expression)
        else:
            raise outer.demanded(*outer.positions)
    return node, ties


def _items(select: exp.Select, scope: Scope, outer: Outer, kind: str) -> list[Item]:
    """Return the SELECT list; of EXISTS, for which only the number of rows counts, only where that depends on it."""
    if kind != "exists" or any(select.args.get(clause) for clause in ("group", "qualify", "limit", "offset")):
        return items_of(select, scope)
    plain = select.copy()
    plain.set("expressions", [tree for tree in plain.expressions if not has_query(tree)])
    # Names are looked up for their errors; outer ones are not tied to anything.
    anywhere = Scope(scope.columns, scope.schema, scope.context, Outer(outer.scope), None, pulling=True)
    anywhere.time_window = scope.time_window
    items = items_of(plain, anywhere)
    return items_of(select, scope) if is_aggregated(select, [item.tree for item in items]) else []


def _carried(node: Node, ties: _Ties, scope: Scope, outer: Outer) -> tuple[Node, list[int]]:
    """Return the rows with the inner side of each tie as a column, and where those are."""
    if not outer.domain:
        node, positions = with_keys(node, [inner for inner, _, _ in ties.keys])
        return node, positions
    positions = [outer.own(position, scope) for position in outer.positions]
    for number, position in enumerate(positions):
        column = outer.columns()[number]
        inner = scope.reference(position)
        ties.keys.append((inner, ColumnRef(ties.width + number, column.type, column.nullable), True))
    return node, positions


def _is_set(select: exp.Select, kind: str) -> bool:
    """Return whether equal rows of a block of this kind say no more than one of them."""
    return kind in ("exists", "any") and not select.args.get("limit") and not select.args.get("offset")


def _is_plain(select: exp.Select) -> bool:
    """Return whether the list is computed of each row alone, so that it may be computed beside a row around it too."""
    if any(select.args.get(clause) for clause in _OF_SEVERAL):
        return False
    return not any(has_query(t) or has_aggregate(t) or has_window(t) for t in select.expressions)


def _pairs(select: exp.Select, node: Node, ties: _Ties, scope: Scope, outer: Outer) -> Block:
    """Return the rows below the list, which is computed where they stand beside those around."""
    pulling = Scope(scope.columns, scope.schema, scope.context, outer, scope.subqueries, pulling=True)
    pulling.time_window = scope.time_window
    items = items_of(select, pulling)
    node, carried = _carried(node, ties, scope, outer)
    behind = len(node.schema)
    moved = {i: i for i in range(ties.width)}
    moved |= {ties.width + i: behind + i for i in range(len(outer.positions))}
    schema = Schema((*node.schema.columns, *outer.columns()))
    values = tuple(rebound(item.tree, schema, moved) for item in items)
    residual = tuple(ties.moved(condition, moved, behind) for condition in ties.residual)
    names = tuple(item.name for item in items)
    return Block(node, values, tuple(outer.positions), _keys(carried, ties), residual, names, stand_in=_stand_in(outer))


def _single(body: Body, items: Sequence[Item], ties: _Ties, outer: Outer) -> Block:
    behind = len(body.node.schema)
    residual = tuple(ties.moved(condition, {}, behind) for condition in ties.residual)
    keys = _keys([_position(tree) for tree in body.carried], ties)
    names = tuple(item.name for item in items)
    positions = tuple(outer.positions)
    return Block(body.node, body.trees, positions, keys, residual, names, True, body.having, _stand_in(outer))


@dataclass(frozen=True)
class _Whole:
    """What a block makes of its rows together.

    Args:
        select: the block.
        ending: its LIMIT, and the order that decides about it.
        orders: how many expressions it orders by.
        distinct: whether equal rows count once.
    """

    select: exp.Select
    ending: Ending
    orders: int
    distinct: bool

    @property
    def cuts(self) -> bool:
        """Whether rows are left out by their number; the one row of an aggregate is not."""
        return self.ending.limit == 0 or self.ending.offset > 0

    @property
    def counts(self) -> bool:
        """Whether it depends on which rows are together."""
        return self.distinct or self.ending.limit is not None or self.ending.offset > 0


def _rows(body: Body, items: Sequence[Item], ties: _Ties, outer: Outer, whole: _Whole, context: Context) -> Block:
    node, trees = computed(body, len(items) + whole.orders, context)
    translator = Translator(node.schema, context)
    columns = node.schema.columns
    reads = ties.reads()
    expressions: list[Expression] = [translator.expression(tree) for tree in trees[: len(items)]]
    expressions += [translator.expression(tree) for tree in body.carried]
    expressions += [ColumnRef(p, columns[p].type, columns[p].nullable) for p in reads]
    orders = []
    for expression in map(translator.expression, trees[len(items) :]):
        if expression not in expressions:
            if whole.distinct:
                raise order_not_selected(whole.select, context)
            expressions.append(expression)
        orders.append(expressions.index(expression))
    names = [item.name for item in items] + [f"tie_{i}" for i in range(len(expressions) - len(items))]
    result: Node = project_with_key(node, expressions, names)
    if whole.distinct:
        group = tuple(range(len(expressions)))
        plain = Project(node, tuple(expressions), result.schema.select(group), None)
        result = Aggregate(plain, group, (), plain.schema, group)
    first = len(items) + len(body.carried)
    if whole.ending.limit is not None or whole.ending.offset:
        shown = Source(result, tuple(NamedColumn(None, item.name, i) for i, item in enumerate(items)))
        order = sort_keys(shown, orders, whole.ending)
        tied = tuple(dict.fromkeys(range(len(items), first)))
        result = first_rows(result, tied, order, whole.ending, whole.select, context)
    moved = {position: first + i for i, position in enumerate(reads)}
    residual = tuple(ties.moved(condition, moved, len(result.schema)) for condition in ties.residual)
    values = tuple(bound_column(ColumnRef(i, e.type, e.nullable)) for i, e in enumerate(expressions[: len(items)]))
    keys = _keys(range(len(items), first), ties)
    named = tuple(item.name for item in items)
    return Block(result, values, tuple(outer.positions), keys, residual, named, stand_in=_stand_in(outer))


def _keys(positions: Sequence[int], ties: _Ties) -> tuple[Key, ...]:
    return tuple(
        Key(position, ties.moved(side, {}, 0), null_safe)
        for position, (_, side, null_safe) in zip(positions, ties.keys, strict=True)
    )


def _position(tree: exp.Expr) -> int:
    reference = reference_of(tree)
    assert reference is not None
    return reference.index


def _stand_in(outer: Outer) -> Node | None:
    return outer.domain_source().node if outer.domain else None
