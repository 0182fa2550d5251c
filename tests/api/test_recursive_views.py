"""WITH RECURSIVE in views: beside DuckDB after every epoch, past the limits, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pytest

import viewkeeper as vk
from viewkeeper.errors import SqlError, UnsupportedSql, ViewFailed

VIEWS = {
    "paths": """WITH RECURSIVE r(a, b, n) AS (SELECT a, b, 1 FROM e
        UNION ALL SELECT r.a, e.b, r.n + 1 FROM r JOIN e ON e.a = r.b WHERE r.n < 5) SELECT a, b, n FROM r""",
    "reached": """WITH RECURSIVE r AS (SELECT k FROM s UNION SELECT e.b FROM r JOIN e ON e.a = r.k) SELECT k FROM r""",
    "pairs": """WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e
        UNION SELECT r.a, e.b FROM r JOIN e ON e.a = r.b) SELECT a, b FROM r""",
    "counts": """WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e
        UNION SELECT r.a, e.b FROM r JOIN e ON e.a = r.b) SELECT a, COUNT(*) AS n FROM r GROUP BY a""",
    "numbers": """WITH RECURSIVE r(k) AS (SELECT k FROM s
        UNION ALL SELECT k + 1 FROM r WHERE k < 8) SELECT k FROM r""",
    "series": """WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 4)
        SELECT n, COUNT(e.id) AS c FROM r LEFT JOIN e ON e.a = r.n GROUP BY n""",
    "steps": """WITH RECURSIVE r(k) AS (SELECT k FROM s UNION ALL
        SELECT v.y FROM (VALUES (1, 2), (1, 2), (2, 5)) v(x, y) JOIN r ON v.x = r.k) SELECT k FROM r""",
}
TABLES = "CREATE TABLE e (id INT, a INT, b INT, PRIMARY KEY (id)); CREATE TABLE s (k INT, PRIMARY KEY (k))"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[vk.Database]:
    with vk.connect(str(tmp_path / "store"), executor="local") as database:
        database.sql(TABLES)
        yield database


def rows(found: object) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in found)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_views_follow_a_graph_with_cycles(db: vk.Database, seed: int) -> None:
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    other = duckdb.connect()
    other.execute("CREATE TABLE e (id INT, a INT, b INT); CREATE TABLE s (k INT)")
    chance = Random(seed)
    for _ in range(25):
        for _ in range(chance.choice((1, 1, 3, 8))):
            change(db, other, chance)
        db.refresh()
        for name, query in VIEWS.items():
            expected = sorted(map(repr, other.execute(query).fetchall()))
            assert rows(db.scan(name)) == expected, name
    for query in VIEWS.values():
        assert rows(db.sql(query).rows()) == sorted(map(repr, other.execute(query).fetchall()))


def change(db: vk.Database, other: duckdb.DuckDBPyConnection, chance: Random) -> None:
    if chance.random() < 0.25:
        k = chance.randrange(5)
        db.delete("s", k)
        other.execute(f"DELETE FROM s WHERE k = {k}")
        if chance.random() < 0.6:
            db.put("s", {"k": k})
            other.execute("INSERT INTO s VALUES (?)", [k])
        return
    number = chance.randrange(9)
    db.delete("e", number)
    other.execute(f"DELETE FROM e WHERE id = {number}")
    if chance.random() < 0.7:
        a, b = (chance.choice((None, 0, 1, 2, 3, 4, 5)) for _ in range(2))
        db.put("e", {"id": number, "a": a, "b": b})
        other.execute("INSERT INTO e VALUES (?, ?, ?)", [number, a, b])


def test_rows_past_the_limit_fail_the_view_until_they_are_gone(db: vk.Database) -> None:
    query = "SELECT a, b FROM e UNION ALL SELECT r.a, e.b FROM r JOIN e ON e.a = r.b"
    db.sql(
        f"CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r(a, b) MAX RECURSION LEVEL 7 AS ({query}) SELECT a, b FROM r"
    )
    db.put("e", {"id": 1, "a": 1, "b": 2})
    db.refresh()
    db.put("e", {"id": 2, "a": 2, "b": 1})
    with pytest.raises(ViewFailed, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        db.refresh()
    assert rows(db.scan("v")) == ["(1, 2)"]
    db.put("e", {"id": 2, "a": 2, "b": 3})
    db.refresh()
    assert rows(db.scan("v")) == ["(1, 2)", "(1, 3)", "(2, 3)"]


@pytest.mark.parametrize(
    ("union", "level", "rounds"), [("UNION ALL", " MAX RECURSION LEVEL 3", 3), ("UNION", " MAX RECURSION LEVEL 3", 3),
                                   ("UNION ALL", "", 100), ("UNION", "", 100)]
)  # fmt: skip
def test_the_anchor_is_the_first_of_the_rounds_that_there_may_be(
    db: vk.Database, union: str, level: str, rounds: int
) -> None:
    """So Spark takes the level: of 100 it makes as many rounds with rows, and of one more it fails."""
    query = f"SELECT k FROM s {union} SELECT k + 1 FROM r WHERE k < 100"
    db.sql(f"CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r{level} AS ({query}) SELECT k FROM r")
    db.put("s", {"k": 101 - rounds})
    db.refresh()
    assert len(list(db.scan("v"))) == rounds
    db.delete("s", 101 - rounds)
    db.put("s", {"k": 100 - rounds})
    with pytest.raises(ViewFailed, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        db.refresh()
    assert len(list(db.scan("v"))) == rounds


def test_a_set_without_end_waits_to_be_filled_anew(db: vk.Database) -> None:
    query = "SELECT k FROM s UNION SELECT k + 1 FROM r WHERE k < 1000"
    db.sql(f"CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r MAX RECURSION LEVEL 20 AS ({query}) SELECT k FROM r")
    db.put("s", {"k": 990})
    db.refresh()
    assert len(list(db.scan("v"))) == 11
    db.put("s", {"k": 1})
    with pytest.raises(ViewFailed, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        db.refresh()
    db.delete("s", 1)
    with pytest.raises(ViewFailed, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        db.refresh()
    assert len(list(db.scan("v"))) == 11
    db.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert len(list(db.scan("v"))) == 11
    db.put("s", {"k": 985})
    db.refresh()
    assert len(list(db.scan("v"))) == 16


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT k FROM r", "INVALID_RECURSIVE_CTE"),
        ("SELECT k FROM r UNION ALL SELECT k FROM s", "INVALID_RECURSIVE_CTE"),
        ("SELECT k FROM s UNION ALL SELECT x.k FROM r x JOIN r y ON x.k = y.k", "INVALID_RECURSIVE_REFERENCE"),
        ("SELECT k FROM s UNION ALL SELECT MAX(k) FROM r", "INVALID_RECURSIVE_REFERENCE"),
        ("SELECT k FROM s UNION ALL SELECT DISTINCT k FROM r", "INVALID_RECURSIVE_REFERENCE"),
        ("SELECT k FROM s UNION ALL SELECT k, 1 FROM r", "NUM_COLUMNS_MISMATCH"),
        ("SELECT k FROM s UNION ALL SELECT k + 0.5 FROM r", "DATATYPE_MISMATCH"),
    ],
)
def test_what_cannot_recur_is_told(db: vk.Database, query: str, code: str) -> None:
    with pytest.raises((SqlError, UnsupportedSql)) as raised:
        db.sql(f"CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r AS ({query}) SELECT * FROM r")
    assert raised.value.code == code
    assert "line 1" in str(raised.value)
