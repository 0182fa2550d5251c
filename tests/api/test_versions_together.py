"""New versions of views that read each other serve at once, however many statements have asked for them meanwhile."""

from __future__ import annotations

import pytest

from viewkeeper.coordinator import builds
from viewkeeper.database.connection import Database
from viewkeeper.database.definitions import rebuild
from viewkeeper.errors import InputError
from viewkeeper.runtime import memory_store
from viewkeeper.settings import Settings

NEWER = "CREATE OR REPLACE MATERIALIZED VIEW a WITH NO DATA AS SELECT k, v + 100 AS v FROM t WHERE k < 8"
PAIRS = "SELECT COUNT(*) AS n, SUM(a.v) AS s, SUM(c.w) AS w FROM a JOIN c ON a.k = c.k"


@pytest.fixture(params=["", "REFRESH ON DEMAND"])
def db(request: pytest.FixtureRequest) -> Database:
    """``b`` reads ``a``, and refreshes with it or by itself; another query of ``a`` is asked for and not filled yet."""
    db = Database(memory_store(), Settings(executor="local", build_rows=3))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT); CREATE MATERIALIZED VIEW a AS SELECT k, v FROM t")
    db.sql("CREATE MATERIALIZED VIEW c AS SELECT k, v AS w FROM t")
    db.sql(f"CREATE MATERIALIZED VIEW b {request.param} AS {PAIRS}")
    db.put_batch("t", [{"k": k, "v": 1} for k in range(10)])
    db.sql(NEWER)
    return db


def fill(db: Database, name: str) -> None:
    """Fill the version of a view that waits, with those that must serve with it."""
    (version,) = (v.id for v in db._engine.coordinator.catalog().views.values() if v.name == name and v.replaces)
    builds.build(db._engine.coordinator, version)
    assert all(view.replaces is None for view in db._engine.coordinator.catalog().views.values())


def all_show_their_queries(db: Database) -> bool:
    db.put("t", {"k": 3, "v": 50})
    db.refresh()
    for view in db._engine.coordinator.catalog().views.values():
        assert view.state == "ACTIVE"
        shown, wanted = (db.sql(sql).rows() for sql in (f"SELECT * FROM {view.name}", view.sql))
        assert sorted(map(repr, shown)) == sorted(map(repr, wanted)), view.name
    return True


def test_two_views_below_one_are_replaced_one_after_the_other(db: Database) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW c WITH NO DATA AS SELECT k, v + 1000 AS w FROM t")
    fill(db, "a")
    assert all_show_their_queries(db)
    assert list(db.scan("b")) == [{"n": 8, "s": 857, "w": 8057}]


def test_a_reader_is_replaced_by_one_that_reads_something_else(db: Database) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW b WITH NO DATA AS SELECT COUNT(*) AS n, MAX(v) AS s FROM t")
    fill(db, "a")
    assert all_show_their_queries(db)
    assert list(db.scan("b")) == [{"n": 10, "s": 50}]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_one_of_them_is_filled_anew(db: Database, name: str) -> None:
    """As by VERIFY … REPAIR."""
    rebuild(db._engine, name, f"VERIFY {name} REPAIR")
    assert all_show_their_queries(db)


def test_nobody_begins_to_read_what_will_be_another_view(db: Database) -> None:
    for name in ("a", "b"):
        with pytest.raises(InputError, match="is being replaced by another query"):
            db.sql(f"CREATE MATERIALIZED VIEW d AS SELECT * FROM {name}")
    db.sql("CREATE MATERIALIZED VIEW d AS SELECT * FROM c")
    db.refresh()
    db.sql("CREATE MATERIALIZED VIEW e AS SELECT * FROM b")
    assert all_show_their_queries(db)


def test_a_view_whose_new_version_is_filled_is_not_suspended(db: Database) -> None:
    """It would go on by itself."""
    with pytest.raises(InputError, match="VIEW_BUILDING"):
        db.sql("ALTER MATERIALIZED VIEW b SUSPEND")
    db.refresh()
    db.sql("ALTER MATERIALIZED VIEW b SUSPEND; ALTER MATERIALIZED VIEW b RESUME")
    assert all_show_their_queries(db)


@pytest.mark.parametrize("how", ["CREATE OR REPLACE MATERIALIZED VIEW a AS", "ALTER MATERIALIZED VIEW a AS", "FULL"])
def test_what_was_asked_for_first_is_not_lost(how: str) -> None:
    """A new query of a reader that waits to be filled, whether it reads the view or not, outlives one below it."""
    db = Database(memory_store(), Settings(executor="local", build_rows=3))
    db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT); CREATE MATERIALIZED VIEW a AS SELECT k, v FROM t")
    db.sql("CREATE MATERIALIZED VIEW b AS SELECT COUNT(*) AS n FROM a; CREATE MATERIALIZED VIEW d AS SELECT n FROM b")
    db.sql("CREATE MATERIALIZED VIEW c AS SELECT COUNT(*) AS n FROM t")
    db.put_batch("t", [{"k": k, "v": 1} for k in range(10)])
    newer = {"b": "SELECT SUM(v) AS n FROM t", "c": "SELECT SUM(v) AS n FROM a"}
    for name, query in newer.items():
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} WITH NO DATA AS {query.replace('SUM(v)', 'SUM(v) + 0')}")
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    if how == "FULL":
        db.sql("REFRESH MATERIALIZED VIEW a FULL")
    else:
        db.sql(f"{how} SELECT k, CAST(v + 100 AS INT) AS v FROM t")
    assert all_show_their_queries(db)
    assert {name: db._engine.coordinator.catalog().view(name).sql for name in newer} == newer
