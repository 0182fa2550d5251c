"""A view keeps time zone and ANSI mode of its creation, whatever the sessions are that refresh, rebuild and read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime

import pytest

from viewkeeper.database.connection import Database
from viewkeeper.errors import InputError
from viewkeeper.expressions.tree import Session
from viewkeeper.runtime import OpenStore, memory_store
from viewkeeper.settings import Settings

BERLIN, TOKYO = Session("Europe/Berlin", ansi=False), Session("Asia/Tokyo", ansi=True)
QUERY = "SELECT k, at, CAST(at AS STRING) AS text, HOUR(at) AS hour, 42 DIV a AS number FROM t"
OVER = "SELECT hour, COUNT(*) AS n, MAX(CAST(at AS DATE)) AS day FROM v GROUP BY hour"


def session_of(store: OpenStore, session: Session) -> Database:
    """Return another caller's connection; what it is outside ANSI mode, an application cannot choose so far."""
    db = Database(store, Settings(executor="local", time_zone=session.time_zone))
    db._engine.session = session
    return db


@contextmanager
def callers() -> Iterator[tuple[Database, Database]]:
    """Yield a caller in Berlin outside ANSI mode, who has made the views, and one in Tokyo under it."""
    store = memory_store()
    berlin, tokyo = session_of(store, BERLIN), session_of(store, TOKYO)
    berlin.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, at TIMESTAMP, a INT)")
    put(berlin, 1, "2024-07-01T10:00:00Z", 6)
    put(berlin, 2, "2024-12-31T23:30:00Z", 0)
    berlin.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}; CREATE MATERIALIZED VIEW w AS {OVER}")
    yield berlin, tokyo


def put(db: Database, key: int, at: str, a: int) -> None:
    db.put("t", {"k": key, "at": datetime.fromisoformat(at), "a": a})


def rows(db: Database, view: str) -> list[tuple[object, ...]]:
    """Return a view's rows by each way to read it, which agree, without the moments themselves."""
    with db.snapshot() as snapshot:
        shown = list(snapshot.scan(view))
    assert shown == list(db.scan(view)) == db.table(view).to_arrow().to_pylist()
    assert sorted(map(repr, shown)) == sorted(map(repr, db.sql(f"SELECT * FROM {view}").rows()))
    return [tuple(value for name, value in row.items() if name != "at") for row in shown]


FIRST = [(1, "2024-07-01 12:00:00", 12, 7), (2, "2025-01-01 00:30:00", 0, None)]
THIRD = (3, "2024-07-01 23:00:00", 23, None)
OVER_FIRST = [(0, 1, date(2025, 1, 1)), (12, 1, date(2024, 7, 1))]
OVER_THIRD = (23, 1, date(2024, 7, 1))  # 2 July in Tokyo


def test_epochs_rebuilds_and_reads_of_another_session_change_nothing() -> None:
    with callers() as (berlin, tokyo):
        for db in (berlin, tokyo):
            assert (rows(db, "v"), rows(db, "w")) == (FIRST, OVER_FIRST)
        put(tokyo, 3, "2024-07-01T21:00:00Z", 0)
        tokyo.refresh()
        for statement in (
            "SELECT 1",  # the epoch alone
            "REFRESH MATERIALIZED VIEW v FULL",
            "ALTER MATERIALIZED VIEW w SUSPEND; ALTER MATERIALIZED VIEW v SUSPEND",
            "ALTER MATERIALIZED VIEW v RESUME; ALTER MATERIALIZED VIEW w RESUME",
            "ALTER MATERIALIZED VIEW v RENAME TO x; ALTER MATERIALIZED VIEW x RENAME TO v",
            "ALTER TABLE t ADD COLUMN b INT DEFAULT 1; ALTER TABLE t RENAME COLUMN b TO c",
        ):
            tokyo.sql(statement)
            for db in (berlin, tokyo):
                assert (rows(db, "v"), rows(db, "w")) == ([*FIRST, THIRD], [*OVER_FIRST, OVER_THIRD]), statement
        # Who opens the store now knows it from there.
        later = session_of(tokyo._engine.store, TOKYO)
        put(later, 3, "2024-07-01T20:00:00Z", 5)
        later.refresh()
        assert rows(later, "v") == [*FIRST, (3, "2024-07-01 22:00:00", 22, 8)]


def test_a_new_definition_is_of_the_session_that_gives_it() -> None:
    with callers() as (_, tokyo):
        query = QUERY.replace(", 42 DIV a AS number", "")
        tokyo.sql(f"DROP MATERIALIZED VIEW w; ALTER MATERIALIZED VIEW v AS {query}")
        expected = [(1, "2024-07-01 19:00:00", 19), (2, "2025-01-01 08:30:00", 8)]
        assert rows(tokyo, "v") == expected


def test_no_view_is_put_over_one_that_gets_another_session() -> None:
    """The same text of another session is another query: what reads it must not be filled from the rows of before."""
    with callers() as (_, tokyo):
        tokyo.sql("DELETE FROM t WHERE k = 2; DROP MATERIALIZED VIEW w")
        tokyo.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH NO DATA AS {QUERY}")
        with pytest.raises(InputError, match="VIEW_NOT_ACTIVE"):
            tokyo.sql(f"CREATE MATERIALIZED VIEW w AS {OVER}")
        tokyo.refresh()
        tokyo.sql(f"CREATE MATERIALIZED VIEW w AS {OVER}")
        assert rows(tokyo, "v") == [(1, "2024-07-01 19:00:00", 19, 7)]
        assert rows(tokyo, "w") == [(19, 1, date(2024, 7, 1))]
