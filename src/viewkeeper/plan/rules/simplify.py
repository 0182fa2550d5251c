"""Nodes that do nothing disappear."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.expressions.tree import ColumnRef, Literal
from viewkeeper.plan.keys import all_of, conjuncts_of
from viewkeeper.plan.nodes import Filter, Node, Project, Scan, inputs_of, with_inputs
from viewkeeper.zset.schema import BOOLEAN, Schema


def simplify(node: Node, needed: frozenset[int] = frozenset()) -> Node:
    """Remove conditions that are TRUE, merge adjacent filters, and drop projections that only give names.

    Example:
        >>> from viewkeeper.plan.examples import example_tree
        >>> print(example_tree("SELECT * FROM (SELECT * FROM t WHERE TRUE) q WHERE a > 1"))
        Filter (a > 1)
          Scan t (k, a, b, c, x, tags)
    """
    simplified = _without_idle(node)
    if not isinstance(simplified, Project) or not _keeps_columns(simplified):
        return simplified
    if isinstance(simplified.input, Scan) and simplified.schema != simplified.input.schema:
        # A scan keeps the names of its table, so at the root it needs a projection that gives others.
        return simplified
    return _named(simplified.input, simplified.schema)


def _named(node: Node, schema: Schema) -> Node:
    return node if isinstance(node, Scan) else replace(node, schema=schema)


def _without_idle(node: Node) -> Node:
    inputs = []
    for child in map(_without_idle, inputs_of(node)):
        if isinstance(child, Project) and _keeps_columns(child):
            # Names below the root are for people only: a scan, and a filter on it, keep those of the table.
            below = child.input
            inputs.append(below if isinstance(below, Filter) else _named(below, child.schema))
        else:
            inputs.append(child)
    node = with_inputs(node, inputs)
    if not isinstance(node, Filter):
        return node
    true = Literal(True, BOOLEAN)
    parts = [part for part in conjuncts_of(node.condition) if part != true]
    source = node.input
    if isinstance(source, Filter):
        parts, source = [*conjuncts_of(source.condition), *parts], source.input
    condition = all_of(parts)
    if condition is not None:
        return Filter(source, condition, node.schema, node.key)
    return _named(source, node.schema)


def _keeps_columns(node: Project) -> bool:
    plain = [e.index if isinstance(e, ColumnRef) else -1 for e in node.expressions]
    below = node.input
    same = [(c.type, c.nullable) for c in node.schema.columns] == [(c.type, c.nullable) for c in below.schema.columns]
    return same and plain == list(range(len(below.schema))) and node.key == below.key
