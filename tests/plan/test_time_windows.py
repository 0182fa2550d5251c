"""What window() and window_time() are planned to: operators, names, errors at their place.

Their rows are compared with Spark's by tests/executors/spark/test_time_windows.py.
"""

from __future__ import annotations

import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.expressions.tree import Session
from viewkeeper.plan.build import plan_view
from viewkeeper.plan.examples import FixedRelations
from viewkeeper.plan.explain import explain_node
from viewkeeper.plan.limits import recomputed
from viewkeeper.plan.nodes import Relation
from viewkeeper.zset.schema import BIGINT, INT, STRING, TIMESTAMP, Column, Schema

T = Schema((Column("k", BIGINT, False), Column("c", STRING), Column("ts", TIMESTAMP)))
# A table that has a column of the name.
V = Schema((Column("k", BIGINT, False), Column("window", INT), Column("ts", TIMESTAMP, False)))
RELATIONS = FixedRelations([Relation(1, "t", "table", T, (0,)), Relation(2, "v", "table", V, (0,))])


def planned(sql: str) -> str:
    return explain_node(plan_view(sql, RELATIONS, Session()).root)


def columns(sql: str) -> list[str]:
    shown = plan_view(sql, RELATIONS, Session()).root.schema.columns
    found = [f"{column.name}{'' if column.nullable else ' NOT NULL'}" for column in shown]
    return [name for name in found if not name.startswith("__")]


def test_windows_apart_are_a_projection() -> None:
    plan = planned("SELECT window.start AS w, COUNT(*) AS n FROM t GROUP BY window(ts, '1 hour')")
    assert [line.split()[0] for line in plan.splitlines()] == ["Project", "Aggregate", "Project", "Filter", "Scan"]
    assert "window := time_window(ts, 3600000000 every 3600000000 from 0 µs)" in plan


def test_a_time_that_is_never_null_is_not_filtered() -> None:
    assert "Filter" not in planned("SELECT window(ts, '1 hour') AS w FROM v")


def test_overlapping_windows_are_generated() -> None:
    assert "Generate" in planned("SELECT window(ts, '1 hour', '20 minutes') AS w FROM t")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT *, window(ts, '1 hour') FROM t", ["k NOT NULL", "c", "ts", "window NOT NULL"]),
        ("SELECT window(ts, '1 hour', '1 minute') FROM t", ["window"]),
        ("SELECT window(ts, '1 hour').start, window.end FROM t", ["window.start", "end"]),
        ("SELECT (window).start, MAX(window.end) FROM t GROUP BY window(ts, 5)", ["start", "max(window.end)"]),
        ("SELECT window_time(window(ts, 5)) FROM t", ["window_time(window)"]),
        # A table called so comes before the column; a column called so, too.
        ("SELECT window.c, window.start FROM t AS window GROUP BY window(ts, 5), window.c", ["c", "start"]),
        ("SELECT window, window(ts, 5) AS w FROM v", ["window", "w NOT NULL"]),
        # An equal call in other words; an alias in one.
        ("SELECT window(TS, '1 minute') AS w FROM t GROUP BY Window(t.ts, '60 seconds', '1 minute')", ["w NOT NULL"]),
        (
            "SELECT session_window, c AS d FROM t GROUP BY session_window(ts, '1 hour'), d",
            ["session_window NOT NULL", "d"],
        ),
        ("SELECT timestamp_seconds(k) AS x FROM t GROUP BY window(x, 5), x", ["x NOT NULL"]),
    ],
)
def test_names_are_those_of_spark(sql: str, names: list[str]) -> None:
    assert columns(sql) == names


def test_a_window_that_nobody_reads_is_not_made() -> None:
    unread = "SELECT SUM(k) OVER a AS s FROM t WINDOW a AS (PARTITION BY c), b AS (PARTITION BY window(ts, 5))"
    assert "time_window" not in planned(unread)
    assert "time_window" in planned(unread.replace("OVER a", "OVER b"))


@pytest.mark.parametrize(
    ("sql", "code", "near"),
    [
        ("SELECT window(ts) AS w FROM t", "WRONG_NUM_ARGS", "window(ts)"),
        ("SELECT window(k, 5) AS w FROM t", "DATATYPE_MISMATCH", "window(k, 5)"),
        ("SELECT window(ts, c) AS w FROM t", "DATATYPE_MISMATCH", "c"),
        ("SELECT window(ts, '1 month') AS w FROM t", "DATATYPE_MISMATCH", "window(ts, '1 month')"),
        ("SELECT window(ts, 5, 6) AS w FROM t", "DATATYPE_MISMATCH", "window(ts, 5, 6)"),
        ("SELECT window(ts, 'x') AS w FROM t", "CANNOT_PARSE_INTERVAL", "window(ts, 'x')"),
        ("SELECT window(ts, 5) AS a, window(ts, 6) AS b FROM t", "UNSUPPORTED_FEATURE", "window(ts, 6)"),
        (
            "SELECT window(ts, 5) AS a, session_window(ts, '9 hours') AS b FROM t",
            "UNSUPPORTED_FEATURE",
            "session_window(ts, '9 hours')",
        ),
        ("SELECT session_window(ts) AS w FROM t", "WRONG_NUM_ARGS", "session_window(ts)"),
        ("SELECT session_window(ts, 5) AS w FROM t", "DATATYPE_MISMATCH", "session_window(ts, 5)"),
        ("SELECT session_window(ts, '5') AS w FROM t", "CANNOT_PARSE_INTERVAL", "session_window(ts, '5')"),
        ("SELECT window_time(ts, 5) AS w FROM t", "WRONG_NUM_ARGS", "window_time(ts, 5)"),
        ("SELECT window_time(ts) AS w FROM t", "DATATYPE_MISMATCH", "window_time(ts)"),
        ("SELECT window(max(ts), 5) AS w FROM t", "MISPLACED_AGGREGATE", "max(ts)"),
        ("SELECT window, k FROM t GROUP BY window(ts, 5)", "MISSING_AGGREGATION", "k"),
        ("SELECT window, 1 AS one FROM v GROUP BY window(ts, 5)", "MISSING_AGGREGATION", "window"),
        ("SELECT window.start AS s FROM t", "UNRESOLVED_COLUMN", "window.start"),
        ("SELECT t.window FROM t GROUP BY window(ts, 5)", "UNRESOLVED_COLUMN", "t.window"),
    ],
)
def test_errors_point_at_the_call(sql: str, code: str, near: str) -> None:
    with pytest.raises(SqlError) as caught:
        planned(sql)
    assert (caught.value.code, caught.value.details["near"]) == (code, near)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t WHERE window(ts, 5).start > ts",
        "SELECT t.k FROM t JOIN v ON window(t.ts, 5).start = v.ts",
        "SELECT w FROM t, LATERAL (SELECT window(t.ts, 5) AS w)",
        "SELECT window(ts, '1 hour', '1 millisecond') AS w FROM t",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c, session_window(ts, '5 minutes').start",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY CUBE (c, session_window(ts, '5 minutes'))",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c, session_window(ts, '1 day')",
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c, session_window(ts, c)",
        "SELECT c, MAX(session_window(ts, '5 minutes').end) AS e FROM t GROUP BY c",
        "SELECT k FROM v WHERE ts IN (SELECT MAX(ts) FROM t WHERE k = v.k GROUP BY c, session_window(ts, '5 minutes'))",
    ],
)
def test_what_is_refused_yet(sql: str) -> None:
    with pytest.raises(UnsupportedSql) as caught:
        planned(sql)
    assert caught.value.code == "TIME_WINDOW_NOT_YET"


def test_the_way_round_runs() -> None:
    assert columns("SELECT k FROM (SELECT k, ts, window(ts, 5) AS w FROM t) WHERE w.start > ts") == ["k NOT NULL"]


def test_sessions_are_told_apart_by_window_functions() -> None:
    plan = planned("SELECT session_window, c, COUNT(*) AS n FROM t GROUP BY c, session_window(ts, '5 minutes')")
    assert plan.count("  Window per ") == 3
    assert "Window" not in planned("SELECT session_window(ts, '5 minutes') AS w FROM t")


@pytest.mark.parametrize("group", ["w", "session_window(ts, '5 minutes')"])
def test_sessions_of_all_rows_are_computed_anew_by_every_change(group: str) -> None:
    sql = f"SELECT session_window(ts, '5 minutes') AS w, COUNT(*) AS n FROM t GROUP BY {group}"
    assert recomputed(plan_view(sql, RELATIONS, Session()).root) == "WINDOW_WITHOUT_PARTITION"
    with pytest.raises(UnsupportedSql) as caught:
        plan_view(sql, RELATIONS, Session(), is_strict=True)
    assert caught.value.code == "WINDOW_WITHOUT_PARTITION"
    assert caught.value.details["near"].startswith("session_window(ts, '5 minutes')")
