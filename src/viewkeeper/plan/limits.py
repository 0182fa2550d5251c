"""ORDER BY … LIMIT … OFFSET inside a view: the first rows of an order, and what every change computes anew."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.plan.context import Context
from viewkeeper.plan.keys import project_with_key
from viewkeeper.plan.nodes import ENDLESS, RANKS_MAX, Node, SortKey, TopK, Window, walk
from viewkeeper.plan.ordering import Ending
from viewkeeper.plan.scopes import NamedColumn, Scope, Source
from viewkeeper.zset.schema import INT, Column, Schema


def sort_keys(source: Source, positions: Sequence[int], ending: Ending) -> tuple[SortKey, ...]:
    """Return the order that ``ending`` asks of ``source``.

    Args:
        source: the query.
        positions: where its ORDER BY items stand in it.
        ending: what ends it.
    """
    if ending.all:
        item = ending.items[0]
        columns = [column.position for column in source.columns]
        return tuple(SortKey(position, item.ascending, item.nulls_first) for position in columns)
    return tuple(
        SortKey(position, item.ascending, item.nulls_first)
        for position, item in zip(positions, ending.items, strict=True)
    )


def limited(source: Source, order: tuple[SortKey, ...], ending: Ending, query: exp.Expr, context: Context) -> Source:
    """Return the first rows of ``source``; of an order without LIMIT that is nothing that a view could keep.

    Args:
        source: the query, without what ends it.
        order: its order; ties are broken by its key.
        ending: LIMIT and OFFSET.
        query: for errors.
        context: the statement.

    Raises:
        UnsupportedSql: ``ORDER_BY_IN_VIEW``, ``OFFSET_WITHOUT_LIMIT``.
    """
    first = first_rows(source.node, (), order, ending, query, context)
    shown = [column for column in source.columns if not column.merged]
    scope = Scope(shown, first.schema, context)
    names = [column.name for column in shown]
    project = project_with_key(first, [scope.reference(column.position) for column in shown], names)
    return Source(project, tuple(NamedColumn(None, name, i) for i, name in enumerate(names)))


def first_rows(
    node: Node,
    partition: tuple[int, ...],
    order: tuple[SortKey, ...],
    ending: Ending,
    query: exp.Expr,
    context: Context,
) -> TopK:
    """Return the first rows of each partition of ``node``; arguments and errors as of ``limited``."""
    endless = ending.limit is None and query.args.get("offset") is not None
    if ending.limit is None and not endless:
        raise context.refusal("ORDER_BY_IN_VIEW", query.args.get("order") or query)
    if endless and not partition and context.is_strict:
        raise context.refusal("OFFSET_WITHOUT_LIMIT", query.args["offset"])
    if node.key is None:
        message = "The query reads a view whose key is not known: create that view again."
        raise context.error("RELATION_HAS_NO_KEY", message, query)
    for item in order:
        if node.schema.columns[item.column].type.contains_map:
            message = "ORDER BY compares values, and those that hold a MAP have no order: order by map_entries(…)."
            raise context.error("DATATYPE_MISMATCH", message, query)
    last = ENDLESS if ending.limit is None else min(ending.offset + ending.limit, RANKS_MAX)
    schema = Schema((*node.schema.columns, Column("__rank", INT, False)))
    return TopK(node, partition, order, last, ending.offset, "row_number", schema, node.key)


def recomputed(root: Node) -> str | None:
    """Return the code of what every change of its rows computes anew as a whole, None where a query has no such part.

    Args:
        root: the query, rewritten: a window whose rank is bounded is none any more.
    """
    for node in walk(root):
        if isinstance(node, Window) and not node.partition:
            return "WINDOW_WITHOUT_PARTITION"
        if isinstance(node, TopK) and not node.partition and node.limit == ENDLESS:
            return "OFFSET_WITHOUT_LIMIT"
    return None


def check_strict(root: Node, query: exp.Expr, context: Context) -> None:
    """Refuse windows over all rows where a view may only follow its changes.

    Raises:
        UnsupportedSql: ``WINDOW_WITHOUT_PARTITION``.
    """
    if context.is_strict and recomputed(root) == "WINDOW_WITHOUT_PARTITION":
        raise context.refusal("WINDOW_WITHOUT_PARTITION", _unpartitioned(root, query))


def _unpartitioned(root: Node, query: exp.Expr) -> exp.Expr:
    """Return where ``query`` has a window over all rows that ``root`` still has: those of a bounded rank are none."""
    kept = [node for node in walk(root) if isinstance(node, Window) and not node.partition]
    called = {call.function for node in kept for call in node.calls}
    defined = {w.this.name.lower(): w for w in query.find_all(exp.Window) if w.arg_key == "windows"}
    written = [w for w in query.find_all(exp.Window) if w.arg_key != "windows"]
    over_all = [w for w in written if not defined.get(w.alias.lower(), w).args.get("partition_by")]
    matching = [w for w in over_all if any(f.name.lower() in called for f in w.this.find_all(exp.Anonymous))]
    sessions = [call for call in query.find_all(exp.Anonymous) if call.name.lower() == "session_window"]
    return next(iter([*matching, *over_all, *sessions]), query)
