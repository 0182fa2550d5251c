"""The clauses around an aggregate call, taken apart: DISTINCT, FILTER, WITHIN GROUP, IGNORE NULLS."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.plan.function_names import AGGREGATES

AROUND_CALLS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class Syntax:
    """An aggregate call as written.

    Args:
        name: the function, in lower case.
        tree: the call with what stands around it.
        arguments: its arguments.
        distinct: whether DISTINCT stands before them.
        order: the items of WITHIN GROUP (ORDER BY …).
        ignore_nulls: whether IGNORE NULLS (true) or RESPECT NULLS (false) is written; None for neither.
        filter: the condition of FILTER (WHERE …), or None.
    """

    name: str
    tree: exp.Expr
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Ordered, ...]
    ignore_nulls: bool | None
    filter: exp.Expr | None

    def ascending(self, item: int) -> bool:
        """Return whether an item of the order ascends."""
        return not self.order[item].args.get("desc")

    def nulls_first(self, item: int) -> bool:
        """Return whether NULLs stand first by an item of the order."""
        return bool(self.order[item].args.get("nulls_first"))


def called_aggregate(tree: exp.Expr) -> exp.Anonymous | None:
    """Return the call where ``tree`` is a call of an aggregate function, with or without clauses around it.

    A function that is called over a window is none.
    """
    while isinstance(tree, AROUND_CALLS):
        tree = tree.this
    if not isinstance(tree, exp.Anonymous) or tree.meta.get("windowed"):
        return None
    return tree if tree.name.lower() in AGGREGATES else None


def taken_apart(tree: exp.Expr) -> Syntax | None:
    """Return the parts of an aggregate call; None where ``tree`` is none."""
    call = called_aggregate(tree)
    if call is None:
        return None
    order: tuple[exp.Ordered, ...] = ()
    ignore: bool | None = None
    condition: exp.Expr | None = None
    around = tree
    while around is not call:
        if isinstance(around, exp.Filter):
            condition = around.expression.this
        elif isinstance(around, exp.WithinGroup):
            order = tuple(around.expression.expressions)
        else:
            ignore = isinstance(around, exp.IgnoreNulls)
        around = around.this
    arguments = list(call.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if arguments and isinstance(arguments[0], exp.IgnoreNulls):
        ignore = True
        arguments[0] = arguments[0].this
    return Syntax(call.name.lower(), tree, tuple(arguments), distinct, order, ignore, condition)
