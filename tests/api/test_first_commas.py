"""A comma before the first of a list, which sqlglot passes over; behind DISTINCT or ALL, a column, as in Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from tests.mistakes import assert_told
from viewkeeper.errors import SqlError


@pytest.fixture
def db(tmp_path: Path) -> Iterator[vk.Database]:
    with vk.connect(str(tmp_path / "s"), executor="local") as db:
        db.sql("CREATE TABLE t (k INT, v INT, PRIMARY KEY (k))")
        db.put("t", {"k": 1, "v": 2})
        yield db


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT , v FROM t",
        "SELECT DISTINCT v, (, k) FROM t",
        "SELECT v FROM t GROUP BY , v",
        "SELECT v FROM t WHERE k IN (, 1)",
    ],
)
def test_it_is_refused(db: vk.Database, sql: str) -> None:
    with pytest.raises(SqlError, match="nothing stands before this comma"):
        db.sql(sql)


@pytest.mark.parametrize("sql", ["SELECT ^DISTINCT, v FROM t", "SELECT ^all, v FROM t", "SELECT MAX(^ALL, v) FROM t"])
def test_quantifiers_before_it_are_columns(db: vk.Database, sql: str) -> None:
    assert_told(db, sql, "UNRESOLVED_COLUMN", "There is no column")


@pytest.mark.parametrize(
    "sql", ["SELECT k AS select, v FROM t", "SELECT select, v FROM (SELECT k AS select, v FROM t)"]
)
def test_a_column_may_be_called_select(db: vk.Database, sql: str) -> None:
    assert db.sql(sql).rows() == [{"select": 1, "v": 2}]
