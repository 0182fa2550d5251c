"""Error bags: the rows that cannot be computed, each with how often it is there.

An entry is the error's text (reason and key as JSON), stored under its hash because a text may exceed a key's length.
Counts only add, so the terms of a delta rule may add an error and take it away again in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b

from viewkeeper.store.key_value import ReadTransaction, WriteTransaction

_COUNT_BYTES = 8


def add_to_bag(txn: WriteTransaction, bag: str, weights: Mapping[bytes, int]) -> None:
    """Add ``weights`` to the counts of the entries; a count of 0 removes its entry."""
    for text, weight in weights.items():
        if not weight:
            continue
        key = blake2b(text, digest_size=16).digest()
        stored = txn.get(bag, key)
        count = weight + (int.from_bytes(stored[:_COUNT_BYTES], "big", signed=True) if stored else 0)
        if count:
            txn.put(bag, key, count.to_bytes(_COUNT_BYTES, "big", signed=True) + text)
        else:
            txn.delete(bag, key)


def entries_of(txn: ReadTransaction, bag: str) -> Iterator[bytes]:
    """Yield the texts of the bag's entries."""
    for _, value in txn.scan(bag):
        yield value[_COUNT_BYTES:]


def counts_of(txn: ReadTransaction, bag: str) -> dict[bytes, int]:
    """Return the texts of the bag's entries with their counts."""
    pairs = (value for _, value in txn.scan(bag))
    return {value[_COUNT_BYTES:]: int.from_bytes(value[:_COUNT_BYTES], "big", signed=True) for value in pairs}
