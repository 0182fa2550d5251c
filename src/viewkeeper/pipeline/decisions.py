"""The figures of views' costs and the log of decisions, as records beside what is published.

    cost/<view>              figures of the view
    decision/<view>/<place>  one decision; the places are reused in turn, so each view has its last hundred

Written in the transaction that publishes the epoch that they are about: an epoch that is run again decides again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from viewkeeper.pipeline.policy import Choice, Figures
from viewkeeper.pipeline.records import DATABASE
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.zset.keys import after

DECISIONS_KEPT = 100
"""How many decisions are kept of each view."""

_COST = b"cost/"
_DECISION = b"decision/"


@dataclass(frozen=True)
class Decision:
    """How one epoch refreshed a view, why, and what it took.

    Args:
        view: the view's id.
        number: counts the view's decisions.
        epoch: the epoch of its cadence.
        position: the log position that the epoch reached.
        choice: the way, the reason, the prediction.
        rows: how many rows were read for it: changed rows, or base rows.
        seconds: what the view took: its part of the epoch.
        executor: which executor ran the epoch.
        published_seconds: when, in seconds since 1970.
    """

    view: int
    number: int
    epoch: int
    position: int
    choice: Choice
    rows: int
    seconds: float
    executor: str
    published_seconds: float


def read_figures(txn: ReadTransaction, view: int) -> Figures:
    """Return what is known of a view's costs."""
    raw = txn.get(DATABASE, _COST + view.to_bytes(8, "big"))
    return Figures(view) if raw is None else msgspec.msgpack.decode(raw, type=Figures)


def write_figures(txn: WriteTransaction, figures: Figures) -> None:
    """Keep what is known of a view's costs."""
    txn.put(DATABASE, _COST + figures.view.to_bytes(8, "big"), msgspec.msgpack.encode(figures))


def write_decision(txn: WriteTransaction, decision: Decision) -> None:
    """Keep a decision in place of the view's oldest."""
    place = (decision.number % DECISIONS_KEPT).to_bytes(4, "big")
    txn.put(DATABASE, _prefix(decision.view) + place, msgspec.msgpack.encode(decision))


def read_decision(txn: ReadTransaction, view: int, number: int) -> Decision | None:
    """Return a view's decision by its number; None where it is not kept, or no longer."""
    raw = txn.get(DATABASE, _prefix(view) + (number % DECISIONS_KEPT).to_bytes(4, "big"))
    found = None if raw is None else msgspec.msgpack.decode(raw, type=Decision)
    return found if found is not None and found.number == number else None


def decided_views(txn: ReadTransaction) -> list[int]:
    """Return the ids of the views of which figures are kept."""
    return [int.from_bytes(key[len(_COST) :], "big") for key, _ in txn.scan(DATABASE, _COST, after(_COST))]


def read_decisions(txn: ReadTransaction, views: Iterable[int]) -> list[Decision]:
    """Return the decisions that are kept of ``views``, view by view, newest first."""
    found: list[Decision] = []
    for view in views:
        prefix = _prefix(view)
        rows = (msgspec.msgpack.decode(raw, type=Decision) for _, raw in txn.scan(DATABASE, prefix, after(prefix)))
        found += sorted(rows, key=lambda d: d.number, reverse=True)
    return found


def delete_decisions(txn: WriteTransaction, view: int) -> None:
    """Forget the figures and decisions of a view that has gone."""
    prefix = _prefix(view)
    for key in [key for key, _ in txn.scan(DATABASE, prefix, after(prefix))]:
        txn.delete(DATABASE, key)
    txn.delete(DATABASE, _COST + view.to_bytes(8, "big"))


def _prefix(view: int) -> bytes:
    return _DECISION + view.to_bytes(8, "big")
