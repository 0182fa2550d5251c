"""A global aggregate in a correlated subquery has a row where it reads none: COUNT is 0, HAVING sees outer columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import viewkeeper as vk

VALUES = {
    "a maximum beside": "SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE MAX(v) END FROM i WHERE i.a = o.a",
    "outer column in HAVING": "SELECT COUNT(*) + 1 FROM i WHERE i.a = o.a HAVING COUNT(*) <> o.b",
    "ALL of a list of aggregates": "SELECT COUNT(*) + 1 FROM i WHERE i.a = o.a GROUP BY ALL",
}


@pytest.mark.parametrize("query", VALUES.values(), ids=VALUES)
def test_it_has_a_row_where_nothing_is_aggregated(tmp_path: Path, query: str) -> None:
    with vk.connect(str(tmp_path / "s"), executor="local") as db:
        db.sql("CREATE TABLE o (k INT, a INT, b INT, PRIMARY KEY (k))")
        db.sql("CREATE TABLE i (id INT, a INT, v INT, PRIMARY KEY (id))")
        db.sql(f"CREATE MATERIALIZED VIEW scalars AS SELECT k, ({query}) AS n FROM o")
        db.sql(f"CREATE MATERIALIZED VIEW beside AS SELECT k, n FROM o, LATERAL ({query}) q(n)")
        db.sql(f"CREATE MATERIALIZED VIEW kept AS SELECT k, n FROM o LEFT JOIN LATERAL ({query}) q(n) ON n > 0")
        db.put("o", {"k": 1, "a": 7, "b": 1})
        db.put("o", {"k": 2, "a": None, "b": 1})
        db.refresh()
        expected = [{"k": 1, "n": 1}, {"k": 2, "n": 1}]
        assert all(list(db.scan(view)) == expected for view in ("scalars", "beside", "kept"))
        db.put("i", {"id": 1, "a": 7, "v": 5})
        db.put("i", {"id": 2, "a": 7, "v": 6})
        db.refresh()
        assert next(iter(db.scan("scalars")))["n"] in (3, 6)
        db.sql("DELETE FROM i")
        db.refresh()
        assert all(list(db.scan(view)) == expected for view in ("scalars", "beside", "kept"))
