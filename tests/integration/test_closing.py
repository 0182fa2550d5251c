"""``db.close()`` while other threads work: each ends with STORE_CLOSED, the process lives, and the store is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.integration.nursery import Nursery, nursery
from tests.integration.roles import LOCAL
from viewkeeper.errors import StoreError

pytestmark = pytest.mark.slow

ROUNDS = 12
SETUP = """
CREATE TABLE t (k BIGINT, g INT, v BIGINT, PRIMARY KEY (k));
CREATE MATERIALIZED VIEW sums AS SELECT g, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY g;
CREATE MATERIALIZED VIEW pairs AS SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k
"""


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_closing_ends_all_threads_with_one_clear_error(children: Nursery, tmp_path: Path, durability: str) -> None:
    path = str(tmp_path / "store")
    with vk.connect(path, **LOCAL) as database:
        database.sql(SETUP)
        database.put_batch("t", [{"k": k, "g": k % 7, "v": k} for k in range(300)])
        database.refresh()
    child = children.start("close_under_load", path=path, rounds=ROUNDS, durability=durability)
    said = child.rest()
    # A crash of the process would be a signal here.
    assert child.wait() == 0, said
    child.close()
    assert said == ["ready", *["STORE_CLOSED"] * ROUNDS, "0 threads left"]
    with vk.connect(path, **LOCAL) as database:
        database.refresh()
        query = "SELECT g, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY g ORDER BY g"
        assert list(database.scan("sums")) == database.sql(query).rows()
        rows = {row["k"]: row["v"] for row in database.scan("t")}
        assert {row["k"]: row["v"] for row in database.scan("pairs")} == rows


def test_what_is_open_when_the_connection_closes_says_so(tmp_path: Path) -> None:
    database = vk.connect(tmp_path / "store", **LOCAL)
    database.sql(SETUP)
    database.put_batch("t", [{"k": k, "g": k % 7, "v": k} for k in range(100)])
    database.refresh()
    assert database.get("sums", 1) is not None
    scan, snapshot = database.scan("t"), database.snapshot()
    assert next(scan)["k"] == 0
    rows = snapshot.scan("sums")
    next(rows)
    with database.transaction() as tx:
        tx.put("t", {"k": 1_000, "g": 1, "v": 1})
    database.close()
    database.close()
    for use in (
        lambda: next(scan),
        lambda: next(rows),
        lambda: snapshot.get("sums", 1),
        lambda: database.get("sums", 1),
        lambda: database.get("sums", 99),
        lambda: database.put("t", {"k": 1, "g": 1, "v": 1}),
        lambda: database.sql("SELECT * FROM t"),
        database.refresh,
        database.status,
        database.maintain,
        database.snapshot,
        lambda: database.table("t"),
        database.tables,
        database.views,
    ):
        with pytest.raises(StoreError) as caught:
            use()
        assert caught.value.code == "STORE_CLOSED"
    snapshot.close()


def test_another_connection_of_the_process_goes_on(tmp_path: Path) -> None:
    first, second = (vk.connect(tmp_path / "store", **LOCAL) for _ in range(2))
    first.sql(SETUP)
    second.put("t", {"k": 1, "g": 1, "v": 1})
    with second.snapshot() as snapshot:
        first.close()
        assert snapshot.get("t", 1) == {"k": 1, "g": 1, "v": 1}
    second.refresh()
    assert second.get("sums", 1) == {"g": 1, "s": 1, "n": 1}
    second.close()
