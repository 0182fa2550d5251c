"""First rows and windows in views: beside DuckDB after every epoch, ties, long keys, totals that overflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import viewkeeper as vk
from tests.quick import quick_first
from viewkeeper.errors import ViewFailed

W = "WINDOW w AS (PARTITION BY g ORDER BY v NULLS FIRST, k)"
VIEWS = {
    "best": "SELECT k, g, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC, k) AS n FROM t QUALIFY n <= 2",
    "low": "SELECT k, g, r FROM (SELECT k, g, RANK() OVER (PARTITION BY g ORDER BY v) AS r FROM t) q WHERE r < 3",
    "second": """SELECT k, g, r FROM
        (SELECT k, g, DENSE_RANK() OVER (PARTITION BY g ORDER BY v DESC NULLS FIRST) AS r FROM t) q WHERE r = 2""",
    "first": "SELECT k, v FROM t ORDER BY v DESC NULLS LAST, s, k LIMIT 3 OFFSET 1",
    "groups": "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n DESC, g NULLS FIRST LIMIT 2) q",
    "ranks": f"""SELECT k, ROW_NUMBER() OVER w AS a, RANK() OVER w AS b, DENSE_RANK() OVER w AS c,
        PERCENT_RANK() OVER w AS d, CUME_DIST() OVER w AS e, NTILE(3) OVER w AS f FROM t {W}""",
    "others": f"""SELECT k, LAG(v) OVER w AS a, LEAD(v, 2, -1) OVER w AS b, LAG(s, 1, 'none') IGNORE NULLS OVER w AS c,
        FIRST_VALUE(v) OVER w AS d, LAST_VALUE(v) IGNORE NULLS OVER w AS e, NTH_VALUE(v, 2) OVER w AS f FROM t {W}""",
    "sums": """SELECT k, SUM(v) OVER (PARTITION BY g ORDER BY v NULLS FIRST) AS a,
        SUM(v) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS b,
        MIN(s) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS c,
        MAX(v) OVER (PARTITION BY g) AS d, SUM(x) OVER (PARTITION BY g ORDER BY k) AS e,
        COUNT(*) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS f,
        COUNT(*) FILTER (WHERE v > 0) OVER (PARTITION BY g ORDER BY k) AS h FROM t""",
    "ranges": """SELECT k,
        COUNT(v) OVER (PARTITION BY g ORDER BY v NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS a,
        COUNT(*) OVER (PARTITION BY g ORDER BY x DESC NULLS LAST RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS b,
        COUNT(*) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 2 DAY FOLLOWING)
        AS c FROM t WHERE d IS NOT NULL""",
    "months": """SELECT k, d,
        COUNT(*) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS a,
        SUM(v) OVER (PARTITION BY g ORDER BY d DESC
        RANGE BETWEEN INTERVAL 2 MONTH PRECEDING AND INTERVAL 1 MONTH FOLLOWING) AS b FROM t WHERE d IS NOT NULL""",
    "over_groups": """SELECT g, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY g % 2) AS total,
        RANK() OVER (PARTITION BY g % 2 ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY g""",
}
TEXTS = (None, "a", *("b" * length + end for length in (1, 200, 600) for end in "xy"))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[vk.Database]:
    with vk.connect(str(tmp_path / "store"), executor="local") as database:
        database.sql("CREATE TABLE t (k INT, g INT, v INT, s STRING, x DOUBLE, d DATE, PRIMARY KEY (k))")
        yield database


def bag(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(round(v, 9) if isinstance(v, float) else v for v in row)) for row in rows)


def row(chance: Random) -> dict[str, Any]:
    return {
        "k": chance.randrange(14),
        "g": chance.choice((None, 1, 2, 3)),
        "v": chance.choice((None, -1, 0, 1, 2, 3)),
        "s": chance.choice(TEXTS),
        "x": chance.choice((None, 0.5, 1.0, 0.0, 2.5)),
        "d": chance.choice((None, date(2024, chance.choice((1, 2, 3)), 28) + timedelta(chance.randrange(5)))),
    }


def answers(rows: dict[int, dict[str, Any]]) -> dict[str, list[str]]:
    with duckdb.connect() as other:
        other.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        other.execute("CREATE TABLE t (k INT, g INT, v INT, s VARCHAR, x DOUBLE, d DATE)")
        if rows:
            other.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [tuple(r.values()) for r in rows.values()])
        # DuckDB has IGNORE NULLS inside the parentheses.
        queries = {name: re.sub(r"(\w+\([^()]*)\) IGNORE NULLS", r"\1 IGNORE NULLS)", q) for name, q in VIEWS.items()}
        return {name: bag(other.execute(query).fetchall()) for name, query in queries.items()}


@pytest.mark.parametrize("seed", quick_first(range(2), 1))
def test_views_follow_duckdb(db: vk.Database, seed: int) -> None:
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    chance, rows = Random(seed), dict[int, dict[str, Any]]()
    for _ in range(12):
        with db.transaction() as tx:
            for _ in range(chance.choice((1, 1, 2, 6))):
                new = row(chance)
                if chance.random() < 0.3 and new["k"] in rows:
                    del rows[new["k"]]
                    tx.delete("t", {"k": new["k"]})
                else:
                    rows[new["k"]] = new
                    tx.put("t", new)
        db.refresh()
        expected = answers(rows)
        for name in VIEWS:
            assert bag([tuple(r.values()) for r in db.scan(name)]) == expected[name], name
    for name, query in VIEWS.items():
        assert bag([tuple(r.values()) for r in db.sql(query).rows()]) == expected[name], name


def test_ties_are_broken_by_the_key(db: vk.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW one AS SELECT k, g FROM t ORDER BY v LIMIT 2")
    db.sql("CREATE MATERIALIZED VIEW any_two AS SELECT k FROM t LIMIT 2")
    for k in (5, 3, 9, 1):
        db.put("t", {"k": k, "v": 7})
    db.refresh()
    assert [r["k"] for r in db.scan("one")] == [1, 3] == [r["k"] for r in db.scan("any_two")]
    db.delete("t", {"k": 1})
    db.refresh()
    assert [r["k"] for r in db.scan("one")] == [3, 5] == [r["k"] for r in db.scan("any_two")]


def test_a_total_that_overflows_fails_the_view_until_it_fits(db: vk.Database) -> None:
    db.sql("CREATE TABLE b (k INT, g INT, v BIGINT, PRIMARY KEY (k))")
    db.sql("CREATE MATERIALIZED VIEW run AS SELECT k, SUM(v) OVER (PARTITION BY g ORDER BY k) AS s FROM b")
    for k, v in ((1, 2**63 - 1), (2, 1), (3, -5)):
        db.put("b", {"k": k, "g": 1, "v": v})
    with pytest.raises(ViewFailed, match="ARITHMETIC_OVERFLOW"):
        db.refresh()
    db.put("b", {"k": 1, "g": 1, "v": 4})
    db.refresh()
    assert [r["s"] for r in db.scan("run")] == [4, 5, 0]


def test_a_query_that_runs_once_may_have_windows_over_all_rows(db: vk.Database) -> None:
    for k, v in ((1, 3), (2, 1), (3, 2)):
        db.put("t", {"k": k, "v": v})
    found = db.sql("SELECT k, SUM(v) OVER (ORDER BY k) AS s, RANK() OVER (ORDER BY v) AS r FROM t ORDER BY k").rows()
    assert [tuple(r.values()) for r in found] == [(1, 3, 3), (2, 4, 1), (3, 6, 2)]
