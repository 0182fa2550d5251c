"""Common table expressions that no one reads: checked as Spark checks them, and no part of what a view reads."""

from __future__ import annotations

import pytest

from viewkeeper import errors
from viewkeeper.testing.oracle import in_memory

UNREAD = "WITH q AS (SELECT w FROM u), r AS (SELECT w FROM q) SELECT k, a FROM t"


def test_a_view_does_not_depend_on_what_no_one_reads() -> None:
    with in_memory() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT); CREATE TABLE u (w INT PRIMARY KEY)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {UNREAD}")
        db.sql("DROP TABLE u; INSERT INTO t VALUES (1, 2); ALTER TABLE t RENAME COLUMN a TO b")
        db.refresh()
        assert db.sql("SELECT * FROM v").rows() == [{"k": 1, "a": 2}]
        with pytest.raises(errors.SqlError) as raised:
            db.sql(f"CREATE MATERIALIZED VIEW z AS {UNREAD}")
        assert raised.value.code == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.parametrize("unread", ["SELECT k, rand() AS x FROM t", "SELECT 1 AS x", "SELECT k FROM t ORDER BY k"])
def test_what_is_not_computed_need_not_be_maintained(unread: str) -> None:
    with in_memory() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS WITH q AS ({unread}) SELECT k FROM t")
        assert db.sql(f"WITH q AS ({unread}) SELECT k FROM t").rows() == []
