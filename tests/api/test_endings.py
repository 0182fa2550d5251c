"""How blocks end: with an exception inside, twice, and when what they gave is used afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database
from viewkeeper.database.writes import Transaction
from viewkeeper.errors import ViewkeeperError


class _OfTheUser(Exception):
    pass


def create_and_fail(database: Database) -> None:
    database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    raise _OfTheUser


def put_and_fail(tx: Transaction) -> None:
    tx.put("t", {"k": 3, "v": 30})
    raise _OfTheUser


USES: dict[str, Callable[[Database], object]] = {
    "sql": lambda db: db.sql("SELECT k FROM t"),
    "put": lambda db: db.put("t", {"k": 3, "v": 30}),
    "update": lambda db: db.update("t", 1, {"v": 11}),
    "delete": lambda db: db.delete("t", 1),
    "get": lambda db: db.get("t", 1),
    "multi_get": lambda db: db.multi_get("t", [1]),
    "scan": lambda db: list(db.scan("t")),
    "table": lambda db: db.table("t").to_arrow(),
    "transaction": lambda db: db.transaction(),
    "snapshot": lambda db: db.snapshot(),
    "maintain": lambda db: db.maintain(),
    "refresh": lambda db: db.refresh(),
    "verify": lambda db: db.verify("t"),
    "explain": lambda db: db.explain("SELECT k FROM t"),
    "tables": lambda db: db.tables(),
    "views": lambda db: db.views(),
    "status": lambda db: db.status(),
    "with": lambda db: db.__enter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_connection_is_refused(db: Database, use: Callable[[Database], object]) -> None:
    db.close()
    db.close()
    assert code_of(lambda: use(db)) == "STORE_CLOSED"


def test_an_exception_inside_closes_the_store_and_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "shop.vk"
    with pytest.raises(_OfTheUser), vk.connect(place, durability="none") as database:
        create_and_fail(database)
    assert code_of(database.tables) == "STORE_CLOSED"
    with vk.connect(place, durability="none") as again:
        assert again.tables() == ["t"]


def test_a_transaction_with_an_exception_writes_nothing_and_is_over(db: Database) -> None:
    before = list(db.scan("t"))
    with pytest.raises(_OfTheUser), db.transaction() as tx:
        put_and_fail(tx)
    assert list(db.scan("t")) == before
    assert code_of(lambda: tx.put("t", {"k": 3, "v": 30})) == "TRANSACTION_OVER"
    assert code_of(tx.__enter__) == "TRANSACTION_OVER"
    assert tx.position is None


def test_a_transaction_ends_once(db: Database) -> None:
    with db.transaction() as tx:
        tx.put("t", {"k": 1, "v": 11})
    position = tx.position
    db.put("t", {"k": 1, "v": 12})
    tx.__exit__(None, None, None)
    assert db.get("t", 1) == {"k": 1, "v": 12}
    assert tx.position == position


def test_a_transaction_of_a_closed_connection_is_refused(db: Database) -> None:
    tx = db.transaction()
    tx.put("t", {"k": 3, "v": 30})
    db.close()
    assert code_of(lambda: tx.__exit__(None, None, None)) == "STORE_CLOSED"


def test_a_snapshot_ends_once_and_is_over(db: Database) -> None:
    with pytest.raises(_OfTheUser), db.snapshot() as snapshot:
        raise _OfTheUser
    snapshot.close()
    for use in (
        lambda: snapshot.get("t", 1),
        lambda: snapshot.multi_get("t", [1]),
        lambda: list(snapshot.scan("t")),
        snapshot.__enter__,
    ):
        assert code_of(use) == "SNAPSHOT_ENDED"


def test_a_snapshot_of_a_closed_connection_is_refused(db: Database) -> None:
    snapshot = db.snapshot()
    db.close()
    assert code_of(lambda: snapshot.get("t", 1)) == "STORE_CLOSED"
    snapshot.close()


@pytest.mark.slow
def test_a_maintainer_ends_once_and_is_over(db: Database) -> None:
    with pytest.raises(_OfTheUser), db.maintain() as maintainer:
        raise _OfTheUser
    assert maintainer.process_id is None
    maintainer.stop()
    assert code_of(maintainer.__enter__) == "MAINTAINER_ENDED"


def code_of(use: Callable[[], object]) -> str:
    with pytest.raises(ViewkeeperError) as caught:
        use()
    return caught.value.code
