"""Single gets in a hot loop, of every space."""

from __future__ import annotations

from typing import Any

import pytest

from viewkeeper.errors import StoreError
from viewkeeper.store.key_value import Space


def put(space: Space, database: str, key: bytes, value: bytes) -> None:
    with space.write() as transaction:
        transaction.put(database, key, value)


def test_point_gets_show_each_commit_at_once(space: Space) -> None:
    get = space.point_get("t", lambda txn: True)
    assert get(b"a") is None
    for value in (b"1", b"2", b"3"):
        put(space, "t", b"a", value)
        assert [get(b"a"), get(b"a"), get(b"b")] == [value, value, None]
    with space.write() as transaction:
        transaction.drop("t")
        transaction.put("u", b"a", b"of u")
    assert get(b"a") is None
    with space.write() as transaction:
        transaction.rename("u", "t")
    assert get(b"a") == get(b"a") == b"of u"
    assert space.readers() == []


def test_point_gets_answer_only_while_their_condition_holds(space: Space) -> None:
    get = space.point_get("t", lambda txn: txn.get("version", b"v") is None)
    put(space, "t", b"a", b"1")
    assert get(b"a") == get(b"a") == b"1"
    put(space, "version", b"v", b"")
    assert get(b"a") is get(b"a") is None
    with space.write() as transaction:
        transaction.delete("version", b"v")
    assert get(b"a") == b"1"


def test_a_point_get_of_a_closed_space_is_an_error(space: Any) -> None:
    put(space, "t", b"a", b"1")
    get = space.point_get("t", lambda txn: True)
    assert get(b"a") == b"1"
    space.close()
    with pytest.raises(StoreError, match="STORE_CLOSED"):
        get(b"a")
