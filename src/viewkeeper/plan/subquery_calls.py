"""Calls that stand for subqueries in bound trees, until joins give their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlglot import exp

from viewkeeper.plan.correlation import Block


@dataclass(frozen=True)
class Subquery:
    """A bound subquery.

    Args:
        kind: ``exists``, ``scalar``, or ``any``: equal (or otherwise compared) to any of its rows.
        block: its plan.
        compared: how many of the call's arguments are values that it is compared with; the others are outer columns.
        comparison: of ``any``, how.
        settled: whether it is an IN: Spark's, and its NOT IN, are FALSE where they are unknown.
    """

    kind: str
    block: Block
    compared: int = 0
    comparison: type[exp.Binary] = exp.EQ
    settled: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Subquery:
        return self

    def call(self, arguments: Sequence[exp.Expr], node: exp.Expr) -> exp.Expr:
        """Return the call that stands for it; calls of equal subqueries are equal.

        Args:
            arguments: the values that it is compared with, then the outer columns.
            node: the parsed expression, in whose place the call will stand.
        """
        digest = blake2b(f"{self!r}".encode(), digest_size=12).hexdigest()
        tree = exp.Anonymous(this=f"subquery {digest}", expressions=[argument.copy() for argument in arguments])
        tree.meta["subquery"], tree.meta["negated"] = self, _is_negated(node)
        tree.parent = node.parent
        return tree


def subquery_of(tree: exp.Expr) -> Subquery | None:
    """Return the subquery that ``tree`` stands for."""
    found = tree.meta.get("subquery")
    return found if isinstance(found, Subquery) else None


def is_same_subquery(call: exp.Expr, other: exp.Expr) -> bool:
    """Return whether two calls have the same value: of an unknown IN that depends on whether it is negated."""
    return call == other and is_negated(call) == is_negated(other)


def is_negated(call: exp.Expr) -> bool:
    """Return whether what is read of a call's value is its negation."""
    return bool(call.meta["negated"])


def _is_negated(node: exp.Expr) -> bool:
    """Return whether a NOT applies to ``node``: Spark moves it inwards over AND and OR, and ``= FALSE`` is one."""
    negated, parent = False, node.parent
    while isinstance(parent, (exp.And, exp.Or, exp.Paren, exp.Not, exp.EQ, exp.NEQ)):
        if isinstance(parent, (exp.EQ, exp.NEQ)):
            known = [side.this for side in (parent.left, parent.right) if isinstance(side, exp.Boolean)]
            if not known:
                break
            negated ^= known[0] is isinstance(parent, exp.NEQ)
        negated ^= isinstance(parent, exp.Not)
        parent = parent.parent
    return negated


def has_subquery(tree: exp.Expr) -> bool:
    """Return whether a bound tree holds a subquery."""
    return any(subquery_of(node) for node in tree.walk())


def innermost(tree: exp.Expr) -> exp.Expr | None:
    """Return a call in ``tree`` whose arguments hold no other."""
    for node in tree.walk():
        if subquery_of(node) and not any(subquery_of(n) for n in node.walk() if n is not node):
            return node
    return None


def only_truth_counts(node: exp.Expr, root: exp.Expr) -> bool:
    """Return whether FALSE and NULL of ``node`` make no difference to the condition ``root``."""
    current = node.parent
    while current is not None and current is not root:
        if not isinstance(current, (exp.And, exp.Or, exp.Paren)):
            return False
        current = current.parent
    return True
