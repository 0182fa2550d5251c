"""Left joins become inner ones where a filter drops the rows without a partner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Call, ColumnRef, Expression
from viewkeeper.plan.keys import conjuncts_of
from viewkeeper.plan.nodes import Filter, Join, Node, Project, inputs_of, with_inputs
from viewkeeper.plan.rules.substitute import substituted

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is_not_null"))
# Of these, NULL in gives NULL out.
_STRICT = frozenset(("cast", "add", "subtract", "multiply", "divide", "negate"))


def inner_joins(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Turn a left join into an inner one below a comparison that reads its right side: NULL compares to nothing.

    A correlated scalar subquery is a left join, and the comparison with it is such a filter.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT k FROM t WHERE a > (SELECT MAX(v) FROM u WHERE t_k = k)"))
        Project k := k
          Filter (a > max(v))
            Join on k = t_k
              Scan t (k, a)
              Aggregate by t_k: max(v) := max(v)
                Scan u (t_k, v)
    """
    node = with_inputs(node, [inner_joins(child) for child in inputs_of(node)])
    return replace(node, input=_inner(node.input, conjuncts_of(node.condition))) if isinstance(node, Filter) else node


def _inner(node: Node, conditions: Sequence[Expression]) -> Node:
    if isinstance(node, Filter):
        return replace(node, input=_inner(node.input, [*conditions, *conjuncts_of(node.condition)]))
    if isinstance(node, Project):
        return replace(node, input=_inner(node.input, [substituted(c, node.expressions) for c in conditions]))
    if isinstance(node, Join) and node.kind == "left":
        right = frozenset(range(len(node.left.schema), len(node.schema)))
        if any(_rejects_null(condition, right) for condition in conditions):
            return replace(node, kind="inner")
    return node


def _rejects_null(condition: Expression, columns: frozenset[int]) -> bool:
    if not isinstance(condition, Call) or condition.function not in _COMPARISONS or can_raise(condition):
        return False  # one that can raise may do so beside the NULLs
    return any(_is_null_with(argument, columns) for argument in condition.arguments)


def _is_null_with(expression: Expression, columns: frozenset[int]) -> bool:
    """Return whether ``expression`` is NULL where all ``columns`` are."""
    if isinstance(expression, ColumnRef):
        return expression.index in columns
    if not isinstance(expression, Call) or expression.function not in _STRICT:
        return False
    return any(_is_null_with(argument, columns) for argument in expression.arguments)
