"""Filter by a rank → only the first rows of each partition are kept, in order."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal
from viewkeeper.plan.keys import all_of, conjuncts_of
from viewkeeper.plan.nodes import RANKS_MAX, Filter, Node, TopK, Window, inputs_of, with_inputs

_RANKINGS = frozenset(("row_number", "rank", "dense_rank"))
_MIRRORED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt", "eq": "eq"}


def top_k(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Replace a window that only ranks, below a filter that bounds the rank, by the first rows.

    ``rank <= 3``, ``rank < 4``, ``3 >= rank``, ``rank = 1``, and the like. A lower bound stays a filter.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> ranked = "SELECT k, ROW_NUMBER() OVER (PARTITION BY c ORDER BY a DESC) AS n FROM t"
        >>> print(example_tree(f"SELECT k FROM ({ranked}) q WHERE n <= 2"))
        Project k := k
          First 2 by row_number per c, order a desc
            Scan t (k, a, c)
    """
    node = with_inputs(node, [top_k(child) for child in inputs_of(node)])
    if not isinstance(node, Filter) or not isinstance(node.input, Window):
        return node
    window = node.input
    if len(window.calls) != 1 or window.calls[0].function not in _RANKINGS:
        return node
    rank = len(window.input.schema)
    parts = conjuncts_of(node.condition)
    bounds = [_upper_bound(part, rank) for part in parts]
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return node
    limit = min(*known, RANKS_MAX)
    ranking = window.calls[0].function
    first = TopK(window.input, window.partition, window.order, limit, 0, ranking, window.schema, window.key)
    left = [
        part for part, bound in zip(parts, bounds, strict=True) if bound is None or not _is_said(part, bound, limit)
    ]
    condition = all_of(left)
    # The filter may have got the names that the query gives, where no projection has to.
    return replace(first, schema=node.schema) if condition is None else replace(node, input=first, condition=condition)


def _is_said(part: Expression, bound: int, limit: int) -> bool:
    """Return whether the limit says all that ``part`` does: equality says more, but for the first rank."""
    if isinstance(part, Call) and part.function == "eq":
        return bound == limit == 1
    return limit <= bound


def _upper_bound(part: Expression, rank: int) -> int | None:
    """Return the greatest rank for which ``part`` can be true; None where it does not say."""
    if not isinstance(part, Call) or part.function not in _MIRRORED:
        return None
    left, right = part.arguments
    function = part.function
    if not _is_rank(left, rank):
        left, right, function = right, left, _MIRRORED[function]
    if not _is_rank(left, rank) or not isinstance(right, Literal) or type(right.value) is not int:
        return None
    if function in ("le", "eq"):
        return right.value
    return right.value - 1 if function == "lt" else None


def _is_rank(expression: Expression, rank: int) -> bool:
    if isinstance(expression, Call) and expression.function == "cast" and expression.type.is_integer:
        (expression,) = expression.arguments
    return isinstance(expression, ColumnRef) and expression.index == rank
