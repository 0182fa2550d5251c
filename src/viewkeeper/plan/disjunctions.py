"""What an OR says of each of its branches: parts that all branches have, and what it asks of one input alone.

    (a AND b) OR (a AND c)                    =  a AND (b OR c)
    (l1 AND r1) OR (l2 AND r2)           implies  (l1 OR l2), and (r1 OR r2)

So a join key that is written in every branch is one, and each input is restricted before it is joined. Spark does both
(BooleanSimplification, and pushing down what an OR implies), TPC-H's queries 7 and 19 live on it. Parts that can raise
stay where they are: their branch may guard them.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Expression
from viewkeeper.plan.binding import conjuncts, flattened, normalized, references_of, unwrapped

Typed = Callable[[exp.Expr], Expression]


def parts_of(condition: exp.Expr, typed: Typed) -> list[exp.Expr]:
    """Return bound conditions that AND connects, equal to ``condition``: what all branches of an OR have is taken out.

    Args:
        condition: bound, without AND at its top.
        typed: the typed expression of a bound tree.
    """
    branches = branches_of(condition)
    spelled = [[_spelled(part) for part in branch] for branch in branches]
    shared = [part for part in spelled[0] if all(part in branch for branch in spelled[1:])]
    common = {part: tree for part, tree in zip(spelled[0], branches[0], strict=True) if part in shared}
    common = {part: tree for part, tree in common.items() if not can_raise(typed(tree))}
    if len(branches) == 1 or not common:
        return [condition]
    rests = [
        [tree for part, tree in zip(parts, branch, strict=True) if part not in common]
        for parts, branch in zip(spelled, branches, strict=True)
    ]
    return [*common.values()] if not all(rests) else [*common.values(), _any_of(rests, condition)]


def implied(condition: exp.Expr, columns: frozenset[int], typed: Typed) -> exp.Expr | None:
    """Return what an OR asks of some columns alone, None where a branch asks nothing of them or it can raise.

    Args:
        condition: bound.
        columns: their positions.
        typed: the typed expression of a bound tree.
    """
    branches = [[part for part in branch if _only(part, columns)] for branch in branches_of(condition)]
    if len(branches) == 1 or not all(branches):
        return None
    whole = _any_of(branches, condition)
    return None if can_raise(typed(whole)) else whole


def branches_of(condition: exp.Expr) -> list[list[exp.Expr]]:
    """Return the branches of an OR, each as the conditions that AND connects in it."""
    inner = unwrapped(condition)
    return [conjuncts(operand) for operand in (flattened(inner) if isinstance(inner, exp.Or) else [inner])]


def _spelled(part: exp.Expr) -> exp.Expr:
    """Return a condition as all that mean the same are spelled: of an equality, either side may stand first."""
    tree = normalized(part)
    if isinstance(tree, exp.EQ) and tree.this.sql("spark") > tree.expression.sql("spark"):
        return exp.EQ(this=tree.expression, expression=tree.this)
    return tree


def _only(part: exp.Expr, columns: frozenset[int]) -> bool:
    references = references_of(part)
    return bool(references) and {reference.index for reference in references} <= columns


def _any_of(branches: list[list[exp.Expr]], origin: exp.Expr) -> exp.Expr:
    whole = exp.or_(*(exp.and_(*branch, copy=True) for branch in branches), copy=False)
    whole.parent = origin.parent
    return whole
