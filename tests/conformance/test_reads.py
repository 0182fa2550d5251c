"""Transactions count what they read, each raw space alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from viewkeeper.errors import StoreError
from viewkeeper.store.key_value import ReadTransaction, Space

KEYS = [b"%02d" % number for number in range(20)]


@pytest.fixture
def filled(space: Space) -> Space:
    with space.write() as transaction:
        transaction.multi_put("t", [(key, b"value") for key in KEYS])
    return space


READS: dict[str, tuple[Callable[[ReadTransaction], object], int]] = {
    "a key": (lambda txn: txn.get("t", b"03"), 1),
    "an absent key": (lambda txn: txn.get("t", b"no"), 1),
    "a key of nothing": (lambda txn: txn.get("none", b"03"), 1),
    "keys": (lambda txn: txn.multi_get("t", [b"03", b"no", b"03"]), 3),
    "keys, one of them empty": (lambda txn: txn.multi_get("t", [b"03", b"", b"05"]), 3),
    "keys of nothing": (lambda txn: txn.multi_get("none", [b"03", b"05"]), 2),
    "no key": (lambda txn: txn.multi_get("t", []), 0),
    "all pairs": (lambda txn: list(txn.scan("t")), 20),
    "from a key": (lambda txn: list(txn.scan("t", b"15")), 5),
    "up to a key": (lambda txn: list(txn.scan("t", None, b"15")), 15),
    "between keys": (lambda txn: list(txn.scan("t", b"03", b"05")), 2),
    "between keys, backwards": (lambda txn: list(txn.scan("t", b"03", b"05", reverse=True)), 2),
    "backwards": (lambda txn: list(txn.scan("t", None, b"05", reverse=True)), 5),
    "no pair": (lambda txn: list(txn.scan("t", b"05", b"05")), 0),
    "a scan of nothing": (lambda txn: list(txn.scan("none")), 0),
    "all keys": (lambda txn: list(txn.scan_keys("t")), 20),
    "keys between keys": (lambda txn: list(txn.scan_keys("t", b"03", b"05")), 2),
    "a scan that is left": (lambda txn: next(txn.scan("t", b"03", b"15")), 1),
    "a scan of keys that is left": (lambda txn: next(txn.scan_keys("t")), 1),
    "a scan that never began": (lambda txn: txn.scan("t"), 0),
    "prefixes": (lambda txn: txn.multi_scan("t", [b"0", b"19", b"no"]), 3 + 11),
    "prefixes with limits": (lambda txn: txn.multi_scan("t", [b"0", b"1", b"no"], [2, 0, 1]), 3 + 2),
    "prefixes of nothing": (lambda txn: txn.multi_scan("none", [b"0", b"1"]), 2),
    "what is known without reading": (lambda txn: (txn.count("t"), txn.size_bytes("t"), txn.databases()), 0),
}


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("write", [False, True])
def test_what_is_read_is_counted(filled: Space, what: str, write: bool) -> None:
    read, count = READS[what]
    with filled.write() if write else filled.read() as transaction:
        assert transaction.reads == 0
        read(transaction)
        assert transaction.reads == count
        read(transaction)
        assert transaction.reads == 2 * count


def test_a_scan_counts_as_it_goes_and_others_beside_it(filled: Space) -> None:
    with filled.read() as transaction, filled.read() as other:
        up, down = transaction.scan("t", b"03", b"05"), transaction.scan("t", reverse=True)
        counts = []
        for scan in (up, down, up, down):
            next(scan)
            counts.append(transaction.reads)
        assert counts == [1, 2, 3, 4]
        assert next(up, None) is None
        assert (transaction.reads, other.reads) == (4, 0)
        del up, down
    assert transaction.reads == 4


def test_what_a_write_looks_for_is_not_counted(filled: Space) -> None:
    with filled.write() as transaction:
        transaction.put("t", b"00", b"new")
        transaction.multi_put("t", [(b"98", b""), (b"99", b"")], append=True)
        assert transaction.delete("t", b"01")
        transaction.multi_delete("t", [b"02", b"no"])
        assert transaction.delete_range("t", b"03", b"05") == 2
        assert transaction.delete_range("t", None, None, 1) == 1
        transaction.rename("t", "u")
        transaction.drop("u")
        assert transaction.reads == 0


def test_what_is_refused_is_not_counted_and_the_count_stays(filled: Space) -> None:
    with filled.read() as transaction:
        transaction.multi_get("t", KEYS)
    uses: list[Callable[[], object]] = [
        lambda: transaction.get("t", b"00"),
        lambda: transaction.multi_get("t", KEYS),
        lambda: transaction.multi_scan("t", KEYS),
        lambda: list(transaction.scan("t")),
    ]
    for use in uses:
        with pytest.raises(StoreError):
            use()
        assert transaction.reads == 20
