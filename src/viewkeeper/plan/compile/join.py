"""Joins to operators: both sides by the join key, each arranged once, and what outer joins add."""

from __future__ import annotations

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Session
from viewkeeper.operators.join import Join
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, key_of


@compiles(plan.Join)
def _join(compiler: Compiler, node: plan.Join, session: Session) -> Compiled:
    left, right = compiler.node(node.left, session), compiler.node(node.right, session)
    # Both sides of a key must meet: an owner by fewer or other columns than the join's does for neither.
    level = max(compiler.level_for(left, node.left_keys, True), compiler.level_for(right, node.right_keys, True))
    moved_left = compiler.exchange(left, node.left_keys, nets=True, level=level)
    moved_right = compiler.exchange(right, node.right_keys, nets=True, level=level)
    arranged_left = compiler.arrange(moved_left, node.left_keys, key_of(left))
    arranged_right = compiler.arrange(moved_right, node.right_keys, key_of(right))
    text = f"{node.kind} join {node.left_keys} {node.right_keys} {sorted(node.null_safe)} {node.residual!r} {session!r}"
    site = None
    if node.residual is not None and can_raise(node.residual):
        site = compiler.site(
            f"{text} {compiler.fingerprint(left.id)} {compiler.fingerprint(right.id)}", node.schema, node.key
        )
    operator = Join(node.schema, arranged_left, arranged_right, node.residual, session, site)
    id_ = compiler.add(operator, (moved_left.id, moved_right.id), text)
    offset = len(left.schema)
    pairs = zip(node.left_keys, node.right_keys, strict=True)
    return Compiled(id_, node.schema, node.key, tuple(frozenset((a, b + offset)) for a, b in pairs))
