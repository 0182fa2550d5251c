"""Project over Project → one Project, where nothing is then computed more often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, SparkExpression, columns_of, is_portable
from viewkeeper.plan.nodes import Node, Project, inputs_of, with_inputs
from viewkeeper.plan.rules.substitute import substituted


def merge_projects(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Merge adjacent projections.

    The inner one is dissolved where each column that it computes is read at most once, as Spark does it: a column that
    only one branch of a CASE reads is then computed for the rows of that branch alone.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT b AS c FROM (SELECT a AS b FROM t) q"))
        Project c := a, __key_0_k := k
          Scan t (k, a)
    """
    node = with_inputs(node, [merge_projects(child) for child in inputs_of(node)])
    if not isinstance(node, Project) or not isinstance(node.input, Project):
        return node
    inner = node.input
    if not _can_merge(node.expressions, inner.expressions):
        return node
    expressions = tuple(substituted(expression, inner.expressions) for expression in node.expressions)
    return Project(inner.input, expressions, node.schema, node.key)


def _can_merge(outer: tuple[Expression, ...], inner: tuple[Expression, ...]) -> bool:
    reads = [read for expression in outer for read in _reads(expression, "whole")]
    uses = Counter(index for index, _ in reads)
    for index, place in reads:
        expression = inner[index]
        if isinstance(expression, ColumnRef):
            continue
        # Text for Spark can hold columns only, and stands alone: nothing portable is computed around it.
        if place == "spark" or (place == "part" and not is_portable(expression)):
            return False
        if uses[index] > 1 and not isinstance(expression, Literal):
            return False
    return True


def _reads(expression: Expression, place: str) -> Iterator[tuple[int, str]]:
    """Yield each column that is read: as the ``whole`` expression, as a ``part`` of one, or by ``spark``."""
    if isinstance(expression, ColumnRef):
        yield expression.index, place
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _reads(argument, "part")
    elif isinstance(expression, SparkExpression):
        for index in columns_of(expression):
            yield index, "spark"
