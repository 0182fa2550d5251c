"""Joins on an OR: each of its branches has a key or a range of its own, and becomes a join of its own.

    pairs   L join R on P1 OR P2   =   L join R on P1   +   L join R on P2 where (P1 is not true)
    semi    L semi R on P1 OR P2   =   L semi R on P1   +   (L anti R on P1) semi R on P2
    anti    L anti R on P1 OR P2   =   (L anti R on P1) anti R on P2

As one join it would have the key of no columns, and each changed row would meet the whole other side. Branches of equal
keys are one branch. Conditions that can raise are left alone: by branches they would be judged on other pairs
(docs/decisions/0025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from viewkeeper.expressions.evaluate import can_raise
from viewkeeper.expressions.tree import Call, ColumnRef, Expression, Literal, columns_of, shift_columns
from viewkeeper.plan.correlation import equality_sides, sorted_out
from viewkeeper.plan.join_order import with_keys
from viewkeeper.plan.keys import all_of, conjuncts_of, where
from viewkeeper.plan.nodes import Join, Node, Project, UnionAll, reference
from viewkeeper.plan.ranges import ranges_of
from viewkeeper.zset.schema import BOOLEAN, Schema

Keys: TypeAlias = tuple[tuple[Expression, Expression, bool], ...]

_BRANCHES_MAX = 4
_TRUE = Literal(True, BOOLEAN)


@dataclass(frozen=True)
class Branch:
    """A branch of a join's OR, over the columns of both sides.

    Args:
        condition: the branch.
        keys: its equalities: the left side, the right side, whether NULL equals NULL.
        others: its further conditions, and those beside the OR.
    """

    condition: Expression
    keys: Keys
    others: tuple[Expression, ...]


def branches_of(node: Join) -> tuple[Branch, ...] | None:
    """Return the branches by which ``node`` is joined; None where it is one join.

    Example:
        >>> from viewkeeper.plan.examples import plan_example
        >>> from viewkeeper.plan.nodes import walk
        >>> sql = "SELECT t.k, id FROM t LEFT JOIN u ON a = v OR (k = t_k AND b < id)"
        >>> (join,) = [n for n in walk(plan_example(sql).root) if isinstance(n, Join)]
        >>> [(len(branch.keys), len(branch.others)) for branch in branches_of(join)]
        [(1, 0), (1, 1)]
    """
    if node.left_keys or node.residual is None or can_raise(node.residual):
        return None
    conditions = conjuncts_of(node.residual)
    seeks = ranges_of(node) is not None
    for place, condition in enumerate(conditions):
        branches = _branches(condition, [*conditions[:place], *conditions[place + 1 :]], len(node.left.schema))
        if branches is not None and all(b.keys or (not seeks and _finds_by_range(node, b)) for b in branches):
            return branches
    return None


def _branches(condition: Expression, shared: Sequence[Expression], width: int) -> tuple[Branch, ...] | None:
    """Return the branches of ``condition``, None where it has none or too many."""
    operands = _operands(condition)
    if len(operands) == 1:
        return None
    keys = [tuple(dict.fromkeys(sorted_out(conjuncts_of(operand), width)[0])) for operand in operands]
    common = tuple(key for key in keys[0] if all(key in found for found in keys))
    grouped: dict[Keys | int, list[Expression]] = {}
    for number, operand in enumerate(operands):
        # Ranges are found one by one: those without a key stay apart.
        grouped.setdefault(common or keys[number] or number, []).append(operand)
    if len(grouped) > _BRANCHES_MAX:
        return None
    return tuple(_branch(() if isinstance(k, int) else k, found, shared, width) for k, found in grouped.items())


def _operands(condition: Expression) -> list[Expression]:
    """Return what OR connects; ``x IN (y, z)`` is ``x = y OR x = z``."""
    if isinstance(condition, Call) and condition.function == "or":
        return [operand for argument in condition.arguments for operand in _operands(argument)]
    if isinstance(condition, Call) and condition.function == "in":
        value, *candidates = condition.arguments
        if all(map(columns_of, candidates)):
            return [Call("eq", (value, c), BOOLEAN, value.nullable or c.nullable) for c in candidates]
    return [condition]


def _branch(keys: Keys, operands: Sequence[Expression], shared: Sequence[Expression], width: int) -> Branch:
    """Return the branch that some operands with the same ``keys`` are."""
    rests = [[p for p in conjuncts_of(o) if equality_sides(p, width) not in keys] for o in operands]
    own = [whole for rest in rests if (whole := all_of(rest)) is not None]
    # Where the keys are all of one operand, they are all of the branch.
    others = [_any_of(own)] if len(own) == len(rests) else []
    return Branch(_any_of(operands), keys, (*others, *shared))


def _any_of(conditions: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: Call("or", (a, b), BOOLEAN, a.nullable or b.nullable), conditions)


def _finds_by_range(node: Join, branch: Branch) -> bool:
    """Return whether changed rows of either side seek their partners; one row alone is no range."""
    ranges = ranges_of(joined(node, node.left, branch, "inner"))
    if ranges is None:
        return False
    sides = ((node.left, ranges.left), (node.right, ranges.right))
    return all(range_ is not None or side.key == () for side, range_ in sides)


def pairs_of(node: Join, branches: Sequence[Branch]) -> Node:
    """Return the pairs of ``node``, each by the first branch that has it."""
    schema = Schema((*node.left.schema.columns, *node.right.schema.columns))
    width = len(node.left.schema)
    key = (*(node.left.key or ()), *(width + position for position in node.right.key or ()))
    found = [
        _shown(node, joined(node, node.left, branch, "inner", [_is_not_true(b.condition) for b in branches[:number]]))
        for number, branch in enumerate(branches)
    ]
    return UnionAll(tuple(replace(n, schema=schema, key=key) for n in found), schema, key)


def chosen(node: Join, branches: Sequence[Branch]) -> Node:
    """Return the rows of a semi or anti join: those that no branch has found go on to the next one."""
    rows, found = node.left, []
    for branch in branches:
        found.append(_shown(node, joined(node, rows, branch, "semi")))
        rows = _shown(node, joined(node, rows, branch, "anti"))
    return rows if node.kind == "anti" else UnionAll(tuple(found), node.schema, node.key)


def whole(node: Join, branch: Branch) -> Node:
    """Return ``node`` by its only branch."""
    return replace(_shown(node, joined(node, node.left, branch, node.kind)), schema=node.schema, key=node.key)


def joined(node: Join, left: Node, branch: Branch, kind: str, further: Sequence[Expression] = ()) -> Join:
    """Return the join of one branch; computed keys stand behind the columns of its sides.

    Args:
        node: the join on an OR.
        left: its left rows, or those of them that are left.
        branch: the branch.
        kind: as of ``nodes.Join``.
        further: conditions beside those of the branch.

    Returns:
        The join; where it makes pairs, their key is for the caller to say.
    """
    width = len(left.schema)
    own: list[list[Expression]] = [[], [], []]
    for condition in (*branch.others, *further):
        own[_side(condition, width, kind)].append(condition)
    local = {width + i: i for i in range(len(node.right.schema))}
    first, left_keys = with_keys(where(left, own[0]), [key[0] for key in branch.keys])
    right = where(node.right, [shift_columns(condition, local) for condition in own[1]])
    second, right_keys = with_keys(right, [shift_columns(key[1], local) for key in branch.keys])
    moved = {i: i for i in range(width)} | {old: len(first.schema) + i for old, i in local.items()}
    residual = all_of([shift_columns(condition, moved) for condition in own[2]])
    safe = frozenset(i for i, (x, y, is_safe) in enumerate(branch.keys) if is_safe and x.nullable and y.nullable)
    is_chosen = kind in ("semi", "anti")
    columns = first.schema.columns if is_chosen else (*first.schema.columns, *second.schema.columns)
    key = left.key if is_chosen else None
    return Join(first, second, tuple(left_keys), tuple(right_keys), residual, Schema(columns), key, kind, safe)


def _side(condition: Expression, width: int, kind: str) -> int:
    """Return the side whose rows ``condition`` restricts before they are joined: 0, 1, or 2 for neither."""
    reads = columns_of(condition)
    if reads and max(reads) < width and kind in ("inner", "semi", "right"):
        return 0
    if reads and min(reads) >= width and kind not in ("right", "full"):
        return 1
    return 2


def _shown(node: Join, join: Join) -> Node:
    """Return a branch's join without the keys that were computed for it."""
    width = len(node.left.schema)
    positions = list(range(width))
    if join.kind not in ("semi", "anti"):
        positions += [len(join.left.schema) + i for i in range(len(node.right.schema))]
    if positions == list(range(len(join.schema))):
        return join
    columns: tuple[ColumnRef, ...] = tuple(reference(join, position) for position in positions)
    return Project(join, columns, join.schema.select(tuple(positions)), join.key)


def _is_not_true(condition: Expression) -> Expression:
    return Call("not", (Call("eq_null_safe", (condition, _TRUE), BOOLEAN, False),), BOOLEAN, False)
