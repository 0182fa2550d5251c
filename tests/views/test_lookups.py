"""Lookups of a long step use several short read transactions, and the fence is asked in each of them."""

from __future__ import annotations

from typing import Any

import pytest

from viewkeeper.clock import SimulatedClock
from viewkeeper.errors import ConflictError
from viewkeeper.store.key_value import ReadTransaction
from viewkeeper.store.memory import MemorySpace
from viewkeeper.views import lookups as module
from viewkeeper.views.lookups import MAX_READ_SECONDS, SpaceLookups

STATE, FENCE = "continuous/a", "fence"
KEYS = [bytes([n]) for n in range(9)]


class _Space(MemorySpace):
    """Counts the read transactions that are begun."""

    begun = 0

    def read(self) -> Any:
        self.begun += 1
        return super().read()


class _Store:
    """A space with some state, and a fence that falls where somebody else has published."""

    def __init__(self) -> None:
        self.space, self.clock = _Space(), SimulatedClock(1000.0)
        with self.space.write() as txn:
            txn.multi_put(STATE, [(key, key * 2) for key in KEYS])
        self.asked = 0

    def fence(self, txn: ReadTransaction) -> None:
        self.asked += 1
        if txn.get(FENCE, b"published") is not None:
            raise ConflictError("EPOCH_SUPERSEDED", "Somebody else has published.")

    def publish(self) -> None:
        with self.space.write() as txn:
            txn.put(FENCE, b"published", b"")
            txn.multi_delete(STATE, KEYS)

    def lookups(self) -> SpaceLookups:
        return SpaceLookups(self.space, self.fence, self.clock)


def test_a_long_step_renews_its_transaction_and_asks_the_fence_each_time() -> None:
    store = _Store()
    with store.lookups() as lookups:
        for number in range(1, 6):
            assert lookups.multi_get(STATE, KEYS) == [key * 2 for key in KEYS]
            assert [key for key, _ in lookups.scan(STATE, b"", None)] == KEYS
            assert lookups.multi_scan(STATE, KEYS)[1] == [key * 2 for key in KEYS]
            # Three reads within its time are of one transaction, and the one before it is over.
            assert (store.space.begun, store.asked, len(store.space.readers())) == (number, number, 1)
            # Keys, pairs, prefixes with their values, and the fence's key.
            assert lookups.reads == number * (4 * len(KEYS) + 1)
            store.clock.sleep(MAX_READ_SECONDS * 1.01)
    assert store.space.readers() == []
    assert lookups.reads == 5 * (4 * len(KEYS) + 1)


def test_one_lookup_of_many_prefixes_renews_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _Store()
    monkeypatch.setattr(module, "_PREFIXES_A_READ", 2)
    plain = SpaceLookups._multi_scan

    def slowly(lookups: SpaceLookups, *arguments: Any) -> Any:
        store.clock.sleep(MAX_READ_SECONDS * 0.6)
        return plain(lookups, *arguments)

    monkeypatch.setattr(SpaceLookups, "_multi_scan", slowly)
    with store.lookups() as lookups:
        owners, values = lookups.multi_scan(STATE, KEYS)
    assert (owners.tolist(), values) == (list(range(9)), [key * 2 for key in KEYS])
    # Five reads of up to two prefixes; every second one finds the transaction too old.
    assert (store.space.begun, store.asked) == (3, 3)


def test_what_others_publish_between_two_transactions_is_never_read() -> None:
    store = _Store()
    with store.lookups() as lookups:
        assert lookups.multi_get(STATE, KEYS[:1]) == [b"\x00\x00"]
        store.publish()
        # The open transaction still shows the state of its epoch; the next one would not.
        assert lookups.multi_get(STATE, KEYS[1:2]) == [b"\x01\x01"]
        store.clock.sleep(MAX_READ_SECONDS * 1.01)
        for _ in range(2):
            with pytest.raises(ConflictError, match="EPOCH_SUPERSEDED"):
                lookups.multi_get(STATE, KEYS)
