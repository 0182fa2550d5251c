import pytest

from viewkeeper.errors import SqlError, UnsupportedSql
from viewkeeper.statements import parse_statement
from viewkeeper.statements.model import (
    Describe,
    DropFunction,
    ExplainCreate,
    ExplainQuery,
    ExplainView,
    Place,
    Query,
    Refresh,
    ShowCreate,
    ShowDecisions,
    ShowFunctions,
    ShowTables,
    ShowViews,
)

HERE = Place(1, 1, 0)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SHOW TABLES", ShowTables(sql="", place=HERE)),
        ("show materialized views", ShowViews(sql="", place=HERE)),
        ("SHOW CREATE t", ShowCreate("t", sql="", place=HERE)),
        ("SHOW CREATE TABLE `a b`", ShowCreate("a b", sql="", place=HERE)),
        ("SHOW CREATE MATERIALIZED VIEW v", ShowCreate("v", sql="", place=HERE)),
        ("SHOW CREATE table", ShowCreate("table", sql="", place=HERE)),
        ("DESCRIBE t", Describe("t", False, sql="", place=HERE)),
        ("DESC EXTENDED t", Describe("t", True, sql="", place=HERE)),
        ("DESCRIBE TABLE EXTENDED t", Describe("t", True, sql="", place=HERE)),
        ("DESCRIBE MATERIALIZED VIEW v", Describe("v", False, sql="", place=HERE)),
        ("DESCRIBE MATERIALIZED VIEW EXTENDED v", Describe("v", True, sql="", place=HERE)),
        ("DESCRIBE extended", Describe("extended", False, sql="", place=HERE)),
        ("DESCRIBE schema", Describe("schema", False, sql="", place=HERE)),
        ("EXPLAIN MATERIALIZED VIEW v", ExplainView("v", sql="", place=HERE)),
        ("EXPLAIN ANALYZE MATERIALIZED VIEW v", ExplainView("v", analyze=True, sql="", place=HERE)),
        ("SHOW REFRESH DECISIONS", ShowDecisions(None, sql="", place=HERE)),
        ("show refresh decisions for `a b`", ShowDecisions("a b", sql="", place=HERE)),
    ],
)
def test_show_describe_explain(sql, expected):
    statement = parse_statement(sql)
    assert type(statement) is type(expected)
    assert statement == expected
    assert statement.sql == sql


def test_explain_create_keeps_both_texts():
    sql = "EXPLAIN\n CREATE OR REPLACE MATERIALIZED VIEW v REFRESH ON DEMAND AS SELECT 1"
    statement = parse_statement(sql)
    assert isinstance(statement, ExplainCreate)
    assert (statement.sql, statement.place) == (sql, HERE)
    assert statement.create.refresh == Refresh("ON_DEMAND")
    assert (statement.create.sql, statement.create.place) == (sql[9:], Place(2, 2, 9))
    assert statement.create.query.place == Place(2, 61, sql.index("SELECT"))


@pytest.mark.parametrize(
    "query", ["SELECT 1", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)", "FROM t", "TABLE t"]
)
def test_queries(query):
    explain = parse_statement(f"EXPLAIN {query}")
    assert isinstance(explain, ExplainQuery)
    assert (explain.query.text, explain.query.place) == (query, Place(1, 9, 8))
    plain = parse_statement(query)
    assert isinstance(plain, Query)
    assert (plain.query.text, plain.query.place, plain.sql) == (query, HERE, query)


def test_parameters_and_hints_stay_in_the_query():
    sql = "SELECT /*+ BROADCAST(u) */ t.*, :limit::INT FROM t JOIN u USING (k) WHERE k = :k -- the key\n AND a > 0"
    assert parse_statement(sql).query.text == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW",
        "SHOW VIEWS",
        "SHOW TABLES LIKE 'x'",
        "DESCRIBE",
        "EXPLAIN",
        "EXPLAIN v",
        "SHOW REFRESH",
        "SHOW REFRESH DECISIONS v",
        "SHOW REFRESH DECISIONS FOR",
    ],
)
def test_errors(sql):
    with pytest.raises(SqlError) as caught:
        parse_statement(sql)
    assert caught.value.code == "SYNTAX_ERROR"


def test_functions_are_shown_and_dropped() -> None:
    assert (
        parse_statement("SHOW FUNCTIONS")
        == parse_statement("show user functions;")
        == ShowFunctions(sql="", place=HERE)
    )
    assert parse_statement("DROP FUNCTION IF EXISTS `f`") == DropFunction("f", True, sql="", place=HERE)
    with pytest.raises(UnsupportedSql, match="register_function") as caught:
        parse_statement("CREATE OR REPLACE FUNCTION f AS 'x'")
    assert caught.value.code == "CREATE_FUNCTION_NOT_SUPPORTED"
