import itertools

import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.statements import parse_statement
from viewkeeper.statements.model import (
    AlterViewAs,
    AlterViewPolicy,
    AlterViewRename,
    AlterViewResume,
    AlterViewSuspend,
    CreateView,
    DropView,
    Place,
    Refresh,
    RefreshView,
    VerifyView,
)


def test_shortest_create():
    sql = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
    view = parse_statement(sql)
    assert isinstance(view, CreateView)
    assert (view.name, view.or_replace, view.if_not_exists, view.with_no_data) == ("v", False, False, False)
    assert (view.columns, view.primary_key, view.comment) == ((), (), None)
    assert (view.refresh, view.policy) == (Refresh("CONTINUOUS"), "AUTO")
    assert view.query.text == "SELECT a FROM t"
    assert view.query.place == Place(1, 31, 30)


CLAUSES = ("COMMENT 'all'", "REFRESH EVERY 2 MINUTES", "REFRESH POLICY INCREMENTAL STRICT", "WITH NO DATA")


@pytest.mark.parametrize("order", list(itertools.permutations(CLAUSES)))
def test_clauses_come_in_any_order(order):
    view = parse_statement(f"CREATE OR REPLACE MATERIALIZED VIEW v (a, b COMMENT 'x') {' '.join(order)} AS TABLE t")
    assert view.or_replace
    assert view.columns == (("a", None), ("b", "x"))
    assert (view.comment, view.refresh, view.policy) == ("all", Refresh("EVERY", 120.0), "INCREMENTAL")
    assert view.with_no_data
    assert view.query.text == "TABLE t"


@pytest.mark.parametrize(
    ("clause", "refresh"),
    [
        ("", Refresh("CONTINUOUS")),
        ("REFRESH CONTINUOUS", Refresh("CONTINUOUS")),
        ("REFRESH ON DEMAND", Refresh("ON_DEMAND")),
        ("REFRESH EVERY 5 SECONDS", Refresh("EVERY", 5.0)),
        ("refresh every 1 second", Refresh("EVERY", 1.0)),
        ("REFRESH EVERY 0.25 SECONDS", Refresh("EVERY", 0.25)),
        ("REFRESH EVERY 100 MILLISECONDS", Refresh("EVERY", 0.1)),
        ("REFRESH EVERY 3 HOURS", Refresh("EVERY", 10800.0)),
        ("REFRESH EVERY 1 DAY", Refresh("EVERY", 86400.0)),
        ("REFRESH EVERY 2 WEEKS", Refresh("EVERY", 1209600.0)),
        ("SCHEDULE EVERY 1 HOUR", Refresh("EVERY", 3600.0)),
        ("SCHEDULE REFRESH EVERY 1 HOUR", Refresh("EVERY", 3600.0)),
        ("REFRESH EVERY INTERVAL '5' SECONDS", Refresh("EVERY", 5.0)),
        ("REFRESH EVERY INTERVAL 5 SECONDS", Refresh("EVERY", 5.0)),
        ("REFRESH EVERY INTERVAL '5 seconds'", Refresh("EVERY", 5.0)),
        ("SCHEDULE EVERY INTERVAL '5' SECOND", Refresh("EVERY", 5.0)),
    ],
)
def test_refresh(clause, refresh):
    assert parse_statement(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT 1").refresh == refresh


@pytest.mark.parametrize(
    ("clause", "policy"),
    [
        ("", "AUTO"),
        ("REFRESH POLICY AUTO", "AUTO"),
        ("REFRESH POLICY INCREMENTAL", "INCREMENTAL"),
        ("REFRESH POLICY FULL", "FULL"),
        ("REFRESH POLICY INCREMENTAL STRICT", "INCREMENTAL"),
    ],
)
def test_policy(clause, policy):
    assert parse_statement(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT 1").policy == policy


@pytest.mark.parametrize(
    ("columns", "names", "key"),
    [
        ("(a, b, PRIMARY KEY (B))", ("a", "b"), ("b",)),
        ("(PRIMARY KEY (x, y))", (), ("x", "y")),
        ("(`primary`, `a b` COMMENT 'c', PRIMARY KEY (`a b`, primary))", ("primary", "a b"), ("a b", "primary")),
    ],
)
def test_columns_and_key(columns, names, key):
    view = parse_statement(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v {columns} AS SELECT 1")
    assert view.if_not_exists
    assert tuple(name for name, _ in view.columns) == names
    assert view.primary_key == key


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a AS b, ':x', :k, count(*) FROM t /* , */ GROUP BY ALL",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1), (2)",
        "FROM t SELECT a",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT 'WITH NO DATA', `with no data`, m['a'], array(1)[0] FROM t -- inside\n WHERE a <> 1",
        "SELECT CASE WHEN a THEN b END FROM t REFRESH",
    ],
)
def test_queries_stay_as_written(query):
    sql = f"CREATE MATERIALIZED VIEW v AS -- why\n {query}  -- tail\n;"
    view = parse_statement(sql)
    assert view.query.text == query
    assert view.query.place == Place(2, 2, sql.index(query))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("REFRESH MATERIALIZED VIEW v", RefreshView("v", False, sql="", place=Place(1, 1, 0))),
        ("REFRESH MATERIALIZED VIEW v FULL", RefreshView("v", True, sql="", place=Place(1, 1, 0))),
        ("refresh materialized view full", RefreshView("full", False, sql="", place=Place(1, 1, 0))),
        ("ALTER MATERIALIZED VIEW v SUSPEND", AlterViewSuspend("v", sql="", place=Place(1, 1, 0))),
        (
            "ALTER MATERIALIZED VIEW v SET REFRESH POLICY INCREMENTAL STRICT",
            AlterViewPolicy("v", "INCREMENTAL", sql="", place=Place(1, 1, 0)),
        ),
        (
            "ALTER MATERIALIZED VIEW v SET REFRESH POLICY FULL",
            AlterViewPolicy("v", "FULL", sql="", place=Place(1, 1, 0)),
        ),
        ("ALTER MATERIALIZED VIEW v RESUME", AlterViewResume("v", sql="", place=Place(1, 1, 0))),
        ("ALTER MATERIALIZED VIEW v RENAME TO `w x`", AlterViewRename("v", "w x", sql="", place=Place(1, 1, 0))),
        ("DROP MATERIALIZED VIEW v", DropView("v", False, sql="", place=Place(1, 1, 0))),
        ("DROP MATERIALIZED VIEW IF EXISTS v", DropView("v", True, sql="", place=Place(1, 1, 0))),
        ("VERIFY MATERIALIZED VIEW v", VerifyView("v", False, sql="", place=Place(1, 1, 0))),
        ("VERIFY MATERIALIZED VIEW v REPAIR", VerifyView("v", True, sql="", place=Place(1, 1, 0))),
    ],
)
def test_other_statements(sql, expected):
    statement = parse_statement(f"  {sql}\n")
    assert statement == expected
    assert type(statement) is type(expected)
    assert (statement.sql, statement.place) == (sql, Place(1, 3, 2))


def test_alter_as():
    statement = parse_statement("ALTER MATERIALIZED VIEW v AS\nSELECT 2")
    assert isinstance(statement, AlterViewAs)
    assert (statement.query.text, statement.query.place) == ("SELECT 2", Place(2, 1, 29))


@pytest.mark.parametrize(
    ("sql", "code", "near"),
    [
        ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", "CONFLICTING_CLAUSES", "IF NOT"),
        ("CREATE MATERIALIZED VIEW v COMMENT 'a' COMMENT 'b' AS SELECT 1", "CLAUSE_GIVEN_TWICE", "COMMENT 'b'"),
        ("CREATE MATERIALIZED VIEW v REFRESH ON DEMAND SCHEDULE EVERY 1 DAY AS SELECT 1", "CLAUSE_GIVEN_TWICE",
         "SCHEDULE"),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY AUTO REFRESH POLICY AUTO AS SELECT 1", "CLAUSE_GIVEN_TWICE",
         "REFRESH POLICY AUTO AS"),
        ("CREATE MATERIALIZED VIEW v WITH NO DATA WITH NO DATA AS SELECT 1", "CLAUSE_GIVEN_TWICE", "WITH NO DATA AS"),
        ("CREATE MATERIALIZED VIEW v (a, A) AS SELECT 1", "COLUMN_DECLARED_TWICE", "A) AS"),
        ("CREATE MATERIALIZED VIEW v (a, PRIMARY KEY (b)) AS SELECT 1", "COLUMN_NOT_FOUND", "b))"),
        ("CREATE MATERIALIZED VIEW v (a, PRIMARY KEY (a, a)) AS SELECT 1", "COLUMN_DECLARED_TWICE", "a)) AS"),
        ("CREATE MATERIALIZED VIEW v (PRIMARY KEY (a, A)) AS SELECT 1", "COLUMN_DECLARED_TWICE", "A)) AS"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 0 SECONDS AS SELECT 1", "INVALID_INTERVAL", "0 SECONDS"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 1e99 DAYS AS SELECT 1", "INVALID_INTERVAL", "1e99"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY INTERVAL '-1' DAY AS SELECT 1", "INVALID_INTERVAL", "INTERVAL"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY INTERVAL 'x' DAY AS SELECT 1", "INVALID_INTERVAL", "INTERVAL"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY INTERVAL '1 fortnight' AS SELECT 1", "INVALID_INTERVAL", "INTERVAL"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 5 AS SELECT 1", "SYNTAX_ERROR", "AS SELECT"),
        ("CREATE MATERIALIZED VIEW v REFRESH EVERY 5 MONTHS AS SELECT 1", "SYNTAX_ERROR", "MONTHS"),
        ("CREATE MATERIALIZED VIEW v WITH (speed = 1) AS SELECT 1", "UNKNOWN_OPTION", "speed"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 WITH NO DATA", "SYNTAX_ERROR", "WITH NO DATA"),
        ("CREATE MATERIALIZED VIEW v (a INT) AS SELECT 1", "SYNTAX_ERROR", "INT)"),
        ("CREATE MATERIALIZED VIEW v SELECT 1", "SYNTAX_ERROR", "SELECT 1"),
        ("CREATE MATERIALIZED VIEW v AS", "SYNTAX_ERROR", ""),
        ("CREATE MATERIALIZED VIEW v AS SELECT (1", "SYNTAX_ERROR", ""),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1)", "SYNTAX_ERROR", ")"),
        ("CREATE MATERIALIZED VIEW v AS SELECT (1]", "SYNTAX_ERROR", "]"),
    ],
)  # fmt: skip
def test_errors(sql, code, near):
    with pytest.raises(SqlError) as caught:
        parse_statement(sql)
    error = caught.value
    assert error.code == code
    assert not isinstance(error, UnsupportedSql)
    assert error.details["near"].startswith(near)
    assert sql[error.details["offset"] :].startswith(near)
