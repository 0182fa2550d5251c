"""Views of every operator while their tables change: columns, types, keys, TRUNCATE; beside the query run at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viewkeeper as vk
from viewkeeper.database.connection import Database

VIEWS = {
    "filtered": "SELECT k, a + 1 AS b, s FROM t WHERE a > 1",
    "grouped": "SELECT g, COUNT(*) AS n, SUM(a) AS s, AVG(x) AS m, MIN(s) AS low, MAX(a) AS high FROM t GROUP BY g",
    "total": "SELECT COUNT(*) AS n, SUM(a) AS s FROM t",
    "more": "SELECT g, COUNT(DISTINCT a) AS n, MEDIAN(a) AS m, STDDEV(x) AS d, MIN_BY(s, a) AS f FROM t GROUP BY g",
    "listed": "SELECT g, LISTAGG(s, ',') WITHIN GROUP (ORDER BY k) AS l FROM t GROUP BY g",
    "cubed": "SELECT g, a, COUNT(*) AS n, GROUPING(g) AS z FROM t GROUP BY CUBE (g, a)",
    "joined": "SELECT t.k, u.id, t.a, u.w FROM t JOIN u ON t.g = u.g",
    "outer_joined": "SELECT t.k, u.id, t.a, u.w FROM t FULL JOIN u ON t.k = u.id",
    "semi": "SELECT k, a FROM t LEFT SEMI JOIN u ON t.g = u.g",
    "anti": "SELECT k, a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.k)",
    "scalar": "SELECT k, (SELECT SUM(w) FROM u WHERE u.g = t.g) AS w FROM t",
    "distinct_values": "SELECT DISTINCT g, a FROM t",
    "united": "SELECT g FROM t UNION ALL SELECT g FROM u",
    "met": "SELECT g FROM t INTERSECT SELECT g FROM u",
    "left_over": "SELECT g FROM t EXCEPT ALL SELECT g FROM u",
    "first_rows": "SELECT k, a FROM t ORDER BY a DESC, k LIMIT 2",
    "ranked": "SELECT k, g, RANK() OVER (PARTITION BY g ORDER BY a) AS r, SUM(a) OVER (PARTITION BY g) AS s FROM t",
    "exploded": "SELECT k, word FROM t LATERAL VIEW EXPLODE(SPLIT(s, ' ')) q AS word",
    "reached": """WITH RECURSIVE r AS (SELECT id, w FROM u WHERE id < 3
        UNION SELECT u.id, u.w FROM u JOIN r ON u.w = r.id) SELECT id, w FROM r""",
}
STEPS = [
    "INSERT INTO t VALUES (1, 'x', 1, 1, 'a b'), (2, 'x', 2, 1.5, 'b'), (3, 'y', 3, NULL, 'c d'), (4, NULL, 4, 2, '')",
    "INSERT INTO u VALUES (1, 'x', 2), (2, 'y', 3), (3, 'z', 1), (5, NULL, 5)",
    "ALTER TABLE t ADD COLUMN e INT DEFAULT 9",
    "INSERT INTO t VALUES (5, 'z', 5, 3.5, 'e f g', 1)",
    # Each key moves to where another one stands.
    "UPDATE t SET k = k + 1",
    "UPDATE u SET id = 6 - id",
    "ALTER TABLE t DROP COLUMN unused",
    "UPDATE t SET a = a + 10, g = 'x' WHERE k > 4",
    "ALTER TABLE t RENAME COLUMN e TO f",
    "DELETE FROM t WHERE k = 2",
    "TRUNCATE TABLE u",
    "INSERT INTO u VALUES (1, 'x', 1), (2, 'x', 1)",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT",
    "INSERT INTO t VALUES (10, 'y', 5000000000, 1.0, 'late', 2)",
    "ALTER TABLE u ALTER COLUMN w TYPE DECIMAL(14, 2)",
    "UPDATE u SET w = w + 0.25 WHERE id = 1",
    "TRUNCATE TABLE t",
    "INSERT INTO t VALUES (7, 'x', 7, 0.5, 'again', 3)",
]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with vk.connect(tmp_path / "shop.vk", executor="local", durability="none") as database:
        columns = "k BIGINT, unused DATE, g STRING, a INT, x DOUBLE, s STRING"
        database.sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (k))")
        database.sql("CREATE TABLE u (id BIGINT, g STRING, w INT, PRIMARY KEY (id))")
        yield database


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refresh", "every"), [("CONTINUOUS", 1), ("ON DEMAND", len(STEPS))], ids=["after each step", "far behind"]
)
def test_views_of_every_operator_follow_their_changing_tables(db: Database, refresh: str, every: int) -> None:
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH {refresh} AS {query}")
    for number, step in enumerate(STEPS, 1):
        names = [row["col_name"] for row in db.sql("DESCRIBE t").rows() if row["col_name"] != "unused"]
        given = ", ".join(names)
        db.sql(step.replace("INTO t VALUES", f"INTO t ({given}) VALUES"))
        if number % every == 0:
            db.refresh()
            for name, query in VIEWS.items():
                assert rows(db, f"SELECT * FROM {name}") == rows(db, query), (step, name)


def rows(db: Database, sql: str) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in db.sql(sql).rows())
