"""One suite for every raw key-value space; the in-memory one is the model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from viewkeeper.errors import ConflictError, InputError, StoreError
from viewkeeper.store.key_value import Space, WriteTransaction
from viewkeeper.zset.keys import after


def fill(space: Space, database: str, *keys: bytes) -> None:
    with space.write() as transaction:
        transaction.multi_put(database, [(key, b"value of " + key) for key in keys])


def keys_of(space: Space, database: str) -> list[bytes]:
    with space.read() as transaction:
        return list(transaction.scan_keys(database))


class Boom(Exception):
    pass


# --- reading and writing -------------------------------------------------------------------------------------------


def test_what_is_written_is_read(space: Space) -> None:
    with space.write() as transaction:
        transaction.put("t", b"a", b"1")
        transaction.put("t", b"b", b"")
        transaction.put("t", b"a", b"2")
        transaction.put("u", b"\x00", b"\xff" * 100_000)
        transaction.put("t", b"k" * 511, b"long")
    with space.read() as transaction:
        assert transaction.get("t", b"a") == b"2"
        assert transaction.get("t", b"b") == b""
        assert transaction.get("t", b"c") is None
        assert transaction.get("u", b"\x00") == b"\xff" * 100_000
        assert transaction.get("t", b"k" * 511) == b"long"
        assert (transaction.count("t"), transaction.count("u")) == (3, 1)
        assert transaction.size_bytes("u") > 100_000 > transaction.size_bytes("t") > 511
        assert transaction.databases() == ["t", "u"]


def test_memory_is_let_go_in_the_midst_of_transactions(space: Space) -> None:
    pairs = [(b"%06d" % number, b"v" * 100) for number in range(2_000)]
    with space.write() as transaction:
        transaction.multi_put("t", pairs)
    with space.read() as reading, space.write() as writing:
        found = reading.scan("t")
        first = [next(found) for _ in range(500)]
        writing.multi_put("t", [(key, b"new") for key, _ in pairs[:1_000]])
        space.release_memory()
        assert first + list(found) == pairs
        assert writing.get("t", b"000000") == b"new"
    space.release_memory()
    with space.read() as transaction:
        assert list(transaction.scan("t")) == [(key, b"new") for key, _ in pairs[:1_000]] + pairs[1_000:]


def test_a_transaction_reads_its_own_writes(space: Space) -> None:
    fill(space, "t", b"a", b"b", b"c")
    with space.write() as transaction:
        transaction.put("t", b"bb", b"new")
        assert transaction.delete("t", b"a")
        assert not transaction.delete("t", b"a")
        assert transaction.get("t", b"bb") == b"new"
        assert transaction.get("t", b"a") is None
        assert transaction.multi_get("t", [b"a", b"b", b"bb"]) == [None, b"value of b", b"new"]
        assert list(transaction.scan_keys("t")) == [b"b", b"bb", b"c"]
        assert list(transaction.scan_keys("t", b"bb")) == [b"bb", b"c"]
        assert transaction.count("t") == 3
        assert transaction.databases() == ["t"]
        transaction.put("new", b"k", b"v")
        assert transaction.databases() == ["new", "t"]


def test_an_exception_undoes_everything(space: Space) -> None:
    fill(space, "t", b"a", b"b")
    fill(space, "dropped", b"x")
    fill(space, "renamed", b"y")

    def change_all_and_fail() -> None:
        with space.write() as transaction:
            transaction.put("t", b"a", b"changed")
            transaction.delete("t", b"b")
            transaction.put("created", b"k", b"v")
            transaction.drop("dropped")
            transaction.rename("renamed", "other")
            raise Boom

    with pytest.raises(Boom):
        change_all_and_fail()
    with space.read() as transaction:
        assert transaction.databases() == ["dropped", "renamed", "t"]
        assert list(transaction.scan("t")) == [(b"a", b"value of a"), (b"b", b"value of b")]
        assert transaction.get("created", b"k") is None
    fill(space, "created", b"again")
    assert keys_of(space, "created") == [b"again"]
    assert keys_of(space, "dropped") == [b"x"]


def test_absent_databases_read_as_empty_and_are_not_made(space: Space) -> None:
    with space.write() as transaction:
        assert transaction.get("no", b"k") is None
        assert not transaction.delete("no", b"k")
        transaction.multi_delete("no", [b"k"])
        assert transaction.delete_range("no", None, None) == 0
        transaction.drop("no")
        transaction.rename("no", "nor")
    with space.read() as transaction:
        assert transaction.get("no", b"k") is None
        assert transaction.multi_get("no", [b"a", b"b"]) == [None, None]
        assert list(transaction.scan("no")) == list(transaction.scan_keys("no")) == []
        assert transaction.count("no") == transaction.size_bytes("no") == 0
        assert transaction.databases() == []


def test_multi_get_keeps_order_with_missing_and_repeated_keys(space: Space) -> None:
    fill(space, "t", *(b"%03d" % number for number in range(0, 100, 2)))
    asked = [b"003", b"002", b"098", b"002", b"zzz", b"000", b"", b"k" * 600]
    expected = [None, b"value of 002", b"value of 098", b"value of 002", None, b"value of 000", None, None]
    with space.read() as transaction:
        assert transaction.multi_get("t", asked) == expected
        assert transaction.multi_get("t", []) == []
        assert transaction.multi_get("t", [b"002", b"002"]) == [b"value of 002"] * 2
        assert transaction.get("t", b"") is None
        assert transaction.get("t", b"k" * 600) is None


def test_appending(space: Space) -> None:
    fill(space, "t", b"a", b"b")
    with space.write() as transaction:
        transaction.multi_put("t", [(b"c", b"3"), (b"d", b"4")], append=True)
        transaction.multi_put("new", [(b"c", b"3")], append=True)
    assert keys_of(space, "t") == [b"a", b"b", b"c", b"d"]
    for bad in ([(b"b", b"")], [(b"d", b"")], [(b"f", b""), (b"e", b"")], [(b"f", b""), (b"f", b"")]):
        with pytest.raises(InputError) as caught, space.write() as transaction:
            transaction.multi_put("t", bad, append=True)
        assert caught.value.code == "KEYS_NOT_ASCENDING"
    assert keys_of(space, "t") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("key", [b"", b"k" * 512])
def test_keys_that_cannot_be_written(space: Space, key: bytes) -> None:
    def put(transaction: WriteTransaction) -> None:
        transaction.put("t", key, b"v")

    def multi_put(transaction: WriteTransaction) -> None:
        transaction.multi_put("t", [(b"fine", b"v"), (key, b"v")])

    for write in (put, multi_put):
        with pytest.raises(InputError) as caught, space.write() as transaction:
            write(transaction)
        assert caught.value.code == "KEY_LENGTH_INVALID"
        assert keys_of(space, "t") == []
    with space.write() as transaction:
        with pytest.raises(InputError):
            transaction.put("t", key, b"v")
        assert not transaction.delete("t", key)
        transaction.put("t", b"a", b"")
        transaction.multi_delete("t", [key, b"a"])
    assert keys_of(space, "t") == []


# --- scans ---------------------------------------------------------------------------------------------------------

BOUNDS = [None, b"", b"\x00", b"a", b"ab", b"ab\x00", b"abc", b"ac", b"b", b"\xff", b"\xff\xff", b"\xff" * 600]


def test_scans_with_all_bounds_both_ways(space: Space) -> None:
    keys = [b"\x00", b"\x00\x00", b"a", b"ab", b"ab\x00", b"aba", b"ab\xff", b"ac", b"\xff", b"\xff\xff"]
    fill(space, "t", *keys)
    fill(space, "one", b"ab")
    for database, there in (("t", sorted(keys)), ("one", [b"ab"]), ("none", [])):
        for start in BOUNDS:
            for stop in BOUNDS:
                expected = [key for key in there if key >= (start or b"") and (stop is None or key < stop)]
                with space.read() as transaction:
                    up = [key for key, _ in transaction.scan(database, start, stop)]
                    down = list(transaction.scan(database, start, stop, reverse=True))
                    assert up == expected, (database, start, stop)
                    assert [key for key, _ in down] == expected[::-1], (database, start, stop)
                    assert all(value == b"value of " + key for key, value in down)
                    assert list(transaction.scan_keys(database, start, stop)) == expected


@pytest.mark.parametrize("prefix", [b"a", b"ab", b"ab\xff", b"\xff", b"\xff\xff", b"zz"])
def test_scans_of_a_prefix(space: Space, prefix: bytes) -> None:
    keys = [b"a", b"ab", b"ab\xff", b"ab\xff\xff", b"ab\xff\xff\x00", b"ac", b"\xff", b"\xff\xff", b"\xff\xff\xff"]
    fill(space, "t", *keys)
    with space.read() as transaction:
        found = [key for key, _ in transaction.scan("t", prefix, after(prefix))]
        lengths, values = transaction.multi_scan("t", [prefix, b"no", prefix])
        assert transaction.multi_scan("none", [prefix]) == ([0], [])
        assert transaction.multi_scan("none", [prefix], [1]) == ([0], [])
        cut, first = transaction.multi_scan("t", [prefix, b"no", prefix], [1, 1, 2])
    assert found == [key for key in sorted(keys) if key.startswith(prefix)]
    assert lengths == [len(found), 0, len(found)]
    assert values == [b"value of " + key for key in found] * 2
    assert cut == [min(1, len(found)), 0, min(2, len(found))]
    assert first == [b"value of " + key for key in [*found[:1], *found[:2]]]


def test_several_scans_of_one_transaction_do_not_disturb_each_other(space: Space) -> None:
    fill(space, "t", *(b"%03d" % number for number in range(300)))
    with space.read() as transaction:
        up, down = transaction.scan_keys("t"), transaction.scan("t", reverse=True)
        pairs = [(next(up), next(down)[0], transaction.get("t", b"150")) for _ in range(300)]
    assert pairs == [(b"%03d" % n, b"%03d" % (299 - n), b"value of 150") for n in range(300)]


def test_a_scan_started_before_its_keys_are_deleted_one_by_one(space: Space) -> None:
    fill(space, "t", *(b"%04d" % number for number in range(1000)))
    with space.write() as transaction:
        for key in list(transaction.scan_keys("t", b"0100", b"0900")):
            transaction.delete("t", key)
    assert len(keys_of(space, "t")) == 200


# --- ranges, drops, renames ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop", "limit", "left"),
    [
        (None, None, None, []),
        (None, None, 3, [3, 4, 5, 6, 7, 8, 9]),
        (b"3", b"6", None, [0, 1, 2, 6, 7, 8, 9]),
        (b"3", b"6", 2, [0, 1, 2, 5, 6, 7, 8, 9]),
        (b"3", b"6", 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (b"7", None, None, [0, 1, 2, 3, 4, 5, 6]),
        (b"25", b"55", 100, [0, 1, 2, 6, 7, 8, 9]),
        (b"6", b"3", None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (b"x", None, None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (None, b"", None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_delete_range(
    space: Space, start: bytes | None, stop: bytes | None, limit: int | None, left: list[int]
) -> None:
    fill(space, "t", *(b"%d" % number for number in range(10)))
    with space.write() as transaction:
        assert transaction.delete_range("t", start, stop, limit) == 10 - len(left)
        assert list(transaction.scan_keys("t")) == [b"%d" % number for number in left]
    assert keys_of(space, "t") == [b"%d" % number for number in left]


def test_a_large_delete_range_in_bounded_steps(space: Space) -> None:
    fill(space, "t", *(b"%06d" % number for number in range(5000)))
    went = []
    while not went or went[-1]:
        with space.write() as transaction:
            went.append(transaction.delete_range("t", b"001000", b"004000", 700))
    assert went == [700, 700, 700, 700, 200, 0]
    assert len(keys_of(space, "t")) == 2000


def test_drop_and_make_again(space: Space) -> None:
    fill(space, "t", *(b"%04d" % number for number in range(2000)))
    with space.write() as transaction:
        transaction.put("t", b"extra", b"")
        transaction.drop("t")
        assert transaction.databases() == []
        assert transaction.get("t", b"0001") is None
        transaction.put("t", b"fresh", b"")
        assert list(transaction.scan_keys("t")) == [b"fresh"]
    assert keys_of(space, "t") == [b"fresh"]


def test_rename_replaces_what_was_there(space: Space) -> None:
    fill(space, "old", b"o")
    fill(space, "new", b"n1", b"n2")
    with space.write() as transaction:
        transaction.put("old", b"p", b"")
        transaction.rename("old", "new")
        assert transaction.databases() == ["new"]
        assert list(transaction.scan_keys("new")) == [b"o", b"p"]
        assert transaction.get("old", b"o") is None
        transaction.put("old", b"second", b"")
    assert (keys_of(space, "old"), keys_of(space, "new")) == ([b"second"], [b"o", b"p"])


def test_rename_swaps_in_one_transaction(space: Space) -> None:
    fill(space, "a", b"a")
    fill(space, "b", b"b")
    with space.write() as transaction:
        transaction.rename("a", "c")
        transaction.rename("b", "a")
        transaction.rename("c", "b")
    assert (keys_of(space, "a"), keys_of(space, "b"), keys_of(space, "c")) == ([b"b"], [b"a"], [])


def test_rename_to_itself_and_of_an_absent_one(space: Space) -> None:
    fill(space, "a", b"a")
    with space.write() as transaction:
        transaction.rename("a", "a")
        transaction.rename("absent", "absent")
    assert keys_of(space, "a") == [b"a"]
    with space.write() as transaction:
        transaction.rename("absent", "a")
    assert keys_of(space, "a") == []


def test_many_databases_come_and_go(space: Space) -> None:
    names = [f"table {number} – ü" for number in range(100)]
    with space.write() as transaction:
        for name in names:
            transaction.put(name, b"k", name.encode())
    with space.write() as transaction:
        for name in names[::2]:
            transaction.drop(name)
        for number in range(50):
            transaction.put(f"second {number}", b"k", b"")
    with space.read() as transaction:
        assert len(transaction.databases()) == 100
        assert [transaction.get(name, b"k") for name in names[1::2]] == [name.encode() for name in names[1::2]]
        assert all(transaction.count(name) == 0 for name in names[::2])


# --- isolation -----------------------------------------------------------------------------------------------------


def test_an_open_reader_keeps_its_moment(space: Space) -> None:
    keys = [b"%04d" % number for number in range(1000)]
    fill(space, "t", *keys)
    fill(space, "dropped", b"d")
    fill(space, "renamed", b"r")
    with space.read() as reader:
        begun = reader.scan_keys("t")
        assert [next(begun) for _ in range(10)] == keys[:10]
        with space.write() as transaction:
            transaction.delete_range("t", None, b"0500")
            transaction.multi_put("t", [(b"0500", b"changed"), (b"9999", b"added")])
            transaction.drop("dropped")
            transaction.rename("renamed", "other")
            assert reader.get("t", b"0001") == b"value of 0001"
        with space.write() as transaction:
            transaction.put("reuses the dropped one", b"k", b"v")
            transaction.put("renamed", b"r", b"other")
        assert list(begun) == keys[10:]
        assert list(reader.scan_keys("t")) == keys
        assert reader.get("t", b"0500") == b"value of 0500"
        assert reader.count("t") == 1000
        assert reader.get("dropped", b"d") == b"value of d"
        assert reader.get("renamed", b"r") == b"value of r"
        assert reader.get("other", b"r") is None
        assert reader.databases() == ["dropped", "renamed", "t"]
    with space.read() as reader:
        assert reader.databases() == ["other", "renamed", "reuses the dropped one", "t"]
        assert reader.count("t") == 501
        assert reader.get("other", b"r") == b"value of r"


def test_others_do_not_see_an_open_write(space: Space) -> None:
    fill(space, "t", b"a")
    with space.write() as transaction:
        transaction.put("t", b"b", b"")
        transaction.put("new", b"k", b"")
        with space.read() as reader:
            assert (reader.count("t"), reader.databases()) == (1, ["t"])
    with space.read() as reader:
        assert (reader.count("t"), reader.databases()) == (2, ["new", "t"])


def test_a_transaction_that_is_over_refuses(space: Space) -> None:
    fill(space, "t", b"a", b"b", b"c")
    with space.read() as reader:
        scan = reader.scan("t")
    with space.write() as writer:
        writer.put("t", b"d", b"")
    uses: list[Callable[[], object]] = [
        lambda: reader.get("t", b"a"),
        lambda: reader.multi_get("t", [b"a"]),
        lambda: reader.count("t"),
        reader.databases,
        lambda: list(reader.scan("t")),
        lambda: writer.get("t", b"a"),
        lambda: writer.put("t", b"a", b""),
        lambda: writer.drop("t"),
        lambda: writer.delete_range("t", None, None),
    ]
    for use in uses:
        with pytest.raises(StoreError) as caught:
            use()
        assert caught.value.code == "TRANSACTION_CLOSED"
    del scan
    assert keys_of(space, "t") == [b"a", b"b", b"c", b"d"]


def test_a_thread_cannot_wait_for_itself(space: Space) -> None:
    with space.write() as transaction:
        transaction.put("t", b"a", b"")
        with pytest.raises(ConflictError) as caught, space.write():
            pass
        assert caught.value.code == "WRITE_IN_PROGRESS"
        transaction.put("t", b"b", b"")
    assert keys_of(space, "t") == [b"a", b"b"]


def test_a_closed_space_refuses(space: Any) -> None:
    fill(space, "t", b"a")
    space.close()
    space.close()
    for use in (space.sync, space.size_bytes, space.readers, space.read().__enter__, space.write().__enter__):
        with pytest.raises(StoreError) as caught:
            use()
        assert caught.value.code == "STORE_CLOSED"


def test_sizes_and_readers(space: Space) -> None:
    before = space.size_bytes()
    with space.write() as transaction:
        transaction.put("t", b"k", b"v" * 1_000_000)
    assert space.size_bytes() >= before + 1_000_000
    space.sync()
    assert space.readers() == []
    with space.read(), space.read():
        ages = [age for _, age in space.readers()]
        assert len(ages) == 2
        assert all(0 <= age < 60 for age in ages)
    assert space.readers() == []


def test_threads_lose_no_update(space: Space) -> None:
    failures: list[BaseException] = []

    def add(name: str) -> None:
        try:
            for number in range(100):
                with space.write() as transaction:
                    total = int(transaction.get("t", b"total") or b"0") + 1
                    transaction.put("t", b"total", b"%d" % total)
                    transaction.put(name, b"%d" % number, b"%d" % total)
        except BaseException as error:
            failures.append(error)

    def watch(stop: threading.Event) -> None:
        try:
            last = 0
            while not stop.is_set():
                with space.read() as transaction:
                    total = int(transaction.get("t", b"total") or b"0")
                    rows = sum(transaction.count(name) for name in transaction.databases() if name != "t")
                assert rows == total >= last
                last = total
        except BaseException as error:
            failures.append(error)

    stop = threading.Event()
    watchers = [threading.Thread(target=watch, args=(stop,)) for _ in range(2)]
    writers = [threading.Thread(target=add, args=(f"thread {number}",)) for number in range(4)]
    for thread in watchers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in watchers:
        thread.join()
    assert failures == []
    with space.read() as transaction:
        assert transaction.get("t", b"total") == b"400"
