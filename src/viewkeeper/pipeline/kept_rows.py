"""Cutting the state from which kept rows are read (``operators/kept_rows.py``) where it may be cut.

Cuts are found in the lender's table as it is now. They hold for it as it was at a build's position as well: where a
unit ends follows from its keys, and ranges from cut to cut leave no key out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from viewkeeper.operators.kept_rows import Keeper
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.scans import KeyRange


def range_end(
    txn: ReadTransaction, lent: str, keeper: Keeper, start: bytes | None, stop: bytes | None, rows: int
) -> tuple[bytes | None, int]:
    """Return where a range of about ``rows`` keys ends that cuts no unit, and how many keys it holds.

    Args:
        txn: a transaction of the views space.
        lent: the lender's table.
        keeper: the operator whose state it is.
        start: the first key; None from the beginning.
        stop: where the range ends at the latest, no unit being cut there; None at the end.
        rows: at least one.
    """
    keys = list(islice(txn.scan_keys(lent, start, stop), rows))
    if len(keys) < rows:
        return stop, len(keys)
    value = txn.get(lent, keys[-1])
    assert value is not None, "keys and values are of one moment"
    end = keeper.unit_end(keys[-1], value)
    if end is None or next(txn.scan_keys(lent, end, stop), None) is None:
        end = stop
    return end, len(keys) + sum(1 for _ in txn.scan_keys(lent, keys[-1] + b"\x00", end))


def split_kept(
    txn: ReadTransaction, lent: str, keeper: Keeper, within: KeyRange, parts: int, rows: int
) -> Iterator[KeyRange]:
    """Yield ranges that together are ``within`` and cut no unit.

    Args:
        txn: a transaction of the views space.
        lent: the lender's table.
        keeper: the operator whose state it is.
        within: what is to be cut.
        parts: how many ranges there are about.
        rows: how many keys ``within`` holds about.
    """
    start, step = within.start, max(-(-rows // parts), 1)
    while True:
        end, _ = range_end(txn, lent, keeper, start, within.stop, step)
        yield KeyRange(start, end)
        if end == within.stop:
            return
        start = end
