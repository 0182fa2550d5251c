"""Windows to operators: every partition at one owner, arranged there."""

from __future__ import annotations

from viewkeeper.expressions.tree import Session
from viewkeeper.operators.window import Window
from viewkeeper.operators.windows.call import Call
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, key_of
from viewkeeper.plan.compile.top_k import order_items
from viewkeeper.zset.schema import Schema


@compiles(plan.Window)
def _window(compiler: Compiler, node: plan.Window, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    # Exactly the partition's owner, so that a join by the same columns can share the arrangement.
    level = compiler.level_for(source, node.partition, exactly=True)
    moved = compiler.exchange(source, node.partition, nets=True, level=level)
    arrangement = compiler.arrange(moved, node.partition, key_of(source), skip_null_keys=False)
    order = order_items(node.order)
    calls = tuple(_call(call, source.schema) for call in node.calls)
    text = f"window by {node.partition} {order!r}: {calls!r}"
    site = None
    if any(call.can_overflow for call in calls):
        site = compiler.site(f"{text} {compiler.fingerprint(source.id)}", node.schema, key_of(source))
    id_ = compiler.add(Window(node.schema, arrangement, order, calls, site), (moved.id,), text)
    return Compiled(id_, node.schema, node.key, moved.partition)


def _call(call: plan.WindowCall, schema: Schema) -> Call:
    return Call(
        call.function,
        call.arguments,
        call.constants,
        call.unit,
        call.start,
        call.stop,
        call.ignore_nulls,
        call.filter,
        tuple(schema.types[position] for position in call.arguments),
        call.type,
    )
