"""What of an epoch's time was whose: each view's part, from what its operators and its rows took.

Reading and stepping is divided by what the operators of a view took; an operator that several views need counts for
each with an equal part. Finding what differs (``recompute.settled``) and publishing is divided by the keys written. The
parts of all views so add up to the epoch: what a decision predicts for views that share state is what they cost
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from viewkeeper.operators.state import WriteSet

T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What an executor has measured of an epoch.

    Args:
        node_seconds: by node of the circuit, what it took, in all tasks together; of a source, with reading.
        node_rows: by node, how many rows came out of it.
        run_seconds: reading and stepping, by the clock on the wall.
        settle_seconds: finding what differs from the store, for views that were recomputed.
    """

    node_seconds: Mapping[int, float]
    node_rows: Mapping[int, int]
    run_seconds: float
    settle_seconds: float = 0.0


@dataclass(frozen=True)
class Concern:
    """What in a circuit is a view's.

    Args:
        nodes: ids of the operators that it needs.
        states: the state tables that they write.
        sources: ids of the nodes at which its tables enter.
        is_recomputed: whether it is recomputed there.
    """

    nodes: frozenset[int]
    states: frozenset[str]
    sources: frozenset[int]
    is_recomputed: bool


def seconds_of(
    concerns: Mapping[int, Concern], measured: Measured, writes: Sequence[WriteSet], publish_seconds: float
) -> dict[int, float]:
    """Return the seconds of each view.

    Args:
        concerns: by view, what is its.
        measured: what the executor has measured.
        writes: what is published.
        publish_seconds: what publishing took.
    """
    keys: Counter[str] = Counter()
    for w in writes:
        for state, pieces in w.tables.items():
            keys[state] += sum(piece.count for piece in pieces)
    settled = {view: c.states if c.is_recomputed else frozenset[str]() for view, c in concerns.items()}
    parts = [
        _divided(measured.run_seconds, measured.node_seconds, {v: c.nodes for v, c in concerns.items()}),
        _divided(measured.settle_seconds, keys, settled),
        _divided(publish_seconds, keys, {v: c.states for v, c in concerns.items()}),
    ]
    return {view: sum(part[view] for part in parts) for view in concerns}


def rows_of(concern: Concern, measured: Measured) -> int:
    """Return how many rows entered for a view: changed rows, or base rows where it was recomputed."""
    return sum(measured.node_rows.get(node, 0) for node in concern.sources)


def _divided(seconds: float, weights: Mapping[T, float], wanted: Mapping[int, frozenset[T]]) -> dict[int, float]:
    """Divide ``seconds`` among views by the weights of what each wants; what several want counts for each in part."""
    users = Counter(thing for things in wanted.values() for thing in things)
    shares = {view: _sum(weights.get(t, 0.0) / users[t] for t in things) for view, things in wanted.items()}
    total = _sum(shares.values())
    if not total:
        count = len([things for things in wanted.values() if things])
        return {view: seconds / count if things else 0.0 for view, things in wanted.items()}
    return {view: seconds * share / total for view, share in shares.items()}


def _sum(values: Iterable[float]) -> float:
    return sum(values, 0.0)
