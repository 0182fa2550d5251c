"""Any sequence of transactions gives and counts the same on every raw space, for old readers too, as in memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from itertools import islice
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from viewkeeper.adapters.lmdb.options import EnvironmentOptions
from viewkeeper.adapters.lmdb.space import LmdbSpace
from viewkeeper.errors import ViewkeeperError
from viewkeeper.store.memory import MemorySpace

QUICK = EnvironmentOptions(durability="none")


class Boom(Exception):
    pass


DATABASES = st.sampled_from(["a", "b", "c"])
KEYS = st.one_of(
    st.sampled_from([b"\x00", b"a", b"aa", b"ab", b"b", b"\xff", b"\xff\xff"]),
    st.binary(min_size=1, max_size=2),
    st.integers(0, 400).map(lambda number: b"%03d" % number),
)
VALUES = st.one_of(st.binary(max_size=3), st.just(b"x" * 5000))
BOUND = st.one_of(st.none(), KEYS)
PAIRS = st.one_of(
    st.lists(st.tuples(KEYS, VALUES), max_size=5),
    st.integers(0, 400).map(lambda n: [(b"%03d" % (n * 7 % 400), b"%d" % n) for n in range(n)]),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), DATABASES, KEYS, VALUES),
    st.tuples(st.just("multi_put"), DATABASES, PAIRS),
    st.tuples(st.just("delete"), DATABASES, KEYS),
    st.tuples(st.just("multi_delete"), DATABASES, st.lists(KEYS, max_size=5)),
    st.tuples(st.just("delete_range"), DATABASES, BOUND, BOUND, st.one_of(st.none(), st.integers(0, 50))),
    st.tuples(st.just("drop"), DATABASES),
    st.tuples(st.just("rename"), DATABASES, DATABASES),
    st.tuples(st.just("get"), DATABASES, KEYS),
    st.tuples(st.just("multi_get"), DATABASES, st.lists(KEYS, max_size=8)),
    st.tuples(st.just("scan"), DATABASES, BOUND, BOUND, st.booleans()),
    st.tuples(st.just("scan_keys"), DATABASES, BOUND, BOUND),
    st.tuples(st.just("left_scan"), DATABASES, BOUND, BOUND, st.booleans(), st.integers(0, 20)),
    st.tuples(st.just("multi_scan"), DATABASES, st.lists(KEYS, max_size=5)),
    st.tuples(st.just("limited_scan"), DATABASES, st.lists(st.tuples(KEYS, st.integers(0, 5)), max_size=5)),
    st.tuples(st.just("count"), DATABASES),
    st.tuples(st.just("databases")),
)
TRANSACTIONS = st.lists(
    st.tuples(st.lists(OPERATIONS, max_size=8), st.booleans(), st.booleans()), min_size=1, max_size=6
)


def done(transaction: Any, operation: tuple[Any, ...]) -> object:
    """Do an operation; return its answer, or the code of its error."""
    name, *arguments = operation
    if name == "left_scan":
        return list(islice(transaction.scan(*arguments[:-1]), arguments[-1]))
    if name == "limited_scan":
        database, asked = arguments
        return transaction.multi_scan(database, [prefix for prefix, _ in asked], [limit for _, limit in asked])
    try:
        answer = getattr(transaction, name)(*arguments)
    except ViewkeeperError as error:
        return error.code
    return list(answer) if name.startswith("scan") else answer


def contents(transaction: Any) -> dict[str, list[tuple[bytes, bytes]]]:
    return {name: list(transaction.scan(name)) for name in transaction.databases()}


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(TRANSACTIONS)
def test_any_sequence_gives_the_same_on_both(transactions: list[tuple[list[tuple[Any, ...]], bool, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as readers:
        model, real = MemorySpace(), LmdbSpace(folder, QUICK)
        readers.callback(real.close)
        moments = []
        for operations, keep_reader, abort in transactions:
            if keep_reader:
                pair = readers.enter_context(model.read()), readers.enter_context(real.read())
                moments.append((*pair, contents(pair[0])))
            try:
                with model.write() as expected, real.write() as found:
                    for operation in operations:
                        assert done(found, operation) == done(expected, operation), operation
                        assert found.reads == expected.reads, operation
                    assert contents(found) == contents(expected)
                    if abort:
                        raise Boom
            except Boom:
                pass
            with model.read() as expected, real.read() as found:
                assert contents(found) == contents(expected)
                assert found.reads == expected.reads
            for old_model, old_real, then in moments:
                assert contents(old_model) == then
                assert contents(old_real) == then
                assert old_model.reads == old_real.reads + sum(map(len, then.values()))
