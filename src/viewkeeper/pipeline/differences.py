"""What recomputing has made less what is stored: found key range by key range, so never all of a table in memory.

    made by the tasks, each piece ascending  --+
                                               +--> per key range of a state table: puts and deletes
    stored at E-1, ascending                 --+

A range belongs to one task, which writes what differs there: so no key is written twice, and keys that are stored and
that nobody has made are seen. Ranges are cut by what is stored, which stands still while the fence holds: all attempts
of all tasks cut alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from viewkeeper.operators.state import WriteSet
from viewkeeper.pipeline.bags import counts_of
from viewkeeper.pipeline.records import DELETED, read_view
from viewkeeper.store.key_value import ReadTransaction, Space
from viewkeeper.store.scans import KeyRange, cut_at

_PAIRS_PER_READ = 32_768
_SEEKS_PER_PART = 32
_ALL = KeyRange()

Fence = Callable[[ReadTransaction], None]
Pairs = Iterator[tuple[Sequence[bytes], Sequence[bytes | None]]]


class Made(Protocol):
    """What one task has made."""

    def between(self, state: str, keys: KeyRange) -> Pairs:
        """Yield what it made of a part of a state table: keys, ascending, and their values."""

    def counts(self, bag: str) -> Mapping[bytes, int]:
        """Return the entries that it made of an error bag, with their counts."""


@dataclass(frozen=True)
class MadeHere:
    """A write set of this process as ``Made``."""

    writes: WriteSet

    def between(self, state: str, keys: KeyRange) -> Pairs:
        """Yield what it made of a part of a state table."""
        for piece in self.writes.tables.get(state, ()):
            start = 0 if keys.start is None else bisect_left(piece.keys, keys.start)
            stop = len(piece.keys) if keys.stop is None else bisect_left(piece.keys, keys.stop)
            yield piece.keys[start:stop], piece.values[start:stop]

    def counts(self, bag: str) -> Mapping[bytes, int]:
        """Return the entries that it made of an error bag, with their counts."""
        return self.writes.merges.get(bag, {})


@dataclass(frozen=True)
class Part:
    """What is compared by one task: a key range of a state table, or an error bag.

    Args:
        made: the name under which it is made.
        stored: the name under which it is stored.
        view: the view whose rows the table has; None for other state.
        keys: the key range; None for an error bag.
    """

    made: str
    stored: str
    view: int | None = None
    keys: KeyRange | None = _ALL


def key_ranges(txn: ReadTransaction, database: str, parts: int) -> list[KeyRange]:
    """Cut a table into key ranges of about equally many rows, by few seeks.

    They look behind keys that lie evenly, as numbers, between the first and the last one, so ranges are as even as the
    keys are.

    Args:
        txn: a read transaction.
        database: the table.
        parts: how many ranges there are at most.
    """
    first, last = next(txn.scan_keys(database), None), next(txn.scan(database, reverse=True), None)
    if first is None or last is None or parts == 1:
        return [_ALL]
    width = max(len(first), len(last[0]))
    low, high = (int.from_bytes(key.ljust(width, b"\0"), "big") for key in (first, last[0]))
    seeks = parts * _SEEKS_PER_PART
    places = (low + (high - low) * number // seeks for number in range(1, seeks))
    found = (next(txn.scan_keys(database, place.to_bytes(width, "big")), first) for place in places)
    return cut_at(list(dict.fromkeys((first, *found))), parts)


def difference(space: Space, fence: Fence, parts: Sequence[Part], made: Sequence[Made]) -> WriteSet:
    """Return what makes of the stored parts what was made.

    Args:
        space: the views space.
        fence: checks in each read transaction that the epoch is still the next one.
        parts: what to compare.
        made: by all tasks; where two have a key the later one counts.
    """
    changes = WriteSet()
    for part in parts:
        if part.keys is None:
            _add_counts(changes, space, fence, part, made)
        else:
            _add_pairs(changes, space, fence, part, made)
    return changes


def _add_pairs(changes: WriteSet, space: Space, fence: Fence, part: Part, made: Sequence[Made]) -> None:
    gone: list[bytes] = []
    come: list[tuple[bytes, bytes]] = []
    replaced = 0
    for keys, shown in _stored(space, fence, part):
        now: dict[bytes, bytes | None] = {}
        for one in made:
            for some_keys, values in one.between(part.made, keys):
                now.update(zip(some_keys, values, strict=True))
        stored = shown.get
        other = sorted((k, v) for k, v in now.items() if v is not None and stored(k) != v)
        replaced += sum(key in shown for key, _ in other)
        come += other
        gone += sorted(key for key in shown if now.get(key) is None)
    changes.delete(part.stored, gone)
    changes.put(part.stored, [key for key, _ in come], [value for _, value in come])
    if part.view is not None and (come or gone):
        changes.rows[part.stored] = changes.rows.get(part.stored, 0) + len(come) + len(gone) + replaced


def _stored(space: Space, fence: Fence, part: Part) -> Iterator[tuple[KeyRange, dict[bytes, bytes]]]:
    """Yield a part as it is at E-1, range by range; of a FAILED view's rows, with the changes that wait."""
    assert part.keys is not None
    start, is_last = part.keys.start, False
    while not is_last:
        with space.read() as txn:
            fence(txn)
            pairs = list(islice(txn.scan(part.stored, start, part.keys.stop), _PAIRS_PER_READ))
            is_last = len(pairs) < _PAIRS_PER_READ
            keys = KeyRange(start, part.keys.stop if is_last else pairs[-1][0] + b"\x00")
            shown = dict(pairs)
            for key, change in _waiting(txn, part, keys):
                if change == DELETED:
                    shown.pop(key, None)
                else:
                    shown[key] = change[1:]
        yield keys, shown
        start = keys.stop


def _waiting(txn: ReadTransaction, part: Part, keys: KeyRange) -> Iterator[tuple[bytes, bytes]]:
    record = None if part.view is None else read_view(txn, part.view)
    return iter(()) if record is None else txn.scan(record.pending, keys.start, keys.stop)


def _add_counts(changes: WriteSet, space: Space, fence: Fence, part: Part, made: Sequence[Made]) -> None:
    counts: dict[bytes, int] = {}
    for one in made:
        for text, weight in one.counts(part.made).items():
            counts[text] = counts.get(text, 0) + weight
    with space.read() as txn:
        fence(txn)
        for text, count in counts_of(txn, part.stored).items():
            counts[text] = counts.get(text, 0) - count
    changed = {text: weight for text, weight in counts.items() if weight}
    if changed:
        changes.merges[part.stored] = changed
