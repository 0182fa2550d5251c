"""Recursions to operators: the recursive member becomes a circuit of its own, inside the operator."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.expressions.tree import Session
from viewkeeper.operators.circuit import Circuit, Node
from viewkeeper.operators.recursion import NEWEST, Recursion
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, digest
from viewkeeper.plan.fingerprint import fingerprint
from viewkeeper.zset.schema import Schema


@compiles(plan.Recursion)
def _recursion(compiler: Compiler, node: plan.Recursion, session: Session) -> Compiled:
    others: list[plan.Node] = []
    inside = _with_sources(node.next, others)
    sources = [compiler.node(child, session) for child in (node.first, *others)]
    level = 1 + max(compiler.nodes[source.id].level for source in sources)
    moved = [compiler.exchange(source, (), nets=True, level=level) for source in sources]
    below = " ".join(compiler.fingerprint(source.id) for source in sources)
    text = f"recursion {node.distinct} {node.limit} {fingerprint(inside)} {session!r}"
    name = digest(f"{text} {below}")
    site = compiler.site(f"{text} {below}", node.schema, node.key)
    tables: dict[int, Schema] = {NEWEST: node.schema}
    tables |= {number: other.schema for number, other in enumerate(others, 1)}
    inner = Compiler({}, tables, f"{compiler.namespace}/r{name}", frozenset())
    root = inner.node(inside, session)
    assert root.id == len(inner.nodes) - 1
    circuit = Circuit(tuple(_reporting_to(site.state, found) for found in inner.nodes))
    state = f"{compiler.namespace}/q{name}"
    operator = Recursion(node.schema, circuit, node.distinct, node.limit, state, site)
    id_ = compiler.add(operator, tuple(m.id for m in moved), text)
    return Compiled(id_, node.schema, node.key, ())


def _with_sources(node: plan.Node, others: list[plan.Node]) -> plan.Node:
    """Return the recursive member over tables: what it reads beside R is put into ``others`` and computed outside."""
    if isinstance(node, plan.RecursiveScan):
        return _table(NEWEST, node)
    if not any(isinstance(found, plan.RecursiveScan) for found in plan.walk(node)):
        if node not in others:
            others.append(node)
        return _table(1 + others.index(node), node)
    return plan.with_inputs(node, [_with_sources(child, others) for child in plan.inputs_of(node)])


def _table(number: int, node: plan.Node) -> plan.Scan:
    relation = plan.Relation(number, f"input {number}", "table", node.schema, node.key)
    return plan.Scan(relation, tuple(range(len(node.schema))), node.schema, node.key)


def _reporting_to(bag: str, node: Node) -> Node:
    """Return the inner node with its failing rows in the recursion's own error bag."""
    site = getattr(node.operator, "errors", None)
    if site is None:
        return node
    operator = replace(node.operator, errors=replace(site, state=bag))  # type: ignore[type-var]
    return replace(node, operator=operator)
