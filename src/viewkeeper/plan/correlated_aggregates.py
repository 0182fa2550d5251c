"""Outer columns in a subquery that aggregates: in its WHERE, and in HAVING outside of aggregates; elsewhere refused.

These are Spark's rules. An aggregate over columns of both queries has no meaning that all engines share. Over outer
columns alone it is one of the outer query, and may stand where that is grouped: in WHERE and ON of a subquery in its
HAVING (``having.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.plan.binding import aggregate_name, windowed_call
from viewkeeper.plan.correlation import Outer, mixed_aggregate
from viewkeeper.plan.scopes import Scope


def check_aggregates(select: exp.Select, scope: Scope, outer: Outer) -> None:
    """Check where a SELECT block that is a subquery names outer columns.

    Args:
        select: the block, as parsed.
        scope: what its names mean.
        outer: the query around it.

    Raises:
        SqlError: ``UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY`` for outer columns in an aggregate, or beside aggregates.
    """
    having, group, order = (select.args.get(clause) for clause in ("having", "group", "order"))
    shown = [*select.expressions, *([order] if order is not None else [])]
    calls = [call for tree in (*shown, *([having] if having is not None else [])) for call in _aggregates(tree)]
    for call in calls:
        _check_call(call, scope, outer)
    if not calls and group is None and having is None:
        return
    aliases = {tree.alias.lower() for tree in select.expressions if tree.alias}
    for tree in (*shown, *([group] if group is not None else [])):
        for column in _outer_columns(tree, scope, outer):
            if len(column.parts) > 1 or column.name.lower() not in aliases or tree in select.expressions:
                message = (
                    f"'{column.sql(dialect='spark')}' is a column of the outer query, and a subquery that aggregates "
                    "can name it only in WHERE and HAVING: compute with it outside of the subquery."
                )
                raise scope.context.error("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", message, column)


def _check_call(call: exp.Expr, scope: Scope, outer: Outer) -> None:
    columns = list(_columns(call))
    named = list(_outer_columns(call, scope, outer))
    if not named:
        return
    if any(scope.find(own) is not None for own in columns):
        raise mixed_aggregate(call, named[0], scope.context)
    name, column = aggregate_name(call), named[0].sql(dialect="spark")
    only = f"{name}() aggregates '{column}' of the outer query: write it there, or aggregate own columns."
    raise scope.context.error("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", only, call)


def _aggregates(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregates in ``tree``, each with what stands around it; those of subqueries and over windows not."""
    inside: set[int] = set()
    for node in _own(tree):
        if isinstance(node, exp.Window):
            called = windowed_call(node)
            inside |= {id(part) for part in node.this.walk() if part is called or called in list(part.walk())}
        elif id(node) not in inside and aggregate_name(node):
            inside |= {id(part) for part in node.walk()}
            yield node


def _columns(tree: exp.Expr) -> Iterator[exp.Column]:
    return (node for node in _own(tree) if isinstance(node, exp.Column) and not node.is_star)


def _outer_columns(tree: exp.Expr, scope: Scope, outer: Outer) -> Iterator[exp.Column]:
    return (column for column in _columns(tree) if scope.find(column) is None and outer.qualified(column) is not None)


def _own(tree: exp.Expr) -> Iterator[exp.Expr]:
    return tree.walk(prune=lambda node: isinstance(node, exp.Query))
