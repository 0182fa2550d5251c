"""What the background scrub has found, one record a view, beside what is published.

    scrub/<view>    when a part of the view was last compared, what came of it, where the next part begins

A view that is filled anew has another id, so what was found in its old rows goes with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from viewkeeper.pipeline.records import DATABASE
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.zset.keys import after

RIGHT, WRONG, SKIPPED = "right", "wrong", "skipped"

_SCRUB = b"scrub/"


@dataclass(frozen=True)
class ScrubRecord:
    """The last scrub of a view.

    Args:
        view: the view's id.
        at_seconds: when it ended, in seconds since 1970.
        result: ``RIGHT``, ``WRONG`` or ``SKIPPED``.
        note: what is wrong, or why it was skipped.
        rows: how many of its rows were compared.
        position: the log position at which they were.
        start: a stored row, at whose key the next part begins; empty for the first.
        since_seconds: when what is wrong was found first.
        checks: how often it was found since.
    """

    view: int
    at_seconds: float
    result: str
    note: str = ""
    rows: int = 0
    position: int = -1
    start: bytes = b""
    since_seconds: float = 0.0
    checks: int = 0


def read_scrubs(txn: ReadTransaction) -> dict[int, ScrubRecord]:
    """Return the last scrub of each view, by its id."""
    found = (msgspec.msgpack.decode(raw, type=ScrubRecord) for _, raw in txn.scan(DATABASE, _SCRUB, after(_SCRUB)))
    return {record.view: record for record in found}


def write_scrub(txn: WriteTransaction, record: ScrubRecord) -> None:
    """Keep what came of a scrub."""
    txn.put(DATABASE, _key(record.view), msgspec.msgpack.encode(record))


def delete_scrub(txn: WriteTransaction, view: int) -> None:
    """Forget a view that there is no more."""
    txn.delete(DATABASE, _key(view))


def _key(view: int) -> bytes:
    return _SCRUB + view.to_bytes(8, "big")
