"""``session_window(time, gap)``: times of which each is at most the gap behind the one before are one session.

As in Spark, rows of one session have the other columns of GROUP BY in common; without GROUP BY each row is a session.
They are told apart by window functions over those columns, so a change recomputes the rows that have them in common;
without any these are all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from viewkeeper.expressions.function import make
from viewkeeper.expressions.time_windows import window_between
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal
from viewkeeper.plan.binding import bind, has_aggregate, has_query, reference_of, unwrapped
from viewkeeper.plan.context import Context
from viewkeeper.plan.nodes import Filter, Node, Project
from viewkeeper.plan.parse import parse_expression
from viewkeeper.plan.place import Place
from viewkeeper.plan.scopes import NamedColumn, Scope
from viewkeeper.plan.translate import Translator
from viewkeeper.plan.window_arguments import with_aliases
from viewkeeper.plan.windows import with_windows
from viewkeeper.zset import schema as types
from viewkeeper.zset.schema import Column, Schema

NAME = "session_window"


def partition_of(
    select: exp.Select, call: exp.Anonymous, aliases: Mapping[str, exp.Expr], scope: Scope
) -> list[exp.Expr] | None:
    """Return what rows of one session have in common, bound: the other items of GROUP BY; None where each is its own.

    Args:
        select: the block.
        call: one of its calls, for errors.
        aliases: of its SELECT list, as parsed.
        scope: the columns below it.

    Raises:
        UnsupportedSql: ``TIME_WINDOW_NOT_YET`` where sessions are no group of their own.
    """
    if scope.outer is not None:
        # What ties the rows to the query around would have to be in common, too.
        raise scope.context.refusal("TIME_WINDOW_NOT_YET", call, "session_window() in a subquery outside of FROM")
    group = select.args.get("group")
    items = [tree.this if isinstance(tree, exp.Alias) else tree for tree in select.expressions]
    if group is None:
        if select.args.get("having") or any(map(has_aggregate, items)):
            raise scope.context.refusal("TIME_WINDOW_NOT_YET", call, "an aggregate of session_window()")
        return None
    sets = any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup"))
    if group.args.get("all"):
        trees = [tree for tree in items if not has_aggregate(tree)]
    else:
        trees = [with_aliases(_at_position(unwrapped(tree), items), aliases, scope) for tree in group.expressions]
    others = [tree for tree in map(unwrapped, trees) if not _is_session(tree)]
    nested = (exp.GroupingSets, exp.Cube, exp.Rollup, exp.Tuple)
    mixed = any(isinstance(t, nested) or has_query(t) or any(map(_is_session, t.walk())) for t in others)
    if sets or mixed:
        raise scope.context.refusal("TIME_WINDOW_NOT_YET", call, "session_window() within an expression of GROUP BY")
    if len(others) == len(trees):
        raise scope.context.refusal("TIME_WINDOW_NOT_YET", call, "session_window() that is not in GROUP BY")
    return [bind(tree, scope, aggregates="GROUP BY") for tree in others]


def _at_position(tree: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.name.isdigit():
        return tree
    position = int(tree.name)
    return items[position - 1] if 1 <= position <= len(items) else tree


def _is_session(tree: exp.Expr) -> bool:
    named = isinstance(tree, exp.Column) and tree.parts[0].name.lower() == NAME
    return named or (isinstance(tree, exp.Anonymous) and tree.name.lower() == NAME)


def with_sessions(
    node: Node, moment: Expression, gap: int, partition: Sequence[exp.Expr] | None, context: Context
) -> tuple[Node, int]:
    """Return the rows that are in a session, and the position of the column that holds it.

    Args:
        node: the rows.
        moment: the time of each.
        gap: in microseconds, less than a day; of none or less there are no sessions.
        partition: as of ``partition_of``.
        context: the statement.
    """
    translator = Translator(node.schema, context)
    groups = [translator.expression(tree) for tree in partition or ()]
    width, kind = len(node.schema), moment.type
    own = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns))
    names = ["moment", *(f"g{i}" for i in range(len(groups)))]
    node = _beside(node, own, [moment, *groups], names)
    start: Expression = ColumnRef(width, kind, moment.nullable)
    there = Call("is_not_null", (start,), types.BOOLEAN, False)
    node = Filter(node, there if gap > 0 else Literal(False, types.BOOLEAN), node.schema, node.key)
    finish: Expression = make("plus_duration", [start, Literal(gap, types.INTERVAL_DAY_TIME)], kind, time_zone="UTC")
    if partition is not None:
        kept = tuple(ColumnRef(i, column.type, column.nullable) for i, column in enumerate(node.schema.columns))
        node = _beside(node, kept, [finish], ["finish"])
        names.append("finish")
        groups_named = names[1:-1]
        over = f"PARTITION BY {', '.join(groups_named)}" if groups_named else ""
        begins = f"CASE WHEN LAG(finish) OVER ({over} ORDER BY moment) >= moment THEN 0 ELSE 1 END"
        kept = (*kept, ColumnRef(len(kept), kind, finish.nullable))
        node, numbers = _windowed(node, [f"SUM({begins}) OVER ({over} ORDER BY moment)"], names, width, context)
        node = _beside(node, kept, numbers, ["number"])
        names.append("number")
        over = f"PARTITION BY {', '.join([*groups_named, 'number'])}"
        node, (start, finish) = _windowed(
            node, [f"MIN(moment) OVER ({over})", f"MAX(finish) OVER ({over})"], names, width, context
        )
    made = window_between(start, finish)
    columns = (*node.schema.columns[:width], Column(NAME, made.type, False))
    return Project(node, (*own, made), Schema(columns), node.key), width


def _beside(node: Node, kept: Sequence[Expression], added: Sequence[Expression], names: Sequence[str]) -> Node:
    """Return the projection of ``node`` on columns of it and what is computed beside them."""
    columns = tuple(Column(name, e.type, e.nullable) for name, e in zip(names, added, strict=True))
    schema = Schema((*node.schema.columns[: len(kept)], *columns))
    return Project(node, (*kept, *added), schema, node.key)


def _windowed(
    node: Node, calls: Sequence[str], names: Sequence[str], first: int, context: Context
) -> tuple[Node, list[ColumnRef]]:
    """Return the rows with window functions, over columns that from ``first`` on are called ``names``, and theirs."""
    scope = Scope([NamedColumn(None, name, first + i) for i, name in enumerate(names)], node.schema, context)
    trees = [bind(_parsed(text), scope, windows=True) for text in calls]
    node, trees = with_windows(node, trees, context)
    found = [reference_of(tree) for tree in trees]
    return node, [reference for reference in found if reference is not None]


def _parsed(text: str) -> exp.Expr:
    tree = parse_expression(text, Place(text))
    for node in tree.walk():
        # No place of the user's.
        node.meta.pop("start", None)
        node.meta.pop("end", None)
    return tree
