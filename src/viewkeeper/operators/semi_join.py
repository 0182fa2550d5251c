"""SEMI JOIN: left rows that have a partner, or (anti) that have none; partners are rows with equal keys.

    semi = L . e        anti = L . (1 - e)        e(k) = 1 where the right side has a row under key k, else 0

Rule:   step(dL, dR) = L(E-1) . (e(E) - e(E-1))  +  dL . e(E)        (semi; anti has 1 - e in place of e)
State:  the arrangements of both inputs by the key, kept by their ARRANGEs and shared with the joins that need them.
Why:    the product rule: L(E) e(E) - L(E-1) e(E-1), with L(E) = L(E-1) + dL. The first term is empty for all keys but
        those whose first partner comes or whose last one goes.
Work:   per changed key one lookup for e(E-1), and for e(E) no more right rows than the delta deletes, plus one: with
        d rows deleted and none inserted, a partner is left exactly if more than d were there. Left rows are read only
        where e changes, and then all of them come or go. So of 100,000 partners one is read.
NULL:   a NULL key has no partner, unless the key was compared by <=>. No error can occur.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewkeeper.operators.arrange import Arrange, may_match
from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.matching import count_stored, keys_of_both, keys_sql, look_up
from viewkeeper.operators.state import StepContext
from viewkeeper.operators.whole import Raising
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class SemiJoin(Stateless):
    """Left rows by whether the right side has their key.

    Args:
        left: the arrangement of the left input; its ``columns`` are the key.
        right: likewise for the right input.
        anti: whether the rows without a partner are wanted.
        null_safe: indexes of the key columns in which NULL equals NULL.
    """

    left: Arrange
    right: Arrange
    anti: bool
    null_safe: frozenset[int] = frozenset()

    @property
    def schema(self) -> Schema:
        """The left input's columns."""
        return self.left.schema

    @property
    def looks_up(self) -> tuple[str, ...]:
        """The arrangements of both sides."""
        return (self.left.state, self.right.state)

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the left rows that come and go, for netted deltas of whole keys."""
        possible = may_match(inputs[0], self.left.columns, self.null_safe)
        left = inputs[0].filter(possible)
        right = inputs[1].filter(may_match(inputs[1], self.right.columns, self.null_safe))
        columns = tuple(range(len(self.left.columns)))
        every = keys_of_both(left, self.left.columns, right, self.right.columns)
        codes, first = every.group(columns)
        keys = every.take(first)
        before, after = self._partners(keys, codes[left.num_rows :], right.weights, context)
        has_partner = np.zeros(inputs[0].num_rows, dtype=bool)
        has_partner[possible] = after[codes[: left.num_rows]]
        changed = np.flatnonzero(before != after)
        rows, matches, at = look_up(keys.take(changed), columns, self.left, context)
        signs = np.where(after[changed], 1, -1)[matches]
        stored = Delta.from_rows(rows).take(at).with_weights(-signs if self.anti else signs)
        wanted = ~has_partner if self.anti else has_partner
        return Delta.concat([stored, inputs[0].filter(wanted)], self.schema.to_arrow())

    def _partners(
        self, keys: Delta, changed: np.ndarray, weights: np.ndarray, context: StepContext
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for each key whether it has a right row as of E-1, and as of E.

        Args:
            keys: the distinct keys.
            changed: the key of each changed right row.
            weights: the weight of each changed right row.
            context: for the lookups.
        """
        count = keys.num_rows
        inserted = np.bincount(changed[weights > 0], minlength=count) > 0
        deleted = np.bincount(changed[weights < 0], minlength=count)
        limits = np.where(inserted, 1, deleted + 1)
        stored = count_stored(keys, limits, self.right, context)
        return stored > 0, inserted | (stored > deleted)

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the left rows with a partner, or without one."""
        return self.step(inputs, Raising.context())

    def query(self) -> Query:
        """Return the left rows with a partner, or without one."""
        kind = "ANTI" if self.anti else "SEMI"
        keys = keys_sql(self.left.columns, self.right.columns, self.null_safe)
        return Query(f"SELECT l.* FROM i0 AS l LEFT {kind} JOIN i1 AS r ON {keys}", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: the arrangements that it looks up are operators of their own."""
        return ()
