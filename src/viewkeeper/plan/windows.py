"""Window functions: bound trees over a query block's rows → bound trees over a chain of Window nodes.

Functions over one partitioning and order share a node; those over another one stand in a node above it. A window
inside another is computed first. What they partition, order and compute by, if it is no column yet, is computed by a
projection below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.expressions.tree import ColumnRef, Expression
from viewkeeper.plan.binding import bind, bound_column, has_query, unwrapped
from viewkeeper.plan.context import Context
from viewkeeper.plan.function_names import AGGREGATES, GROUPING_FUNCTIONS
from viewkeeper.plan.nodes import Node, Project, SortKey, Window, WindowCall
from viewkeeper.plan.ordering import order_item
from viewkeeper.plan.scopes import Scope
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.window_calls import TypedWindow, typed_window
from viewkeeper.zset.schema import Column, Schema


@dataclass(frozen=True)
class _Order:
    expression: Expression
    ascending: bool
    nulls_first: bool


@dataclass
class _Layer:
    """The functions over one partitioning and order."""

    partition: tuple[Expression, ...]
    order: tuple[_Order, ...]
    calls: list[TypedWindow] = field(default_factory=list)


def has_window(tree: exp.Expr) -> bool:
    """Return whether a window function is called anywhere in ``tree``."""
    return tree.find(exp.Window) is not None


def window_inputs(tree: exp.Expr) -> list[exp.Expr]:
    """Return what windows in ``tree`` compute, partition and order by, as far as these are bound columns."""
    found = []
    for window in tree.find_all(exp.Window):
        order = window.args.get("order")
        ordered = [item.this for item in order.expressions] if order is not None else []
        parts = [*window.this.iter_expressions(), *(window.args.get("partition_by") or ()), *ordered]
        found += [part for part in map(unwrapped, parts) if "reference" in part.meta]
    return found


def with_named_windows(tree: exp.Expr, select: exp.Select, context: Context) -> exp.Expr:
    """Return a copy of ``tree`` in which the windows of the WINDOW clause stand where they are named.

    Raises:
        SqlError: ``MISSING_WINDOW_SPECIFICATION``.
    """
    definitions = {window.this.name.lower(): window for window in select.args.get("windows") or ()}

    def replacement(node: exp.Expr) -> exp.Expr:
        alias = node.args.get("alias") if isinstance(node, exp.Window) else None
        if alias is None:
            return node
        found = definitions.get(alias.name.lower())
        if found is None:
            message = f"There is no window '{alias.name}': define it by WINDOW {alias.name} AS (…)."
            raise context.error("MISSING_WINDOW_SPECIFICATION", message, alias)
        parts = {part: found.copy().args.get(part) for part in ("partition_by", "order", "spec")}
        return exp.Window(this=node.this, over="OVER", **parts)

    return tree.transform(replacement) if has_window(tree) else tree


def note_conversions(tree: exp.Expr, scope: Scope, aliases: Mapping[str, exp.Expr]) -> None:
    """Note at the bounds of RANGE frames whether Spark converts them to the order's type: that shows in names.

    Args:
        tree: an expression as parsed, its windows written out; it has been bound without an error.
        scope: what its names mean.
        aliases: bound expressions of earlier SELECT items.
    """
    translator = Translator(scope.schema, scope.context)
    for window in tree.find_all(exp.Window):
        spec, order = window.args.get("spec"), window.args.get("order")
        if spec is None or order is None or len(order.expressions) != 1 or has_query(window):
            continue
        by = bind(order_item(order.expressions[0]).tree, scope, aliases)
        if any(call.name.lower() in AGGREGATES | GROUPING_FUNCTIONS for call in by.find_all(exp.Anonymous)):
            # An INT is converted to the BIGINT that most of them give.
            continue
        sql_type = translator.expression(by).type
        for distance in (spec.args.get("start"), spec.args.get("end")):
            if isinstance(distance, exp.Expr) and not isinstance(distance, exp.Interval):
                same = translator.expression(bind(distance, scope)).type == sql_type
                distance.meta["converted"] = not same and sql_type.is_numeric


def partitioned(tree: exp.Expr, more: Sequence[exp.Expr]) -> exp.Expr:
    """Return a bound tree whose windows are partitioned by ``more`` too: what ties a subquery to the query around."""
    if not more or not has_window(tree):
        return tree
    result = tree.copy()
    result.parent = tree.parent
    for window in result.find_all(exp.Window):
        window.set("partition_by", [*(window.args.get("partition_by") or ()), *(part.copy() for part in more)])
    return result


def with_windows(node: Node, trees: Sequence[exp.Expr], context: Context) -> tuple[Node, list[exp.Expr]]:
    """Return ``node`` with the window functions of ``trees`` computed above it, and the trees over that.

    Args:
        node: the rows; they have a key.
        trees: bound to ``node``.
        context: the statement.

    Raises:
        SqlError: wrong windows, at their place.
        UnsupportedSql: ``WINDOW_FUNCTION_NOT_YET``.
    """
    lowered = [tree.copy() for tree in trees]
    for tree, original in zip(lowered, trees, strict=True):
        tree.parent = original.parent
    while True:
        found = [w for tree in lowered for w in tree.find_all(exp.Window) if not _inner_windows(w)]
        if not found:
            return node, lowered
        node, columns = _computed(node, found, context)
        places = {id(window): column for window, column in zip(found, columns, strict=True)}
        lowered = [_replaced(tree, places) for tree in lowered]


def _replaced(tree: exp.Expr, places: dict[int, exp.Expr]) -> exp.Expr:
    parent = tree.parent
    tree.parent = None
    result = tree.transform(lambda node: places.get(id(node), node), copy=False)
    assert result is not None
    result.parent = parent
    return result


def _inner_windows(window: exp.Window) -> bool:
    return any(isinstance(node, exp.Window) and node is not window for node in window.walk())


def _computed(node: Node, windows: Sequence[exp.Window], context: Context) -> tuple[Node, list[exp.Expr]]:
    """Return ``node`` with ``windows`` computed, and the column of each."""
    if node.key is None:
        message = "The query reads a view whose key is not known: create that view again."
        raise context.error("RELATION_HAS_NO_KEY", message, windows[0])
    translator = Translator(node.schema, context)
    layers: list[_Layer] = []
    homes: list[tuple[_Layer, int]] = []
    for window in windows:
        partition = tuple(_comparable(tree, translator, "PARTITION BY") for tree in window.args["partition_by"] or ())
        order = _order_of(window, translator)
        layer = next((w for w in layers if (w.partition, w.order) == (partition, order)), None)
        if layer is None:
            layer = _Layer(partition, order)
            layers.append(layer)
        call = typed_window(window, node, [item.expression.type for item in order], context)
        if call not in layer.calls:
            layer.calls.append(call)
        homes.append((layer, layer.calls.index(call)))
    node, starts = _stacked(node, layers)
    columns: list[exp.Expr] = []
    for window, (layer, number) in zip(windows, homes, strict=True):
        position = starts[layers.index(layer)] + number
        column = node.schema.columns[position]
        columns.append(bound_column(ColumnRef(position, column.type, column.nullable), window))
    return node, columns


def _order_of(window: exp.Window, translator: Translator) -> tuple[_Order, ...]:
    clause = window.args.get("order")
    items = map(order_item, clause.expressions) if clause is not None else ()
    return tuple(_Order(_comparable(i.tree, translator, "ORDER BY"), i.ascending, i.nulls_first) for i in items)


def _comparable(tree: exp.Expr, translator: Translator, clause: str) -> Expression:
    expression = translator.expression(tree)
    if expression.type.contains_map:
        message = (
            f"{clause} compares values, and those of type {str(expression.type).upper()} have no order: choose others."
        )
        raise translator.context.error("DATATYPE_MISMATCH", message, tree)
    return expression


def _stacked(node: Node, layers: Sequence[_Layer]) -> tuple[Node, list[int]]:
    """Return ``node`` below one Window a layer, and where the columns of each begin."""
    inputs: list[Expression] = [ColumnRef(i, c.type, c.nullable) for i, c in enumerate(node.schema.columns)]
    width = len(inputs)

    def position(expression: Expression) -> int:
        if expression not in inputs:
            inputs.append(expression)
        return inputs.index(expression)

    parts = []
    for layer in layers:
        partition = tuple(dict.fromkeys(map(position, layer.partition)))
        order = tuple(SortKey(position(i.expression), i.ascending, i.nulls_first) for i in layer.order)
        parts.append((partition, order, tuple(_positioned(call, position) for call in layer.calls)))
    if len(inputs) > width:
        computed = (Column(f"__window_{i}", e.type, e.nullable) for i, e in enumerate(inputs[width:]))
        node = Project(node, tuple(inputs), Schema((*node.schema.columns, *computed)), node.key)
    starts = []
    for layer, (partition, order, calls) in zip(layers, parts, strict=True):
        starts.append(len(node.schema))
        results = (Column(call.name, call.type, call.nullable) for call in layer.calls)
        schema = Schema((*node.schema.columns, *results))
        node = Window(node, partition, order, calls, schema, node.key)
    return node, starts


def _positioned(call: TypedWindow, position: Callable[[Expression], int]) -> WindowCall:
    return WindowCall(
        call.function,
        tuple(position(argument) for argument in call.arguments),
        call.constants,
        call.frame.unit,
        call.frame.start,
        call.frame.stop,
        call.ignore_nulls,
        call.type,
        call.nullable,
        None if call.filter is None else position(call.filter),
    )
