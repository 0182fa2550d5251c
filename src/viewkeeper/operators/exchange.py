"""EXCHANGE: brings the rows of one key to one owner, and nets them there.

Rule:   step(d) = consolidate(d)    (linear; the result is the same Z-set, each row once)
State:  none.
Why:    stateful operators need, for every key that they see, all of the key's rows of the epoch. Inside one process the
        delta is complete anyway and only the netting is left; Spark moves the rows between two stages (packed).
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.operators.base import Stateless
from viewkeeper.operators.contents import Contents, Query
from viewkeeper.operators.state import StepContext
from viewkeeper.zset.delta import Delta
from viewkeeper.zset.schema import Schema


@dataclass(frozen=True)
class Exchange(Stateless):
    """Routes rows by ``columns``.

    Args:
        schema: the rows.
        columns: positions of the partition key's columns; empty: everything to one owner.
        nets: whether equal rows cancel; partial sums are not rows of a Z-set and must all arrive.
        level: at which stage of a fused epoch the rows are wanted.
    """

    schema: Schema
    columns: tuple[int, ...]
    nets: bool
    level: int

    @property
    def arrives(self) -> Schema:
        """What its rows are when they arrive: what they were."""
        return self.schema

    def step(self, inputs: tuple[Delta, ...], context: StepContext) -> Delta:
        """Return the delta, netted."""
        (delta,) = inputs
        return delta.consolidate() if self.nets and delta.num_rows > 1 else delta

    def whole(self, inputs: tuple[Delta, ...]) -> Delta:
        """Return the rows unchanged: complete inputs are netted already."""
        return inputs[0]

    def query(self) -> Query:
        """Return the input's rows."""
        return Query("SELECT * FROM i0", self.schema)

    def contents(self) -> tuple[Contents, ...]:
        """Return nothing: it keeps no state."""
        return ()
