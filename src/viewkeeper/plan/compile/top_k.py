"""The first rows of partitions to operators: every partition at one owner, its rows in order."""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.expressions.tree import Session
from viewkeeper.operators.top_k import TopK
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, digest, key_of
from viewkeeper.zset.sort_keys import OrderItem


@compiles(plan.TopK)
def _top_k(compiler: Compiler, node: plan.TopK, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    moved = compiler.exchange(source, node.partition, nets=True)
    order, key = order_items(node.order), key_of(source)
    # Two views that want other ranks of the same rows keep state of their own: one operator writes a state table.
    text = f"top {node.ranking} {node.limit} {node.offset} by {node.partition} {order!r} {key}"
    state = f"{compiler.namespace}/o{digest(f'{text} {compiler.fingerprint(source.id)}')}"
    operator = TopK(node.schema, node.partition, order, key, node.limit, node.offset, node.ranking, state)
    id_ = compiler.add(operator, (moved.id,), text)
    return Compiled(id_, node.schema, node.key, moved.partition)


def order_items(order: Sequence[plan.SortKey]) -> tuple[OrderItem, ...]:
    """Return an order as operators have it."""
    return tuple(OrderItem(item.column, item.ascending, item.nulls_first) for item in order)
