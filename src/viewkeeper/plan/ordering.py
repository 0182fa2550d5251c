"""ORDER BY, LIMIT and OFFSET at the end of a query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.plan.context import Context


@dataclass(frozen=True)
class OrderItem:
    """One ORDER BY item as parsed."""

    tree: exp.Expr
    ascending: bool
    nulls_first: bool

    def output_position(self, width: int, context: Context) -> int | None:
        """Return the position of the output column that the item gives by number, None for other items.

        Raises:
            SqlError: ``ORDER_BY_POS_OUT_OF_RANGE``.
        """
        if not isinstance(self.tree, exp.Literal) or self.tree.is_string or not self.tree.name.isdigit():
            return None
        position = int(self.tree.name)
        if not 1 <= position <= width:
            message = f"ORDER BY position {position} is not in the SELECT list, which has {width} columns: name one."
            raise context.error("ORDER_BY_POS_OUT_OF_RANGE", message, self.tree)
        return position - 1


@dataclass(frozen=True)
class Ending:
    """What follows the body of a query.

    Args:
        items: the ORDER BY items.
        all: whether it is ORDER BY ALL: every output column in turn, sorted as ``items[0]`` says.
        limit: at most so many rows; None for all.
        offset: so many rows are left out first.
    """

    items: tuple[OrderItem, ...] = ()
    all: bool = False
    limit: int | None = None
    offset: int = 0


def take_ending(query: exp.Expr, context: Context) -> Ending:
    """Return the ending of ``query`` and remove it from the tree.

    Raises:
        SqlError: ``INVALID_LIMIT`` where LIMIT or OFFSET is no number.
    """
    ending = ending_of(query, context)
    for name in ("order", "limit", "offset"):
        query.set(name, None)
    return ending


def ending_of(query: exp.Expr, context: Context) -> Ending:
    """Return the ending of ``query``.

    Raises:
        SqlError: ``INVALID_LIMIT`` where LIMIT or OFFSET is no number.
    """
    order, limit, offset = (query.args.get(name) for name in ("order", "limit", "offset"))
    items = tuple(map(order_item, order.expressions)) if order is not None else ()
    return Ending(
        items,
        len(items) == 1 and _is_all(items[0].tree),
        _count(limit.expression, "LIMIT", context) if limit is not None else None,
        (_count(offset.expression, "OFFSET", context) or 0) if offset is not None else 0,
    )


def order_item(ordered: exp.Expr) -> OrderItem:
    """Return one item of an ORDER BY clause; descending items put NULL last unless they say otherwise."""
    if not isinstance(ordered, exp.Ordered):
        return OrderItem(ordered, True, True)
    descending = bool(ordered.args.get("desc"))
    nulls_first = ordered.args.get("nulls_first")
    return OrderItem(ordered.this, not descending, not descending if nulls_first is None else bool(nulls_first))


def _is_all(tree: exp.Expr) -> bool:
    return isinstance(tree, (exp.Column, exp.Var)) and tree.sql().upper() == "ALL"


def _count(tree: exp.Expr, clause: str, context: Context) -> int | None:
    value: object = None
    if isinstance(tree, exp.Placeholder):
        value = context.parameters.get(str(tree.this))
    elif isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit():
        value = int(tree.name)
    elif _is_all(tree) and clause == "LIMIT":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise context.error(
            "INVALID_LIMIT", f"{clause} takes a whole number from 0, written out or as a parameter.", tree
        )
    return value
